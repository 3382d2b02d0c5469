"""What is understood as a row expression, and what is refused before a row is read."""

import datetime as dt
from typing import Any

import pytest

from bergline.errors import BerglineError, InvalidInputError, NotFoundError, SqlSyntaxError, UnsupportedError
from bergline.table.row_expressions.parse import Names, conjuncts, parse_condition, parse_expression, parse_sql
from bergline.table.row_expressions.rows import ColumnPlace
from support.fixtures.expression_rows import NAMES, NOW, SCHEMA, bound, values

BOTH = Names({"target": SCHEMA, "source": SCHEMA.select(["i", "s"])}, NOW)


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("i", "int", [1, None, 2**31 - 1]),
        ("target.I", "int", [1, None, 2**31 - 1]),
        ("`i`", "int", [1, None, 2**31 - 1]),
        ("p.x", "long", [1, None, None]),
        ("target.p.q.w", "string", ["in", None, None]),
        ("(5)", "int", [5] * 3),
        ("5L", "long", [5] * 3),
        ("-3000000000", "long", [-3000000000] * 3),
        ("1e2", "double", [100.0] * 3),
        ("1.5F", "float", [1.5] * 3),
        ("'it\\'s'", "string", ["it's"] * 3),
        ("NULL", "unknown", [None] * 3),
        ("true", "boolean", [True] * 3),
        ("X'ff'", "binary", [b"\xff"] * 3),
        ("DATE '2020-02-29'", "date", [dt.date(2020, 2, 29)] * 3),
        ("TIMESTAMP '2020-02-29 01:00+01:00'", "timestamptz", [dt.datetime(2020, 2, 29, tzinfo=dt.UTC)] * 3),
        ("TIMESTAMP_NTZ '2020-02-29'", "timestamp", [dt.datetime(2020, 2, 29)] * 3),  # noqa: DTZ001
        ("current_date()", "date", [NOW.date()] * 3),
        ("current_timestamp()", "timestamptz", [NOW] * 3),
        ("i IN (1, NULL)", "boolean", [True, None, None]),
        ("i NOT IN (1, 2)", "boolean", [False, None, True]),
        ("i BETWEEN 1 AND l", "boolean", [True, None, None]),
        ("s LIKE 'a\\\\_%'", "boolean", [True, None, False]),
        ("s NOT LIKE '%n_'", "boolean", [True, None, False]),
        ("s LIKE 'a!_b' ESCAPE '!'", "boolean", [True, None, False]),
        ("i IS DISTINCT FROM 1", "boolean", [False, True, True]),
        ("b IS NOT TRUE", "boolean", [False, True, True]),
        ("isnull(i) OR isnotnull(l)", "boolean", [True, True, False]),
    ],
)
def test_expressions_have_the_type_and_values_of_spark(text: str, type_: str, expected: list[Any]) -> None:
    assert str(bound(text).type) == type_
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", SqlSyntaxError, "expected an expression, found empty text"),
        ("i +", SqlSyntaxError, "cannot read the expression `i +`"),
        ("i; DROP TABLE t", SqlSyntaxError, "cannot read the expression"),
        ("ii", NotFoundError, "no column `ii` in `ii`"),
        ("p.nothing", NotFoundError, "no column `p.nothing` in `p.nothing`"),
        ("li.element", UnsupportedError, "expected a column outside lists and maps, found `li.element`"),
        ("sum(i)", UnsupportedError, "expected an expression that can be evaluated here, found `SUM(i)` in `sum(i)`"),
        ("i IN (SELECT 1)", UnsupportedError, "found `i IN (SELECT 1)`"),
        ("rand() < 0.5", UnsupportedError, "found `RAND()` in `rand() < 0.5`"),
        ("INTERVAL 1 DAY", UnsupportedError, "found `INTERVAL '1' DAY`"),
        ("try_cast(s AS INT)", UnsupportedError, "found `TRY_CAST(s AS INT)`"),
        ("'it''s'", UnsupportedError, "found"),
        ("CAST(i AS ARRAY<INT>)", UnsupportedError, "expected a type that can be cast to, found `ARRAY<INT>`"),
        ("CAST(i AS DECIMAL(50, 2))", InvalidInputError, "expected a decimal of 1 to 38 digits"),
        ("TIMESTAMP '2020-01-01 00:00:00.1234567'", InvalidInputError, "expected at most six fractional digits"),
        ("1" * 40, InvalidInputError, "expected a number of at most 38 digits"),
        ("s LIKE 'a!b' ESCAPE '!'", InvalidInputError, "expected %, _ or ! after !"),
        ("i AND b", InvalidInputError, "expected a condition, found `i` of type `int` in `i AND b`"),
        ("i = 'x'", InvalidInputError, "expected `int` to compare, found text in `i = 'x'`"),
        ("i = s", InvalidInputError, "expected values of one type, found `int` and `string` in `i = s`"),
        ("s + 1", InvalidInputError, "expected a number, found `s` of type `string` in `s + 1`"),
    ],
)
def test_all_else_is_one_clear_error(text: str, error: type[BerglineError], message: str) -> None:
    with pytest.raises(error) as refused:
        bound(text)
    assert message in str(refused.value)


@pytest.mark.long
def test_deep_nesting_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="less nesting"):
        bound("(" * 20000 + "i" + ")" * 20000)


def test_a_name_on_both_sides_needs_an_alias() -> None:
    with pytest.raises(InvalidInputError, match=r"`i`, which may be `target.i` and `source.i`, in `i > 1`"):
        parse_expression("i > 1", BOTH)
    places = parse_expression("source.i > l", BOTH).places
    assert places == {ColumnPlace("source", "i"), ColumnPlace("target", "l")}
    assert parse_expression("i", BOTH.only("source")).places == {ColumnPlace("source", "i")}


def test_a_condition_is_boolean() -> None:
    assert str(parse_condition("NULL", NAMES).type) == "boolean"
    with pytest.raises(InvalidInputError, match="expected a condition, found `i \\+ 1` of type `int`"):
        parse_condition("i + 1", NAMES)


def test_conjuncts_are_the_parts_of_nested_ands() -> None:
    parts = conjuncts(parse_sql("(i = 1 AND (b AND s = 'x')) AND (l = 2 OR b)"))
    assert [part.sql() for part in parts] == ["i = 1", "b", "s = 'x'", "l = 2 OR b"]
