"""Decode columns of single-value encoded bounds, vectorized where the encoding has a fixed width."""

from typing import Any, Final

import polars as pl

from bergline.format.types.single_values import decode_value
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)

_ENCODED: Final[dict[IcebergType, Any]] = {
    INT: pl.Int32,
    DATE: pl.Int32,
    **dict.fromkeys((LONG, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS), pl.Int64),
    FLOAT: pl.Float32,
    DOUBLE: pl.Float64,
}
_WIDTHS = {pl.Int32: 4, pl.Float32: 4, pl.Int64: 8, pl.Float64: 8}


def decode_bounds(type_: IcebergType, values: pl.Series) -> pl.Series:
    """Encoded bounds (binary, null where unknown) as values of the type; FormatError for invalid bytes.

    Whole numbers, dates and times come as Int64, floats as Float64, decimals and uuids as Python objects. Types without
    an order have no bounds: all null.
    """
    if encoded := _ENCODED.get(type_):
        held = pl.Int64 if encoded in {pl.Int32, pl.Int64} else pl.Float64
        if (values.bin.size() == _WIDTHS[encoded]).all():  # nulls stay null
            return values.bin.reinterpret(dtype=encoded, endianness="little").cast(held)
        return _one_by_one(type_, values, held)  # some bounds were written before the type was promoted
    if type_ == STRING:
        try:
            return values.cast(pl.String)
        except pl.exceptions.PolarsError:
            return _one_by_one(type_, values, pl.String)
    if type_ == BOOLEAN:
        return values != pl.Series([b"\x00"])
    if type_ == BINARY or isinstance(type_, FixedType):
        return values
    if type_ == UUID or isinstance(type_, DecimalType):
        return _one_by_one(type_, values, pl.Object)
    return pl.repeat(None, len(values), dtype=pl.Binary, eager=True)


def _one_by_one(type_: IcebergType, values: pl.Series, held: Any) -> pl.Series:
    decoded = [None if v is None else decode_value(type_, v) for v in values]
    if held == pl.Int64:
        # a day of a column since promoted to timestamp may lie beyond every timestamp, and so beyond every literal
        decoded = [None if v is None else max(-(2**63), min(v, 2**63 - 1)) for v in decoded]
    return pl.Series(decoded, dtype=held)
