"""Deletes applied to the rows of one data file."""

import math
import struct
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bergline.errors import FormatError
from bergline.format.deletes import POSITION_DELETE_SCHEMA
from bergline.format.manifest import DataFile, FileContent
from bergline.format.schema import Schema
from bergline.parquet.plain import plain_array

ReadColumns = Callable[[str, Schema], pa.Table]
"""Reads the columns of a schema, by field id, from a file."""


def rows_to_keep(
    rows: int,
    path: str,
    deletes: Iterable[DataFile],
    *,
    keys: Callable[[Schema], pa.Table],
    key_columns: Schema,
    read: ReadColumns,
) -> pa.Array:
    """A mask over the rows of a data file, false for the deleted ones.

    Args:
        rows: how many rows the data file has.
        path: the data file.
        deletes: the delete files that apply to it.
        keys: the data file's own columns of a schema, for equality deletes.
        key_columns: every column that equality deletes may name.
        read: reads columns of a delete file.
    """
    keep = bytearray(b"\xff" * ((rows + 7) // 8))
    for delete in deletes:
        if delete.content is FileContent.POSITION_DELETES:
            positions = _positions(read(delete.file_path, POSITION_DELETE_SCHEMA), path, rows, delete.file_path)
        else:
            positions = _equal_rows(delete, keys, key_columns, read)
        for position in positions:
            keep[position >> 3] &= ~(1 << (position & 7))
    return pa.BooleanArray.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(bytes(keep))])


def _positions(deleted: pa.Table, path: str, rows: int, source: str) -> list[int]:
    about_this = deleted.filter(pc.equal(deleted.column("file_path"), path))
    positions: list[int] = about_this.column("pos").to_pylist()
    if positions and not (min(positions) >= 0 and max(positions) < rows):
        raise FormatError(f"expected positions below {rows} for {path}, found {max(positions)} in {source}")
    return positions


def _equal_rows(
    delete: DataFile, keys: Callable[[Schema], pa.Table], key_columns: Schema, read: ReadColumns
) -> list[int]:
    if not delete.equality_ids:
        raise FormatError(f"expected equality ids, found none for {delete.file_path}")
    columns = Schema(fields=tuple(f for f in key_columns.fields if f.id in delete.equality_ids))
    if len(columns.fields) != len(delete.equality_ids):
        raise FormatError(f"expected columns with ids {delete.equality_ids}, found others for {delete.file_path}")
    deleted = set(_key_rows(read(delete.file_path, columns)))
    return [position for position, key in enumerate(_key_rows(keys(columns))) if key in deleted]


def _key_rows(table: pa.Table) -> Iterable[tuple[Any, ...]]:
    """Rows as values that are equal as Iceberg compares them: null equals null, NaN equals NaN, -0.0 is not 0.0."""
    columns = [
        [_float_key(v) for v in column.to_pylist()]
        if pa.types.is_floating(column.type)
        else plain_array(column).to_pylist()
        for column in table.columns
    ]
    return zip(*columns, strict=True)


def _float_key(value: float | None) -> bytes | None:
    if value is None:
        return None
    return struct.pack("<d", math.nan if math.isnan(value) else value)
