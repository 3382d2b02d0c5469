"""Defaults: JSON single values both ways, and what a column may default to."""

import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.format.types.defaults import check_default, decode_default, encode_default, initial_value, write_value
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
    MapType,
    NestedField,
    StructType,
)

ANY_UUID = "f79c3e09-677c-4bbd-a479-3f349cb785e7"
POINT = StructType((NestedField(2, "x", False, INT), NestedField(3, "name", False, STRING)))

# the examples of the specification, and the ends of each type
VALUES: list[tuple[IcebergType, Any, Any]] = [
    (BOOLEAN, True, True),
    (INT, 34, 34),
    (INT, -(2**31), -(2**31)),
    (LONG, 2**63 - 1, 2**63 - 1),
    (FLOAT, 1.0, 1.0),
    (FLOAT, 0.1, 0.10000000149011612),
    (DOUBLE, 0.1, 0.1),
    (DOUBLE, -0.0, -0.0),
    (DecimalType(9, 2), "14.20", Decimal("14.20")),
    (DecimalType(38, 0), "9" * 38, Decimal("9" * 38)),
    (DecimalType(3, 3), "-0.001", Decimal("-0.001")),
    (DATE, "2017-11-16", 17486),
    (TIME, "22:31:08.123456", 81_068_123_456),
    (TIMESTAMP, "2017-11-16T22:31:08.123456", 1_510_871_468_123_456),
    (TIMESTAMPTZ, "2017-11-16T22:31:08.123456+00:00", 1_510_871_468_123_456),
    (TIMESTAMP_NS, "2017-11-16T22:31:08.123456789", 1_510_871_468_123_456_789),
    (TIMESTAMPTZ_NS, "2017-11-16T22:31:08.123456789+00:00", 1_510_871_468_123_456_789),
    (STRING, "iceberg", "iceberg"),
    (UUID, ANY_UUID, uuid.UUID(ANY_UUID)),
    (FixedType(4), "000102ff", b"\x00\x01\x02\xff"),
    (BINARY, "000102ff", b"\x00\x01\x02\xff"),
    (BINARY, "", b""),
    (POINT, {"2": 1, "3": "bar"}, {"x": 1, "name": "bar"}),
    (POINT, {}, {}),
    (ListType(1, INT, False), [1, None, 3], [1, None, 3]),
    (MapType(1, STRING, 2, DATE, False), {"keys": ["a"], "values": ["1970-01-02"]}, [("a", 1)]),
    (UNKNOWN, None, None),
]


@pytest.mark.parametrize(("type_", "wire", "value"), VALUES, ids=str)
def test_single_value_and_its_json(type_: IcebergType, wire: Any, value: Any) -> None:
    decoded = decode_default(type_, wire)
    assert (decoded, type(decoded), str(decoded)) == (value, type(value), str(value))
    assert encode_default(type_, value) == wire


def test_other_writers_spellings_are_read() -> None:
    assert decode_default(DOUBLE, 1) == 1.0
    assert decode_default(FixedType(1), "FF") == b"\xff"
    assert decode_default(UUID, ANY_UUID.upper()) == uuid.UUID(ANY_UUID)


@pytest.mark.parametrize(
    ("type_", "wire"),
    [
        (BOOLEAN, 1),
        (INT, True),
        (INT, 2**31),
        (INT, 1.5),
        (INT, "1"),
        (LONG, 2**63),
        (FLOAT, 1e300),
        (FLOAT, "1"),
        (DOUBLE, 10**400),
        (DecimalType(9, 2), "14.2"),
        (DecimalType(9, 2), 14.20),
        (DecimalType(3, 2), "14.20"),
        (DecimalType(9, 2), "NaN"),
        (DecimalType(9, 2), "1_4.20"),
        (DecimalType(9, 2), ""),
        (DATE, 5),
        (DATE, "+9999999-01-01"),
        (TIMESTAMP_NS, "2500-01-01T00:00:00"),
        (TIMESTAMPTZ, "2017-11-16T22:31:08"),
        (STRING, "\ud800"),
        (UUID, "{79c3e09-677c-4bbd-a479-3f349cb785e7"),
        (UUID, "f79c3e09-677c-4bbd-a479"),
        (FixedType(4), "0001"),
        (BINARY, "0"),
        (BINARY, "00 01"),
        (POINT, []),
        (ListType(1, INT, False), {}),
        (MapType(1, STRING, 2, INT, False), {"keys": ["a"], "values": []}),
        (VARIANT, "x"),
        (GeometryType("OGC:CRS84"), "POINT (30 10)"),
    ],
    ids=str,
)
def test_other_json_is_refused(type_: IcebergType, wire: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"expected a `.*` value, found .* at \$"):
        decode_default(type_, wire)


def test_error_names_the_place_inside_the_value() -> None:
    type_ = ListType(1, MapType(2, STRING, 3, POINT, False), False)
    with pytest.raises(InvalidInputError, match=r"expected a `int` value, found 'x' at \$\[0\]\.values\[1\]\.2"):
        decode_default(type_, [{"keys": ["a", "b"], "values": [None, {"2": "x"}]}])


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (INT, "1"),
        (INT, 2**31),
        (BOOLEAN, 0),
        (DATE, "2017-11-16"),
        (TIME, 86_400_000_000),
        (DOUBLE, float("nan")),
        (FLOAT, float("inf")),
        (DecimalType(9, 2), Decimal("14.2")),
        (DecimalType(9, 2), 14),
        (FixedType(2), b"\x00"),
        (UUID, b"\x00" * 16),
        (BINARY, "00"),
        (POINT, 5),
    ],
    ids=str,
)
def test_value_of_another_type_is_refused(type_: IcebergType, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected a `"):
        encode_default(type_, value)


@pytest.mark.parametrize("type_", [UNKNOWN, VARIANT, GeometryType("x"), GeographyType("x", "karney")], ids=str)
def test_some_types_default_to_null_only(type_: IcebergType) -> None:
    check_default(NestedField(1, "c", False, type_), None)
    with pytest.raises(InvalidInputError, match="expected no default for `c`"):
        check_default(NestedField(1, "c", False, type_), "x")


def test_struct_defaults_to_null_or_to_the_defaults_inside() -> None:
    fields = (NestedField(2, "x", False, INT, None, 1, 2), NestedField(3, "y", False, INT))
    column = NestedField(1, "point", False, StructType(fields), None, {}, None)
    check_default(column, column.initial_default)
    assert (initial_value(column), write_value(column)) == ({"x": 1, "y": None}, None)
    with pytest.raises(InvalidInputError, match=r"expected null or {} as the default of struct `point`"):
        check_default(column, {"2": 1})


def test_bad_default_names_its_column() -> None:
    with pytest.raises(InvalidInputError, match="in the default of `c`"):
        check_default(NestedField(1, "c", False, INT), "x")
