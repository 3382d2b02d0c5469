"""Avro files, decoded a few blocks at a time; field ids are in the file's schema.

polars decodes ten times as fast as plain Python, and is used where it is installed.
"""

import functools
import importlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import msgspec
import pyarrow as pa

from bergline.datafiles.formats.avro_decode import decode_records
from bergline.datafiles.formats.avro_types import AvroType, parse_avro_schema
from bergline.datafiles.formats.physical_arrays import to_physical
from bergline.errors import FormatError
from bergline.format.encoding.avro_container import BlockReader, container_header, encode_long

_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 16 * 1024 * 1024
_POLARS = (1, 30)
_SYNC = b"bergline, 16 by."


class AvroInput:
    """An open Avro file: one group of rows."""

    def __init__(self, stream: BinaryIO, path: str) -> None:
        self._blocks = BlockReader(stream, path)
        self._type = parse_avro_schema(self._blocks.metadata["avro.schema"])
        self._header = _header(self._type)
        self.schema = pa.schema(list(self._type.physical))
        """The columns of the file, with field ids."""

    @property
    def num_groups(self) -> int:
        """Always one."""
        return 1

    @functools.cached_property
    def group_rows(self) -> Sequence[int]:
        """How many rows the file has, by the counts of its blocks."""
        return [self._blocks.count()]

    def batches(
        self, columns: Sequence[str], groups: Sequence[int] | None = None, most_rows: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches with the position of their first row."""
        if groups is not None and 0 not in groups:
            return
        first, size = 0, min(_BATCH_ROWS, most_rows or _BATCH_ROWS)
        for records, blocks in self._packed():
            batch = self._decoded(records, blocks, columns)
            for start in range(0, records, size):
                yield first + start, batch.slice(start, size)
            first += records

    def _packed(self) -> Iterator[tuple[int, list[tuple[int, bytes]]]]:
        """Blocks to decode in one go, with the number of records in each: polars has a high fixed cost per call."""
        records, size, blocks = 0, 0, list[tuple[int, bytes]]()
        for count, block in self._blocks.blocks():
            # polars allocates memory for as many records as it is told
            if count * max(self._type.least, 0 if count <= _BATCH_ROWS else 1) > len(block):
                raise FormatError(f"expected {count:,} records, found {len(block):,} bytes")
            records, size = records + count, size + len(block)
            blocks.append((count, block))
            if records >= _BATCH_ROWS or size >= _BATCH_BYTES:
                yield records, blocks
                records, size, blocks = 0, 0, []
        if records:
            yield records, blocks

    def _decoded(self, records: int, blocks: Sequence[tuple[int, bytes]], columns: Sequence[str]) -> pa.RecordBatch:
        if not columns:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * records, pa.struct([])))
        fields = [self.schema.field(name) for name in columns]
        found: Mapping[str, pa.Array] = {}
        if self._type.decoded is not None:
            polars = _polars()
            found = (
                decode_records(self._type.decoded, blocks, columns)
                if polars is None
                else self._decoded_by_polars(polars, records, blocks, columns)
            )
        arrays = [
            to_physical(found[field.name], field.type) if field.name in found else pa.nulls(records, field.type)
            for field in fields
        ]
        return pa.record_batch(arrays, schema=pa.schema(fields))

    def _decoded_by_polars(
        self, pl: Any, records: int, blocks: Sequence[tuple[int, bytes]], columns: Sequence[str]
    ) -> Mapping[str, pa.Array]:
        size = encode_long(sum(len(block) for _, block in blocks) + len(self._type.mark))
        parts = (self._header, encode_long(records + 1), size, *(block for _, block in blocks), self._type.mark, _SYNC)
        try:
            frame = pl.read_avro(io.BytesIO(b"".join(parts)))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError) as error:
            # polars panics when a length points past the end of the data
            raise FormatError(f"expected Avro records, found {str(error).splitlines()[0][:120]}") from error
        if frame.height != records + 1 or frame.row(-1, named=True) != self._type.marked:
            raise FormatError(f"expected {records:,} records, found others")
        rows = frame.head(records).select([name for name in columns if name in frame.columns])
        return {c.name: _combined(c.to_arrow(compat_level=pl.CompatLevel.oldest())) for c in rows}


@functools.cache
def _polars() -> Any | None:
    """The module polars; None if it is not installed or too old: executors may lack it."""
    try:
        module = importlib.import_module("polars")
    except ImportError:
        return None
    version = tuple(int(part) for part in module.__version__.split(".")[:2])
    return module if version >= _POLARS else None


def _header(type_: AvroType) -> bytes:
    return container_header({"avro.schema": msgspec.json.encode(type_.decoded), "avro.codec": b"null"}, _SYNC)


def _combined(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
