"""Avro files, decoded some blocks at a time by polars; field ids are in the file's schema."""

import io
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import BinaryIO

import msgspec
import polars as pl
import pyarrow as pa

from bergline.errors import FormatError
from bergline.format.encoding.avro_container import BlockReader, container_header, encode_long
from bergline.parquet.formats.avro_types import AvroType, parse_avro_schema
from bergline.parquet.formats.physical_arrays import to_physical

_BATCH_ROWS = 64 * 1024
_BATCH_BYTES = 16 * 1024 * 1024
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

    @cached_property
    def group_rows(self) -> Sequence[int]:
        """How many rows the file has, by the counts of its blocks."""
        return [self._blocks.count()]

    def batches(
        self, columns: Sequence[str], groups: Sequence[int] | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches with the position of their first row."""
        if groups is not None and 0 not in groups:
            return
        first = 0
        for records, blocks in self._packed():
            batch = self._decoded(records, blocks, columns)
            for start in range(0, records, _BATCH_ROWS):
                yield first + start, batch.slice(start, _BATCH_ROWS)
            first += records

    def _packed(self) -> Iterator[tuple[int, list[bytes]]]:
        """Blocks to decode in one go: polars has a high fixed cost per call."""
        records, blocks = 0, list[bytes]()
        for count, block in self._blocks.blocks():
            # polars allocates memory for as many records as it is told
            if count * max(self._type.least, 0 if count <= _BATCH_ROWS else 1) > len(block):
                raise FormatError(f"expected {count:,} records, found {len(block):,} bytes")
            records, blocks = records + count, [*blocks, block]
            if records >= _BATCH_ROWS or sum(map(len, blocks)) >= _BATCH_BYTES:
                yield records, blocks
                records, blocks = 0, []
        if records:
            yield records, blocks

    def _decoded(self, records: int, blocks: Sequence[bytes], columns: Sequence[str]) -> pa.RecordBatch:
        fields = [self.schema.field(name) for name in columns]
        frame = None if self._type.decoded is None else self._frame(records, blocks)
        if frame is None or not columns:
            empty = pa.array([{}] * records, pa.struct([]))
            arrays = [pa.nulls(records, field.type) for field in fields]
            return (
                pa.record_batch(arrays, schema=pa.schema(fields)) if fields else pa.RecordBatch.from_struct_array(empty)
            )
        arrays = [
            to_physical(_combined(frame[field.name]), field.type)
            if field.name in frame.columns
            else pa.nulls(records, field.type)
            for field in fields
        ]
        return pa.record_batch(arrays, schema=pa.schema(fields))

    def _frame(self, records: int, blocks: Sequence[bytes]) -> pl.DataFrame:
        size = encode_long(sum(map(len, blocks)) + len(self._type.mark))
        data = b"".join((self._header, encode_long(records + 1), size, *blocks, self._type.mark, _SYNC))
        try:
            frame = pl.read_avro(io.BytesIO(data))
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, MemoryError) as error:
            # polars panics when a length points past the end of the data
            raise FormatError(f"expected Avro records, found {str(error).splitlines()[0][:120]}") from error
        if frame.height != records + 1 or frame.row(-1, named=True) != self._type.marked:
            raise FormatError(f"expected {records:,} records, found others")
        return frame.head(records)


def _header(type_: AvroType) -> bytes:
    return container_header({"avro.schema": msgspec.json.encode(type_.decoded), "avro.codec": b"null"}, _SYNC)


def _combined(column: pl.Series) -> pa.Array:
    array = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
