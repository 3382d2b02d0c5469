"""Binding predicates to a schema."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    And,
    Comparison,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
    bind,
    columns_of,
    convert_literal,
)
from bergline.format.schema import Schema
from bergline.format.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    UUID,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

SCHEMA = Schema(
    fields=(
        NestedField(1, "Id", True, LONG),
        NestedField(2, "place", False, StructType((NestedField(3, "city", False, STRING),))),
        NestedField(4, "tags", False, ListType(5, STRING, False)),
        NestedField(6, "scores", False, MapType(7, STRING, 8, INT, False)),
    )
)
NAIVE = dt.datetime(2020, 1, 1, 0, 0, 0, 1)  # noqa: DTZ001
DAYS_2020 = 18262
MICROS_2020 = DAYS_2020 * 86_400_000_000


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (ALWAYS_TRUE, ALWAYS_TRUE),
        (Comparison("ID", "<", Decimal("5.0")), Comparison("Id", "<", 5)),
        (IsIn("id", (1, Decimal(2))), IsIn("Id", (1, 2))),
        (IsNull("Place.CITY"), IsNull("place.city")),
        (Not(And(IsNull("id"), IsNull("tags"))), Not(And(IsNull("Id"), IsNull("tags")))),
        (Or(IsNull("scores"), ALWAYS_TRUE), Or(IsNull("scores"), ALWAYS_TRUE)),
    ],
)
def test_names_and_literals_are_bound(predicate: Predicate, expected: Predicate) -> None:
    assert bind(predicate, SCHEMA) == expected


def test_unknown_column_is_not_found() -> None:
    with pytest.raises(NotFoundError, match="`idd`"):
        bind(Not(IsNull("idd")), SCHEMA)


@pytest.mark.parametrize("column", ["tags.element", "scores.key", "scores.value"])
def test_column_inside_a_list_or_map_is_not_supported(column: str) -> None:
    with pytest.raises(UnsupportedError, match=f"found `{column}`"):
        bind(IsNull(column), SCHEMA)


def test_columns_are_collected_from_all_branches() -> None:
    predicate = Or(And(IsNull("a"), Not(IsIn("b", (1,)))), And(Comparison("c", "=", 1), ALWAYS_TRUE))
    assert columns_of(predicate) == {"a", "b", "c"}


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (BOOLEAN, True, True),
        (INT, 2**40, 2**40),
        (LONG, Decimal("7.00"), 7),
        (FLOAT, Decimal("0.5"), 0.5),
        (DOUBLE, 3, 3.0),
        (DecimalType(9, 2), 3, Decimal(3)),
        (DecimalType(9, 2), Decimal("1.234"), Decimal("1.234")),
        (STRING, "x", "x"),
        (BINARY, b"x", b"x"),
        (DATE, dt.date(2020, 1, 1), DAYS_2020),
        (DATE, "2020-01-01", DAYS_2020),
        (TIMESTAMP, NAIVE, MICROS_2020 + 1),
        (TIMESTAMP, "2020-01-01T00:00:00.000001", MICROS_2020 + 1),
        (TIMESTAMPTZ, "2020-01-01T01:00:00+01:00", MICROS_2020),
        (TIMESTAMPTZ, dt.date(2020, 1, 1), MICROS_2020),
    ],
)
def test_literal_becomes_a_plain_value(type_: IcebergType, value: Any, expected: Any) -> None:
    converted = convert_literal(value, type_, "c")
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        (BOOLEAN, 1),
        (INT, True),
        (INT, "1"),
        (INT, 1.5),
        (LONG, Decimal("1.5")),
        (LONG, 2**63),
        (LONG, -(2**63) - 1),
        (LONG, Decimal("1e30")),
        (LONG, Decimal("Infinity")),
        (LONG, Decimal("NaN")),
        (DOUBLE, float("nan")),
        (DOUBLE, 10**400),
        (DecimalType(9, 2), 1.5),
        (DecimalType(9, 2), Decimal("NaN")),
        (DecimalType(9, 2), Decimal("1e38")),
        (DecimalType(9, 2), Decimal("1e-39")),
        (STRING, 5),
        (BINARY, "x"),
        (DATE, "2020-13-01"),
        (DATE, NAIVE),
        (TIMESTAMP, "yesterday"),
        (UUID, "x"),
        (StructType(()), 1),
        (LONG, None),
    ],
    ids=str,
)
def test_literal_that_does_not_fit_is_refused(type_: IcebergType, value: Any) -> None:
    with pytest.raises(InvalidInputError, match="to compare with column `c`, found"):
        convert_literal(value, type_, "c")
