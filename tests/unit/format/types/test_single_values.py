"""Single values as bytes."""

import math
import re
import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import FormatError, InvalidInputError
from bergline.format.types.single_values import decode_value, encode_value, truncate_lower, truncate_upper
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
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
)

ENCODED = [
    (BOOLEAN, True, b"\x01"),
    (BOOLEAN, False, b"\x00"),
    (INT, 34, b"\x22\x00\x00\x00"),
    (INT, -1, b"\xff\xff\xff\xff"),
    (LONG, 34, b"\x22" + b"\x00" * 7),
    (FLOAT, 1.5, struct.pack("<f", 1.5)),
    (DOUBLE, -0.0, b"\x00" * 7 + b"\x80"),
    (DATE, -1, b"\xff\xff\xff\xff"),
    (TIME, 1, b"\x01" + b"\x00" * 7),
    (TIMESTAMP, 1, b"\x01" + b"\x00" * 7),
    (TIMESTAMPTZ, 1, b"\x01" + b"\x00" * 7),
    (TIMESTAMP_NS, -1, b"\xff" * 8),
    (TIMESTAMPTZ_NS, 2**63 - 1, b"\xff" * 7 + b"\x7f"),
    (STRING, "zü", b"z\xc3\xbc"),
    (STRING, "", b""),
    (UUID, uuid.UUID(int=1), b"\x00" * 15 + b"\x01"),
    (FixedType(2), b"\x00\x01", b"\x00\x01"),
    (BINARY, b"\xff", b"\xff"),
    (DecimalType(9, 2), Decimal("14.20"), b"\x05\x8c"),
    (DecimalType(9, 2), Decimal("0.00"), b"\x00"),
    (DecimalType(9, 2), Decimal("1.27"), b"\x7f"),
    (DecimalType(9, 2), Decimal("1.28"), b"\x00\x80"),
    (DecimalType(9, 2), Decimal("-1.28"), b"\x80"),
    (DecimalType(9, 2), Decimal("-1.29"), b"\xff\x7f"),
    (DecimalType(38, 1), Decimal("9" * 37 + ".9"), (10**38 - 1).to_bytes(16, "big")),
]


@pytest.mark.parametrize(("type_", "value", "data"), ENCODED)
def test_value_has_the_bytes_of_the_specification(type_: IcebergType, value: Any, data: bytes) -> None:
    assert encode_value(type_, value) == data
    assert decode_value(type_, data) == value


def test_uuid_bytes_are_taken_as_they_are() -> None:
    assert encode_value(UUID, b"\x07" * 16) == b"\x07" * 16


@pytest.mark.parametrize(
    ("type_", "narrow", "value"),
    [
        (LONG, struct.pack("<i", -5), -5),
        (DOUBLE, struct.pack("<f", -5.0), -5.0),
        (TIMESTAMP, struct.pack("<i", -1), -86_400_000_000),
        (TIMESTAMP_NS, struct.pack("<i", 1), 86_400_000_000_000),
        (DecimalType(38, 2), b"\x05\x8c", Decimal("14.20")),
    ],
    ids=str,
)
def test_bound_written_before_widening_is_still_read(type_: IcebergType, narrow: bytes, value: Any) -> None:
    assert decode_value(type_, narrow) == value


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (INT, b""),
        (INT, b"\x00" * 8),
        (LONG, b"\x00" * 5),
        (DATE, b"\x00" * 3),
        (TIMESTAMPTZ, b"\x00" * 4),
        (DOUBLE, b"\x00" * 9),
        (BOOLEAN, b""),
        (DecimalType(9, 2), b""),
        (DecimalType(9, 2), b"\x01" * 1000),
        (GeometryType("OGC:CRS84"), b"\x00" * 8),
        (STRING, b"\xff\xfe"),
        (UUID, b"\x00" * 15),
    ],
)
def test_bytes_that_are_no_value_are_refused(type_: IcebergType, data: bytes) -> None:
    with pytest.raises(FormatError, match=f"expected a `{re.escape(str(type_))}`(?: bound)?, found {len(data)} bytes"):
        decode_value(type_, data)


def test_nested_types_have_no_bytes() -> None:
    nested = ListType(1, INT, False)
    with pytest.raises(FormatError, match="expected a type that has bounds, found `list<int>`"):
        encode_value(nested, [1])
    with pytest.raises(FormatError, match="expected a `list<int>` bound"):
        decode_value(nested, b"")


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INT, 2**31),
        (INT, "1"),
        (FLOAT, 1e300),
        (STRING, 5),
        (STRING, "\ud800"),
        (DecimalType(9, 2), Decimal("1.005")),
        (DecimalType(9, 2), Decimal("NaN")),
        (DecimalType(9, 2), 1.5),
        (GeometryType("OGC:CRS84"), (1.0,)),
        (GeometryType("OGC:CRS84"), (1.0,) * 5),
        (BINARY, "x"),
    ],
    ids=str,
)
def test_value_of_another_type_is_refused(type_: IcebergType, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        encode_value(type_, value)


@pytest.mark.parametrize(
    ("point", "data"),
    [
        ((1.0, -2.0), struct.pack("<2d", 1, -2)),
        ((1.0, -2.0, 3.0), struct.pack("<3d", 1, -2, 3)),
        ((1.0, -2.0, None, 4.0), struct.pack("<4d", 1, -2, math.nan, 4)),
        ((1.0, -2.0, 3.0, 4.0), struct.pack("<4d", 1, -2, 3, 4)),
    ],
)
@pytest.mark.parametrize("type_", [GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "karney")], ids=str)
def test_bound_of_shapes_is_a_point(type_: IcebergType, point: tuple[float | None, ...], data: bytes) -> None:
    assert encode_value(type_, point) == data
    assert decode_value(type_, data) == point


@pytest.mark.parametrize("point", [(1.0, 2.0, None), (1.0, 2.0, None, None)])
def test_coordinates_that_are_missing_at_the_end_are_left_out(point: tuple[float | None, ...]) -> None:
    assert len(encode_value(GeometryType("OGC:CRS84"), point)) == 16


def test_unknown_has_no_values() -> None:
    assert decode_value(UNKNOWN, b"\x00") is None
    with pytest.raises(FormatError, match="found `unknown`"):
        encode_value(UNKNOWN, 1)


def test_bounds_of_variants_stay_bytes() -> None:
    assert decode_value(VARIANT, encode_value(VARIANT, b"\x01\x00")) == b"\x01\x00"


@pytest.mark.parametrize(
    ("value", "length", "lower", "upper"),
    [
        ("abc", 3, "abc", "abc"),
        ("abcd", 3, "abc", "abd"),
        ("ab\U0010ffffd", 3, "ab\U0010ffff", "ac"),
        ("\U0010ffff" * 4, 3, "\U0010ffff" * 3, None),
        ("a\ud7ffx", 2, "a\ud7ff", "a\ue000"),
        ("\U0001f600\U0001f600", 1, "\U0001f600", "\U0001f601"),
        (b"\x01\x02\x03", 2, b"\x01\x02", b"\x01\x03"),
        (b"\x01\xff\x03", 2, b"\x01\xff", b"\x02"),
        (b"\xff\xff\xff", 2, b"\xff\xff", None),
    ],
)
def test_prefix_bounds(value: Any, length: int, lower: Any, upper: Any) -> None:
    assert truncate_lower(value, length) == lower
    assert truncate_upper(value, length) == upper
