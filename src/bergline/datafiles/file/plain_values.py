"""Arrow arrays as plain values (days, microseconds, Decimal, bytes, uuid.UUID)."""

import uuid
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def plain_array(array: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Dates and times as their stored integers, UUIDs as bytes."""
    if pa.types.is_date32(array.type):
        return pc.cast(array, pa.int32())
    if pa.types.is_timestamp(array.type) or pa.types.is_time64(array.type):
        return pc.cast(array, pa.int64())
    if isinstance(array.type, pa.BaseExtensionType):
        return pc.cast(array, array.type.storage_type)
    return array


def leaf_array(table: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """A column, or a field inside struct columns; null where a parent is null."""
    column = table.column(path[0])
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def distinct_values(column: pa.ChunkedArray) -> tuple[list[Any], pa.Array]:
    """The distinct plain values of a column (including null), and the index of each row's value."""
    encoded = plain_array(column).combine_chunks().dictionary_encode(null_encoding="encode")
    values = encoded.dictionary.to_pylist()
    if isinstance(column.type, pa.UuidType):
        values = [None if v is None else uuid.UUID(bytes=v) for v in values]
    return values, encoded.indices
