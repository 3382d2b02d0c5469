"""Plain values as Arrow arrays: defaults, partition values and other constants."""

import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.format.types.types import DATE, TIME, UUID, IcebergType, ListType, MapType, PrimitiveType, StructType


def constant_array(type_: IcebergType, value: Any, rows: int) -> pa.Array:
    """An array that repeats one plain value; a struct is a dict by field name, a map a list of pairs."""
    if value is None:
        return pa.nulls(rows, arrow_type(type_))
    return plain_to_arrow(type_, [value]).take(pa.repeat(pa.scalar(0, pa.int32()), rows))


def plain_to_arrow(type_: IcebergType, values: Sequence[Any]) -> pa.Array:
    """Plain values as an Arrow array of a type."""
    stored = pa.array([_storable(v) for v in values], _storage_type(type_))
    return stored.cast(arrow_type(type_))


def _storable(value: Any) -> Any:
    if isinstance(value, uuid.UUID):
        return value.bytes
    if isinstance(value, dict):
        return {name: _storable(v) for name, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_storable(v) for v in value)
    return value


def _storage_type(type_: IcebergType) -> pa.DataType:
    """The storage type of plain values: integers and bytes."""
    match type_:
        case StructType(fields):
            return pa.struct([pa.field(f.name, _storage_type(f.type)) for f in fields])
        case ListType(_, element, _):
            return pa.list_(_storage_type(element))
        case MapType(_, key, _, value, _):
            return pa.map_(_storage_type(key), _storage_type(value))
        case PrimitiveType(name) if type_ == TIME or name.startswith("timestamp"):
            return pa.int64()
    stored: dict[IcebergType, pa.DataType] = {DATE: pa.int32(), UUID: pa.binary(16)}
    return stored.get(type_) or arrow_type(type_)
