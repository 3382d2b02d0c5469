"""Partition values in manifest columns, which are named by field id: validated and converted to plain values."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

import polars as pl

from bergline.errors import FormatError
from bergline.format.types.single_values import scaled
from bergline.format.types.types import DecimalType, FixedType, IcebergType, PrimitiveType

_UUID_LENGTH = _DECIMAL_LENGTH = 16
_UUID_TEXT = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"
_MICROS_PER_DAY = 86_400_000_000
_UNITS_PER_DAY = {
    **dict.fromkeys(("timestamp", "timestamptz"), _MICROS_PER_DAY),
    **dict.fromkeys(("timestamp_ns", "timestamptz_ns"), _MICROS_PER_DAY * 1000),
}
_PLAIN = {"boolean": pl.Boolean, "string": pl.String, "binary": pl.Binary}


def partition_values(frame: pl.DataFrame, field_id: int, type_: IcebergType) -> list[Any]:
    """The plain values of one partition field; null if the manifest does not have it."""
    if str(field_id) not in frame.columns:
        return [None] * frame.height
    column = partition_column(frame, field_id, type_)
    _check(column, field_id, type_)
    values = column.to_list()
    match type_:
        case DecimalType(_, scale):
            return [None if v is None else _decimal(v, scale) for v in values]
        case PrimitiveType("uuid"):
            return [None if v is None else _uuid(v) for v in values]
    return values


def check_partition(frame: pl.DataFrame, types: Mapping[int, IcebergType], source: str) -> None:
    """FormatError naming the manifest if values do not have their partition field's type."""
    for field_id, type_ in types.items():
        if str(field_id) in frame.columns:
            try:
                _check(partition_column(frame, field_id, type_), field_id, type_)
            except FormatError as error:
                raise FormatError(f"{error} in {source}") from error


def partition_column(frame: pl.DataFrame, field_id: int, type_: IcebergType) -> pl.Series:
    """The column of a partition field; dates are converted if the field has since become a timestamp."""
    column = frame[str(field_id)]
    units = _UNITS_PER_DAY.get(str(type_))
    return column.cast(pl.Int64) * units if units is not None and column.dtype == pl.Int32 else column


def _check(column: pl.Series, field_id: int, type_: IcebergType) -> None:
    if not _fits(column, type_):
        raise FormatError(f"expected `{type_}` in partition field {field_id}, found other values of {column.dtype}")


def _fits(column: pl.Series, type_: IcebergType) -> bool:
    match type_:
        case DecimalType():
            return column.dtype == pl.Binary and bool(column.bin.size().is_between(1, _DECIMAL_LENGTH).all())
        case FixedType(length):
            return column.dtype == pl.Binary and bool((column.bin.size() == length).all())
        case PrimitiveType("uuid"):
            if column.dtype == pl.String:  # Avro's own representation of UUIDs
                return bool(column.str.contains(_UUID_TEXT).all())
            return column.dtype == pl.Binary and bool((column.bin.size() == _UUID_LENGTH).all())
        case PrimitiveType("boolean" | "string" | "binary" as name):
            return bool(column.dtype == _PLAIN[name])
        case PrimitiveType("float" | "double"):
            return column.dtype.is_float()
        case PrimitiveType("unknown"):
            return True
    return column.dtype.is_integer()


def _decimal(value: bytes, scale: int) -> Decimal:
    return scaled(int.from_bytes(value, "big", signed=True), scale)


def _uuid(value: bytes | str) -> UUID:
    return UUID(bytes=value) if isinstance(value, bytes) else UUID(value)
