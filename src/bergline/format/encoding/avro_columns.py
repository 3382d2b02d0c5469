"""Avro records decoded to polars columns, matched by field id regardless of the writer's names."""

import io
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import polars as pl

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import Container, encode_long
from bergline.format.encoding.avro_polars import END, SYNC, PolarsType, RecordLayout, polars_schema

_BY_JAVA = "iceberg.schema"
Finish = Callable[[pl.DataFrame], pl.DataFrame]


def decode_columns(
    containers: Sequence[Container], layout: RecordLayout, sources: Sequence[str], finish: Finish
) -> list[pl.DataFrame]:
    """Decode the records of files that share one schema in one go: polars has a high fixed cost per call.

    Nested records stay structs; fields without a known id get names that begin with `-`. `finish` converts the decoded
    frame to the wanted one, with the same number of rows.
    """
    try:
        plain = polars_schema(containers[0].metadata["avro.schema"], layout)
        if plain.fixed:
            return [_decode_fixed(container, layout, finish) for container in containers]
        return _decode_together(containers, plain, finish)
    except FormatError as error:
        if len(containers) == 1:
            raise FormatError(f"{error} in {sources[0]}") from error
        # decode one by one, so that the error names the malformed file
        return [f for c, s in zip(containers, sources, strict=True) for f in decode_columns([c], layout, [s], finish)]


def _decode_fixed(container: Container, layout: RecordLayout, finish: Finish) -> pl.DataFrame:
    """Decode a file with `fixed` values, which Java 1.8 to 1.12 write like `bytes`, contrary to its own schema.

    See apache/iceberg#17501. A file in which every such value starts with its length may be one of those.
    """
    schema = container.metadata["avro.schema"]
    plain = polars_schema(schema, layout, lengths=True)
    found: dict[bool, pl.DataFrame] = {}
    problem = FormatError("")
    for lengths in (True, False):
        try:
            (found[lengths],) = _decode_together([container], polars_schema(schema, layout, lengths=lengths), finish)
        except FormatError as error:
            problem = error
    if True in found and not all(_has_size(found[True], name, size) for name, size in plain.fixed.items()):
        del found[True]
    if not found:
        raise problem
    # data that can be read both ways is rare; then the header decides who wrote it: only Java writes this key
    return found[True] if True in found and (False not in found or _BY_JAVA in container.metadata) else found[False]


def _has_size(frame: pl.DataFrame, name: str, size: int) -> bool:
    if name not in frame.columns:
        return True
    return frame.schema[name] == pl.Binary and bool((frame[name].bin.size() == size).all())


def _decode_together(containers: Sequence[Container], plain: PolarsType, finish: Finish) -> list[pl.DataFrame]:
    blocks: list[bytes] = []
    for container in containers:
        # polars allocates memory for as many records as the block header claims
        if container.records * plain.least > container.size:
            raise FormatError(f"expected {container.records:,} records, found {container.size:,} bytes")
        # nor does it report where it stopped: a sentinel record after each file's records proves that all were read
        blocks += [*container.blocks, plain.empty]
    ends = [n - 1 for n in accumulate(c.records + 1 for c in containers)]
    frame = _decode(plain, ends[-1] + 1, blocks)
    if frame.height != ends[-1] + 1 or not all(_is_end(row) for row in frame[ends].rows()):
        raise FormatError(f"expected {containers[0].records:,} records, found others")
    if len(containers) == 1:
        return [finish(frame.head(ends[0]))]
    whole = finish(frame)
    return [whole.slice(end - c.records, c.records) for end, c in zip(ends, containers, strict=True)]


def _decode(plain: PolarsType, records: int, blocks: Sequence[bytes]) -> pl.DataFrame:
    size = encode_long(sum(map(len, blocks)))
    try:
        return pl.read_avro(io.BytesIO(b"".join((plain.header, encode_long(records), size, *blocks, SYNC))))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError) as error:
        # polars panics when a length points past the end of the data
        raise FormatError(f"expected Avro records, found {str(error).splitlines()[0][:120]}") from error


def _is_end(row: tuple[Any, ...]) -> bool:
    texts = [v for value in row for v in (value.values() if isinstance(value, dict) else [value]) if isinstance(v, str)]
    return bool(texts) and all(t == END for t in texts)
