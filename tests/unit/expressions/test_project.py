"""Predicates on rows as predicates on partition values."""

from decimal import Decimal
from typing import Any

import pytest

from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    And,
    Comparison,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    bind,
)
from bergline.expressions.project import partition_schema, project_inclusive, project_strict
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BINARY, DATE, DOUBLE, INT, LONG, STRING, TIMESTAMP, DecimalType, NestedField

SCHEMA = Schema(
    fields=(
        NestedField(1, "i", False, INT),
        NestedField(2, "l", False, LONG),
        NestedField(3, "s", False, STRING),
        NestedField(4, "t", False, TIMESTAMP),
        NestedField(5, "d", False, DATE),
        NestedField(6, "m", False, DecimalType(6, 2)),
        NestedField(7, "f", False, DOUBLE),
        NestedField(8, "b", False, BINARY),
    )
)


def spec_of(*fields: tuple[str, str]) -> PartitionSpec:
    return PartitionSpec(
        0,
        tuple(
            PartitionField(SCHEMA.names[c].id if c in SCHEMA.names else 99, 1000 + n, f"p{n}", parse_transform(t))
            for n, (c, t) in enumerate(fields)
        ),
    )


def p(op: Any, literal: Any) -> Comparison:
    return Comparison("p0", op, literal)


WRAPPED = p("=", 2147483646)


@pytest.mark.parametrize(
    ("column", "transform", "text", "inclusive", "strict"),
    [
        ("i", "identity", "i < 5", p("<", 5), p("<", 5)),
        ("i", "identity", "i != 5", p("!=", 5), p("!=", 5)),
        ("i", "identity", "i NOT IN (5, 6)", Not(IsIn("p0", (5, 6))), Not(IsIn("p0", (5, 6)))),
        ("i", "identity", "i IS NULL", IsNull("p0"), IsNull("p0")),
        ("i", "void", "i < 5", ALWAYS_TRUE, ALWAYS_FALSE),
        ("i", "zorder[3]", "i < 5", ALWAYS_TRUE, ALWAYS_FALSE),
        ("l", "identity", "i < 5", ALWAYS_TRUE, ALWAYS_FALSE),
        ("i", "bucket[16]", "i = 34", p("=", 3), ALWAYS_FALSE),
        ("i", "bucket[16]", "i != 34", ALWAYS_TRUE, p("!=", 3)),
        ("i", "bucket[16]", "i < 34", ALWAYS_TRUE, ALWAYS_FALSE),
        ("i", "bucket[16]", "i IN (34, 34, 1)", IsIn("p0", (3, 4)), ALWAYS_FALSE),
        ("i", "bucket[16]", "i NOT IN (34)", ALWAYS_TRUE, Not(IsIn("p0", (3,)))),
        ("i", "bucket[16]", "i IS NOT NULL", Not(IsNull("p0")), Not(IsNull("p0"))),
        ("i", "truncate[16]", "i < 16", p("<=", 0), p("<", 16)),
        ("i", "truncate[16]", "i <= 16", p("<=", 16), p("<", 16)),
        ("i", "truncate[16]", "i > 15", p(">=", 16), p(">", 0)),
        ("i", "truncate[16]", "i >= 15", p(">=", 0), p(">", 0)),
        ("i", "truncate[16]", "i = -1", p("=", -16), ALWAYS_FALSE),
        ("i", "truncate[16]", "i != -1", ALWAYS_TRUE, p("!=", -16)),
        ("i", "truncate[10]", "i < 10", Or(p("<=", 0), WRAPPED), p("<", 10)),
        ("i", "truncate[10]", "i >= 10", p(">=", 10), And(p(">", 0), p("!=", 2147483646))),
        ("m", "truncate[10]", "m < 1.10", p("<=", Decimal("1.00")), p("<", Decimal("1.10"))),
        ("m", "truncate[10]", "m > 1.09", p(">=", Decimal("1.10")), p(">", Decimal("1.00"))),
        ("s", "truncate[3]", "s < 'abc'", p("<", "abc"), p("<", "abc")),
        ("s", "truncate[3]", "s < 'abcd'", p("<=", "abc"), p("<", "abc")),
        ("s", "truncate[3]", "s > 'ab'", p(">", "ab"), p(">", "ab")),
        ("s", "truncate[3]", "s > 'abc'", p(">=", "abc"), p(">", "abc")),
        ("s", "truncate[3]", "s = 'abcd'", p("=", "abc"), ALWAYS_FALSE),
        ("s", "truncate[3]", "s = 'ab'", p("=", "ab"), p("=", "ab")),
        ("s", "truncate[3]", "s NOT IN ('a', 'abc')", Not(IsIn("p0", ("a",))), Not(IsIn("p0", ("a", "abc")))),
        ("d", "month", "d < DATE '2020-02-01'", p("<=", 600), p("<", 601)),
        ("d", "year", "d = DATE '1969-06-01'", IsIn("p0", (-1, 0)), ALWAYS_FALSE),
        ("d", "day", "d = DATE '1969-12-31'", p("=", -1), ALWAYS_FALSE),
        ("t", "day", "t >= TIMESTAMP '2020-01-01 10:00:00'", p(">=", 18262), p(">", 18262)),
        ("t", "hour", "t < TIMESTAMP '1970-01-01 10:00:00'", p("<=", 9), p("<", 10)),
        ("t", "day", "t <= TIMESTAMP '1969-12-30 10:00:00'", p("<=", -1), p("<", -3)),
        ("t", "day", "t > TIMESTAMP '1969-12-30 10:00:00'", p(">=", -3), p(">", -1)),
        ("f", "identity", "f > 1.5", p(">", 1.5), p(">", 1.5)),
    ],
)
def test_projection(column: str, transform: str, text: str, inclusive: Predicate, strict: Predicate) -> None:
    bound, spec = bind(parse_predicate(text), SCHEMA), spec_of((column, transform))
    assert project_inclusive(bound, spec, SCHEMA) == inclusive
    assert project_strict(bound, spec, SCHEMA) == strict


@pytest.mark.parametrize(
    ("prefix", "negated", "inclusive", "strict"),
    [
        ("ab", False, StartsWith("p0", "ab"), StartsWith("p0", "ab")),
        ("abc", False, StartsWith("p0", "abc"), StartsWith("p0", "abc")),
        ("abcd", False, p("=", "abc"), ALWAYS_FALSE),
        ("ab", True, Not(StartsWith("p0", "ab")), Not(StartsWith("p0", "ab"))),
        ("abcd", True, ALWAYS_TRUE, p("!=", "abc")),
    ],
)
def test_prefixes_through_truncate(prefix: str, negated: bool, inclusive: Predicate, strict: Predicate) -> None:
    test = StartsWith("s", prefix)
    predicate: Predicate = Not(test) if negated else test
    spec = spec_of(("s", "truncate[3]"))
    assert project_inclusive(predicate, spec, SCHEMA) == inclusive
    assert project_strict(predicate, spec, SCHEMA) == strict


def test_fields_of_one_column_join() -> None:
    spec = spec_of(("i", "bucket[16]"), ("i", "truncate[16]"))
    bound = Comparison("i", "=", 34)
    assert project_inclusive(bound, spec, SCHEMA) == And(Comparison("p0", "=", 3), Comparison("p1", "=", 32))
    assert project_strict(Not(bound), spec, SCHEMA) == Or(Comparison("p0", "!=", 3), Comparison("p1", "!=", 32))


def test_constants_disappear_where_they_decide_nothing() -> None:
    spec = spec_of(("i", "identity"))
    never = Comparison("l", "=", None)
    bound = bind(Or(parse_predicate("i = 1 AND l = 2"), And(parse_predicate("i = 3"), never)), SCHEMA)
    assert project_inclusive(bound, spec, SCHEMA) == p("=", 1)
    assert project_strict(bound, spec, SCHEMA) == ALWAYS_FALSE
    assert project_inclusive(bind(parse_predicate("l = 2"), SCHEMA), spec, SCHEMA) == ALWAYS_TRUE


def test_field_of_a_dropped_column_or_with_a_transform_that_cannot_take_it_is_left_out() -> None:
    spec = spec_of(("gone", "identity"), ("f", "truncate[3]"), ("i", "identity"))
    assert list(partition_schema(spec, SCHEMA).names) == ["p2"]
    bound = bind(parse_predicate("f > 1 AND i = 2"), SCHEMA)
    assert project_inclusive(bound, spec, SCHEMA) == Comparison("p2", "=", 2)
