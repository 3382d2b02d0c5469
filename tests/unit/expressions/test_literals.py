"""Where literals stand among the values of a type."""

import datetime as dt
import math
import re
import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.expressions.literals import LiteralPosition, locate
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
    IcebergType,
    StructType,
)

NAIVE = dt.datetime(2020, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001
DAYS_2020 = 18262
MICROS_2020 = DAYS_2020 * 86_400_000_000
SOME_UUID = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
MAX_DOUBLE = 1.7976931348623157e308


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (BOOLEAN, True, True),
        (LONG, Decimal("7.00"), 7),
        (LONG, Decimal("0e100"), 0),
        (FLOAT, Decimal("0.5"), 0.5),
        (DOUBLE, 3, 3.0),
        (DOUBLE, Decimal("Infinity"), float("inf")),
        (DOUBLE, float("-inf"), float("-inf")),
        (DecimalType(9, 2), 3, Decimal("3.00")),
        (DecimalType(9, 2), "3.5", Decimal("3.50")),
        (DecimalType(38, 38), Decimal(1).scaleb(-38), Decimal(1).scaleb(-38)),
        (STRING, "x", "x"),
        (STRING, "\U0001f600", "\U0001f600"),
        (BINARY, b"x", b"x"),
        (FixedType(2), b"xyz", b"xyz"),
        (UUID, SOME_UUID, SOME_UUID),
        (UUID, "F79C3E09-677C-4BBD-A479-3F349CB785E7", SOME_UUID),
        (TIME, dt.time(1, 2, 3, 4), 3_723_000_004),
        (TIME, "01:02:03.000004", 3_723_000_004),
        (DATE, dt.date(2020, 1, 1), DAYS_2020),
        (DATE, "2020-01-01", DAYS_2020),
        (DATE, dt.datetime(2020, 1, 1, tzinfo=dt.UTC), DAYS_2020),
        (TIMESTAMP, NAIVE, MICROS_2020 + 1),
        (TIMESTAMP, "2020-01-01T00:00:00.000001", MICROS_2020 + 1),
        (TIMESTAMP, "2020-01-01 00:00:00.000001000", MICROS_2020 + 1),
        (TIMESTAMP, "2020-1-1 0:0:0.000001", MICROS_2020 + 1),
        (TIMESTAMP, "2020", MICROS_2020),
        (TIMESTAMPTZ, "2020-01-01 00:00:00 UTC", MICROS_2020),
        (TIMESTAMPTZ, "2020-01-01T00:00:00Z", MICROS_2020),
        (TIMESTAMPTZ, "2019-12-31 19:00:00 UTC-5", MICROS_2020),
        (DATE, "2020-1-1", DAYS_2020),
        (DATE, "+10000-01-01", 2932897),
        (LONG, 7.0, 7),
        (DecimalType(9, 2), 0.1, Decimal("0.10")),
        (TIMESTAMP, "1969-12-31T23:59:59.999999", -1),
        (TIMESTAMPTZ, "2020-01-01T01:00:00+01:00", MICROS_2020),
        (TIMESTAMPTZ, dt.date(2020, 1, 1), MICROS_2020),
        (TIMESTAMP_NS, "2020-01-01T00:00:00.000001999", MICROS_2020 * 1000 + 1999),
        (TIMESTAMPTZ_NS, "2020-01-01T01:00:00.5+01:00", MICROS_2020 * 1000 + 500_000_000),
        (TIMESTAMP_NS, NAIVE, MICROS_2020 * 1000 + 1000),
    ],
    ids=str,
)
def test_literal_that_equals_a_value_of_the_type(type_: IcebergType, value: Any, expected: Any) -> None:
    found = locate(value, type_, "c")
    assert found == LiteralPosition(expected)
    assert type(found.value) is type(expected)


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (INT, 2**40, LiteralPosition(2**31 - 1, 1)),
        (INT, -(2**31) - 1, LiteralPosition(-(2**31), -1)),
        (LONG, 2**63, LiteralPosition(2**63 - 1, 1)),
        (LONG, -(2**63) - 1, LiteralPosition(-(2**63), -1)),
        (LONG, Decimal("1.5"), LiteralPosition(1, 1)),
        (LONG, Decimal("-1.5"), LiteralPosition(-2, 1)),
        (LONG, Decimal("1e-999999"), LiteralPosition(0, 1)),
        (LONG, Decimal("-1e-999999"), LiteralPosition(-1, 1)),
        (LONG, Decimal("1e999999"), LiteralPosition(2**63 - 1, 1)),
        (LONG, Decimal("-1e999999"), LiteralPosition(-(2**63), -1)),
        (LONG, Decimal(f"{2**63 - 1}.5"), LiteralPosition(2**63 - 1, 1)),
        (DOUBLE, 10**400, LiteralPosition(MAX_DOUBLE, 1)),
        (DOUBLE, Decimal("-1e400"), LiteralPosition(-MAX_DOUBLE, -1)),
        (DecimalType(9, 2), Decimal("1.234"), LiteralPosition(Decimal("1.23"), 1)),
        (DecimalType(9, 2), Decimal("-1.234"), LiteralPosition(Decimal("-1.24"), 1)),
        (DecimalType(9, 2), Decimal("1e38"), LiteralPosition(Decimal("9999999.99"), 1)),
        (DecimalType(9, 2), Decimal("-1e38"), LiteralPosition(Decimal("-9999999.99"), -1)),
        (DecimalType(9, 2), Decimal("1e-39"), LiteralPosition(Decimal("0.00"), 1)),
        (DATE, NAIVE, LiteralPosition(DAYS_2020, 1)),
        (INT, 1.5, LiteralPosition(1, 1)),
        (INT, float("inf"), LiteralPosition(2**31 - 1, 1)),
        (INT, float("nan"), LiteralPosition(2**31 - 1, 1)),
        (DecimalType(9, 2), float("-inf"), LiteralPosition(Decimal("-9999999.99"), -1)),
        (TIME, "01:02:03.0000045", LiteralPosition(3_723_000_004, 1)),
        (TIMESTAMP, "2020-01-01 00:00:00.000001999", LiteralPosition(MICROS_2020 + 1, 1)),
        (TIMESTAMP, "1969-12-31 23:59:59.9999995", LiteralPosition(-1, 1)),
        (TIMESTAMP_NS, "2020-01-01 00:00:00.0000000001", LiteralPosition(MICROS_2020 * 1000, 1)),
        (DATE, dt.datetime(1969, 12, 31, 1, tzinfo=dt.UTC), LiteralPosition(-1, 1)),
        (TIMESTAMP_NS, dt.date(2300, 1, 1), LiteralPosition(2**63 - 1, 1)),
        (TIMESTAMP_NS, "1000-01-01", LiteralPosition(-(2**63), -1)),
    ],
    ids=str,
)
def test_literal_between_values_or_beyond_them_is_beside_the_nearest(
    type_: IcebergType, value: Any, expected: LiteralPosition
) -> None:
    assert locate(value, type_, "c") == expected


def test_nan_is_a_value_of_doubles() -> None:
    assert math.isnan(locate(float("nan"), DOUBLE, "c").value)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (BOOLEAN, 1),
        (BOOLEAN, "true"),
        (INT, True),
        (INT, "1"),
        (LONG, Decimal("Infinity")),
        (LONG, Decimal("NaN")),
        (DOUBLE, "1"),
        (DecimalType(9, 2), Decimal("NaN")),
        (DecimalType(9, 2), "x"),
        (STRING, 5),
        (STRING, "\ud800"),
        (BINARY, "x"),
        (FixedType(1), "x"),
        (DATE, "2020-13-01"),
        (DATE, "2020-01-01T00:00:00"),
        (TIMESTAMP, "2020-01-01 24:00"),
        (TIMESTAMP, "2020-01-01 10:00:00 Europe/Berlin"),
        (TIMESTAMP, "2020-01-01 10:00:00+19:00"),
        (TIMESTAMP, "2020-01-01 10:00:00." + "0" * 5000),
        (DATE, 5),
        (TIME, "25:00"),
        (TIME, dt.time(1, tzinfo=dt.UTC)),
        (TIMESTAMP, "yesterday"),
        (TIMESTAMP, 5),
        (UUID, "x"),
        (UUID, b"x" * 16),
        (UNKNOWN, 1),
        (VARIANT, "x"),
        (StructType(()), 1),
        (LONG, None),
    ],
    ids=str,
)
def test_literal_that_does_not_compare_is_refused(type_: IcebergType, value: Any) -> None:
    with pytest.raises(InvalidInputError, match=r"to compare with (column `c`|true|false), found"):
        locate(value, type_, "c")


@pytest.mark.parametrize(
    ("type_", "value", "hint"),
    [
        (DOUBLE, "NaN", r"write isnan\(c\), or double\('NaN'\) as a literal"),
        (FLOAT, "Infinity", r"infinity as double\('Infinity'\)"),
        (LONG, "1", "without quotes"),
        (TIMESTAMP, "2020-01-01 Europe/Berlin", "a zone is Z, UTC, GMT or an offset"),
    ],
)
def test_likely_mistake_comes_with_a_hint(type_: IcebergType, value: str, hint: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        locate(value, type_, "c")
    assert re.search(hint, " ".join(caught.value.hints))
