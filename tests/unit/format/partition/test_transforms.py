"""Transforms against the vectors that the specification publishes."""

import datetime as dt
import re
import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.format.partition.transforms import (
    IDENTITY,
    VOID,
    Bucket,
    TimeTransform,
    Transform,
    Truncate,
    UnknownTransform,
    hash_value,
    parse_transform,
)
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


def days(text: str) -> int:
    return (dt.date.fromisoformat(text) - dt.date(1970, 1, 1)).days


def micros(text: str) -> int:
    moment = dt.datetime.fromisoformat(text)
    aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return (aware - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(microseconds=1)


def nanos(text: str, more: int) -> int:
    return micros(text) * 1000 + more


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (INT, 34, 2017239379),
        (LONG, 34, 2017239379),
        (DecimalType(9, 2), Decimal("14.20"), -500754589),
        (DATE, days("2017-11-16"), -653330422),
        (TIME, (22 * 3600 + 31 * 60 + 8) * 1_000_000, -662762989),
        (TIMESTAMP, micros("2017-11-16T22:31:08"), -2047944441),
        (TIMESTAMP, micros("2017-11-16T22:31:08.000001"), -1207196810),
        (TIMESTAMPTZ, micros("2017-11-16T14:31:08-08:00"), -2047944441),
        (TIMESTAMPTZ, micros("2017-11-16T14:31:08.000001-08:00"), -1207196810),
        (TIMESTAMP_NS, nanos("2017-11-16T22:31:08", 0), -2047944441),
        (TIMESTAMP_NS, nanos("2017-11-16T22:31:08.000001", 1), -1207196810),
        (TIMESTAMPTZ_NS, nanos("2017-11-16T14:31:08-08:00", 0), -2047944441),
        (TIMESTAMPTZ_NS, nanos("2017-11-16T14:31:08.000001-08:00", 1), -1207196810),
        (STRING, "iceberg", 1210000089),
        (UUID, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7"), 1488055340),
        (UUID, uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7").bytes, 1488055340),
        (FixedType(4), b"\x00\x01\x02\x03", -188683207),
        (BINARY, b"\x00\x01\x02\x03", -188683207),
        # not for buckets so far, but published
        (BOOLEAN, True, 1392991556),
        (FLOAT, 1.0, -142385009),
        (FLOAT, -0.0, 1669671676),
        (DOUBLE, 1.0, -142385009),
        (DOUBLE, 0.0, 1669671676),
        (DOUBLE, -0.0, 1669671676),
    ],
)
def test_hash_is_the_published_one(type_: IcebergType, value: Any, expected: int) -> None:
    assert hash_value(type_, value) == expected


def test_bucket_clears_the_sign_before_the_modulo() -> None:
    assert Bucket(100).apply(DATE, days("2017-11-16")) == (-653330422 & 0x7FFFFFFF) % 100


def test_decimal_hash_uses_all_38_digits() -> None:
    near = Decimal(12345678901234567890123456789012345678)
    assert hash_value(DecimalType(38, 0), near) != hash_value(DecimalType(38, 0), near + Decimal(1))


@pytest.mark.parametrize(
    ("type_", "width", "value", "expected"),
    [
        (INT, 10, 1, 0),
        (INT, 10, -1, -10),
        (LONG, 10, 10, 10),
        (DecimalType(9, 2), 50, Decimal("10.65"), Decimal("10.50")),
        (DecimalType(9, 2), 50, Decimal("-0.05"), Decimal("-0.50")),
        (DecimalType(38, 0), 10, Decimal("9" * 38), Decimal("9" * 37 + "0")),
        (STRING, 3, "iceberg", "ice"),
        (STRING, 3, "ab", "ab"),
        (STRING, 1, "\U0001f600x", "\U0001f600"),
        (BINARY, 2, b"\x01\x02\x03", b"\x01\x02"),
    ],
)
def test_truncate_as_the_specification_says(type_: IcebergType, width: int, value: Any, expected: Any) -> None:
    assert Truncate(width).apply(type_, value) == expected


@pytest.mark.parametrize(
    ("unit", "type_", "value", "expected"),
    [
        ("year", DATE, days("2017-11-16"), 47),
        ("month", DATE, days("2017-11-16"), 574),
        ("day", DATE, days("2017-11-16"), 17486),
        ("year", TIMESTAMP, micros("2017-11-16T22:31:08"), 47),
        ("month", TIMESTAMPTZ, micros("2017-11-16T22:31:08+00:00"), 574),
        ("day", TIMESTAMP, micros("2017-11-16T22:31:08"), 17486),
        ("hour", TIMESTAMP, micros("2017-11-16T22:31:08"), 419686),
        ("year", TIMESTAMP_NS, nanos("2017-11-16T22:31:08", 1), 47),
        ("month", TIMESTAMPTZ_NS, nanos("2017-11-16T22:31:08", 1), 574),
        ("day", TIMESTAMP_NS, nanos("2017-11-16T22:31:08", 1), 17486),
        ("hour", TIMESTAMP_NS, nanos("2017-11-16T22:31:08", 1), 419686),
        ("hour", TIMESTAMP_NS, -1, -1),
        ("year", DATE, -1, -1),
        ("month", DATE, -1, -1),
        ("day", TIMESTAMP, -1, -1),
        ("hour", TIMESTAMPTZ, -1, -1),
    ],
)
def test_time_is_whole_units_since_1970_rounded_down(unit: str, type_: IcebergType, value: int, expected: int) -> None:
    assert TimeTransform(unit).apply(type_, value) == expected


@pytest.mark.parametrize(
    ("transform", "type_"),
    [(IDENTITY, STRING), (Bucket(4), LONG), (Truncate(4), STRING), (TimeTransform("day"), DATE), (VOID, INT)],
)
def test_null_stays_null(transform: Transform, type_: IcebergType) -> None:
    assert transform.apply(type_, None) is None


def test_void_is_always_null() -> None:
    assert VOID.apply(INT, 5) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("identity", IDENTITY),
        ("void", VOID),
        ("year", TimeTransform("year")),
        ("bucket[16]", Bucket(16)),
        ("truncate[3]", Truncate(3)),
        ("zorder[3]", UnknownTransform("zorder[3]")),
    ],
)
def test_text_survives_parsing(text: str, expected: Transform) -> None:
    assert parse_transform(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize("text", ["Identity", "BUCKET[16]", "Day"])
def test_case_does_not_count(text: str) -> None:
    assert parse_transform(text) == parse_transform(text.lower())


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[0]", "bucket[2147483648]", f"truncate[{'9' * 5000}]"])
def test_number_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a number from 1"):
        parse_transform(text)


@pytest.mark.parametrize(
    ("transform", "source", "result"),
    [
        (IDENTITY, STRING, STRING),
        (Bucket(4), UUID, INT),
        (Truncate(4), DecimalType(9, 2), DecimalType(9, 2)),
        (TimeTransform("day"), TIMESTAMPTZ, DATE),
        (TimeTransform("month"), DATE, INT),
        (TimeTransform("hour"), TIMESTAMP, INT),
        (TimeTransform("day"), TIMESTAMP_NS, DATE),
        (Bucket(4), TIMESTAMPTZ_NS, INT),
        (IDENTITY, UNKNOWN, UNKNOWN),
        (VOID, DOUBLE, DOUBLE),
        (VOID, VARIANT, VARIANT),
        (UnknownTransform("zorder"), INT, STRING),
    ],
)
def test_result_type(transform: Transform, source: IcebergType, result: IcebergType) -> None:
    assert transform.result_type(source) == result


@pytest.mark.parametrize(
    ("transform", "source"),
    [
        (IDENTITY, ListType(1, INT, False)),
        (IDENTITY, VARIANT),
        (IDENTITY, GeometryType("crs")),
        (IDENTITY, GeographyType("crs", "karney")),
        (Bucket(4), GeometryType("crs")),
        (Bucket(4), UNKNOWN),
        (Bucket(4), FLOAT),
        (Bucket(4), BOOLEAN),
        (Truncate(4), DATE),
        (TimeTransform("hour"), DATE),
        (TimeTransform("day"), TIME),
    ],
)
def test_source_that_does_not_fit_is_refused(transform: Transform, source: IcebergType) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(f"found `{source}`")):
        transform.result_type(source)


def test_unknown_transform_refuses_to_write() -> None:
    with pytest.raises(InvalidInputError, match="found `zorder`"):
        UnknownTransform("zorder").apply(INT, 1)


@pytest.mark.parametrize(("type_", "lowest"), [(INT, -(2**31)), (LONG, -(2**63))])
def test_truncate_below_the_smallest_number_wraps_as_in_java(type_: IcebergType, lowest: int) -> None:
    assert Truncate(10).apply(type_, lowest) == lowest - lowest % 10 + 2 * -lowest
    assert Truncate(10).apply(type_, lowest + 10) == lowest + 10 - (lowest + 10) % 10


def test_dates_of_any_year_have_years_and_months() -> None:
    assert TimeTransform("year").apply(DATE, 2_932_897) == 10_000 - 1970
    assert TimeTransform("month").apply(DATE, -719_529) == (-1 - 1970) * 12 + 11
