"""Single values as bytes."""

import struct
import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import FormatError
from bergline.format.types import (
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
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
)
from bergline.format.values import decode_value, encode_value, truncate_lower, truncate_upper

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


@pytest.mark.parametrize(("type_", "narrow"), [(LONG, struct.pack("<i", -5)), (DOUBLE, struct.pack("<f", -5.0))])
def test_bound_written_before_widening_is_still_read(type_: IcebergType, narrow: bytes) -> None:
    assert decode_value(type_, narrow) == -5


@pytest.mark.parametrize(
    ("type_", "data"),
    [
        (INT, b""),
        (INT, b"\x00" * 8),
        (LONG, b"\x00" * 5),
        (DATE, b"\x00" * 3),
        (TIMESTAMP, b"\x00" * 4),
        (DOUBLE, b"\x00" * 9),
        (STRING, b"\xff\xfe"),
        (UUID, b"\x00" * 15),
    ],
)
def test_bytes_that_are_no_value_are_refused(type_: IcebergType, data: bytes) -> None:
    with pytest.raises(FormatError, match=f"expected a `{type_}`, found {len(data)} bytes"):
        decode_value(type_, data)


def test_nested_types_have_no_bytes() -> None:
    nested = ListType(1, INT, False)
    with pytest.raises(FormatError, match="expected a primitive type"):
        encode_value(nested, [1])
    with pytest.raises(FormatError, match="expected a primitive type"):
        decode_value(nested, b"")


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
