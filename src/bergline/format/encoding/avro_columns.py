"""Avro records as columns: decoded by polars, found by field id, whatever the writer called them."""

import io
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import polars as pl

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import Container, encode_long
from bergline.format.encoding.avro_polars import END, SYNC, Layout, Plain, plain_schema

_BY_JAVA = "iceberg.schema"
Finish = Callable[[pl.DataFrame], pl.DataFrame]


def decode_columns(
    containers: Sequence[Container], layout: Layout, sources: Sequence[str], finish: Finish
) -> list[pl.DataFrame]:
    """The records of some files that share one schema, decoded together: polars takes longer to begin than to decode.

    Nested records stay structs, fields without a known id have names that begin with `-`. `finish` gets that frame and
    gives the one that is wanted, with as many rows.
    """
    try:
        plain = plain_schema(containers[0].metadata["avro.schema"], layout)
        if plain.fixed:
            return [_decode_fixed(container, layout, finish) for container in containers]
        return _decode_together(containers, plain, finish)
    except FormatError as error:
        if len(containers) == 1:
            raise FormatError(f"{error} in {sources[0]}") from error
        # decoded one by one, the file that is wrong names itself
        return [f for c, s in zip(containers, sources, strict=True) for f in decode_columns([c], layout, [s], finish)]


def _decode_fixed(container: Container, layout: Layout, finish: Finish) -> pl.DataFrame:
    """The records of a file with fixed values, which Java 1.8 to 1.12 write like bytes, against its own schema.

    See apache/iceberg#17501. A file in which every such value begins with its length may be one of those.
    """
    schema = container.metadata["avro.schema"]
    plain = plain_schema(schema, layout, lengths=True)
    found: dict[bool, pl.DataFrame] = {}
    problem = FormatError("")
    for lengths in (True, False):
        try:
            (found[lengths],) = _decode_together([container], plain_schema(schema, layout, lengths=lengths), finish)
        except FormatError as error:
            problem = error
    if True in found and not all(_has_size(found[True], name, size) for name, size in plain.fixed.items()):
        del found[True]
    if not found:
        raise problem
    # bytes that can be read in both ways are rare, and then the writer decides: only Java writes this key
    return found[True] if True in found and (False not in found or _BY_JAVA in container.metadata) else found[False]


def _has_size(frame: pl.DataFrame, name: str, size: int) -> bool:
    if name not in frame.columns:
        return True
    return frame.schema[name] == pl.Binary and bool((frame[name].bin.size() == size).all())


def _decode_together(containers: Sequence[Container], plain: Plain, finish: Finish) -> list[pl.DataFrame]:
    blocks: list[bytes] = []
    for container in containers:
        # polars allocates for as many records as a block says it has
        if container.records * plain.least > container.size:
            raise FormatError(f"expected {container.records:,} records, found {container.size:,} bytes")
        # nor does it tell where it stopped: a record of ours behind each file's own shows that it was there
        blocks += [*container.blocks, plain.empty]
    ends = [n - 1 for n in accumulate(c.records + 1 for c in containers)]
    frame = _decode(plain, ends[-1] + 1, blocks)
    if frame.height != ends[-1] + 1 or not all(_is_end(row) for row in frame[ends].rows()):
        raise FormatError(f"expected {containers[0].records:,} records, found others")
    if len(containers) == 1:
        return [finish(frame.head(ends[0]))]
    whole = finish(frame)
    return [whole.slice(end - c.records, c.records) for end, c in zip(ends, containers, strict=True)]


def _decode(plain: Plain, records: int, blocks: Sequence[bytes]) -> pl.DataFrame:
    size = encode_long(sum(map(len, blocks)))
    try:
        return pl.read_avro(io.BytesIO(b"".join((plain.header, encode_long(records), size, *blocks, SYNC))))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError) as error:
        # a panic is how polars says that a length in the bytes points past their end
        raise FormatError(f"expected Avro records, found {str(error).splitlines()[0][:120]}") from error


def _is_end(row: tuple[Any, ...]) -> bool:
    texts = [v for value in row for v in (value.values() if isinstance(value, dict) else [value]) if isinstance(v, str)]
    return bool(texts) and all(t == END for t in texts)
