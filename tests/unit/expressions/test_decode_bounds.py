"""Encoded bounds as columns."""

import struct
import uuid
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from bergline.errors import FormatError
from bergline.expressions.decode_bounds import decode_bounds
from bergline.format.types.single_values import encode_value
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
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    StructType,
)

ONE = uuid.UUID(int=1)


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (BOOLEAN, [True, None, False]),
        (INT, [-(2**31), None, 2**31 - 1]),
        (DATE, [-1, 0, None]),
        *((t, [-(2**63), None, 2**63 - 1]) for t in (LONG, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS)),
        (FLOAT, [0.5, None, float("-inf")]),
        (DOUBLE, [0.1, None, -0.0]),
        (STRING, ["", "ä\U0001f600", None]),
        (BINARY, [b"", b"\xff", None]),
        (FixedType(2), [b"ab", None]),
        (UUID, [ONE, None]),
        (DecimalType(38, 2), [Decimal("-1.25"), None, Decimal(10**36 - 1)]),
    ],
    ids=str,
)
def test_encoded_values_come_back(type_: IcebergType, values: list[Any]) -> None:
    encoded = pl.Series([None if v is None else encode_value(type_, v) for v in values], dtype=pl.Binary)
    assert decode_bounds(type_, encoded).to_list() == values
    assert decode_bounds(type_, encoded.head(0)).to_list() == []
    assert decode_bounds(type_, pl.Series([None], dtype=pl.Binary)).to_list() == [None]


def test_values_written_when_the_type_was_narrower_stand_next_to_wide_ones() -> None:
    longs = pl.Series([struct.pack("<i", -5), struct.pack("<q", 2**40), None])
    assert decode_bounds(LONG, longs).to_list() == [-5, 2**40, None]
    doubles = pl.Series([struct.pack("<f", 0.5), struct.pack("<d", 0.1)])
    assert decode_bounds(DOUBLE, doubles).to_list() == [0.5, 0.1]


def test_days_beyond_all_timestamps_are_the_last_one() -> None:
    days = pl.Series([struct.pack("<i", n) for n in (0, 2_932_896, 2**31 - 1, -(2**31))])
    assert decode_bounds(TIMESTAMP_NS, days).to_list() == [0, 2**63 - 1, 2**63 - 1, -(2**63)]


@pytest.mark.parametrize(
    ("type_", "data"), [(LONG, b"abc"), (INT, b"12345678"), (DOUBLE, b""), (STRING, b"\xff"), (UUID, b"x")], ids=str
)
def test_damaged_bound_is_a_format_error(type_: IcebergType, data: bytes) -> None:
    with pytest.raises(FormatError, match=f"expected a `{type_}`, found {len(data)} bytes"):
        decode_bounds(type_, pl.Series([None, data]))


@pytest.mark.parametrize("type_", [VARIANT, StructType(())], ids=str)
def test_type_without_an_order_has_no_bounds(type_: IcebergType) -> None:
    assert decode_bounds(type_, pl.Series([b"x", None])).to_list() == [None, None]
