"""Predicates from SQL text."""

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest

from bergline.errors import InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import (
    UNKNOWN,
    Always,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    bind,
)
from bergline.expressions.times import Instant, parse_day, parse_instant, parse_time_of_day
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BOOLEAN, LONG, NestedField

A, B = Comparison("a", "=", 1), Comparison("b", "=", 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", A),
        ("a == 1", A),
        ("1 = a", A),
        ("a != 1", Comparison("a", "!=", 1)),
        ("a <> 1", Comparison("a", "!=", 1)),
        ("a < 1", Comparison("a", "<", 1)),
        ("1 < a", Comparison("a", ">", 1)),
        ("a <= -1", Comparison("a", "<=", -1)),
        ("1 >= a", Comparison("a", "<=", 1)),
        ("a > 1.50", Comparison("a", ">", Decimal("1.50"))),
        ("a >= 1e2", Comparison("a", ">=", Decimal(100))),
        ("a = 'x'", Comparison("a", "=", "x")),
        ("a = true", Comparison("a", "=", True)),
        ("s.x.y = 1", Comparison("s.x.y", "=", 1)),
        ("`a b` = 1", Comparison("a b", "=", 1)),
        ("a = DATE '2020-02-29'", Comparison("a", "=", parse_day("2020-02-29"))),
        ("a = CAST('2020-02-29' AS DATE)", Comparison("a", "=", parse_day("2020-02-29"))),
        ("a > TIMESTAMP '2020-01-01 10:00:00+00:00'", Comparison("a", ">", parse_instant("2020-01-01 10:00:00"))),
        ("a = TIMESTAMP '1970-01-01 00:00:00.000000001'", Comparison("a", "=", Instant(Fraction(1)))),
        ("a = TIMESTAMP '1970-1-1 0:00 UTC'", Comparison("a", "=", Instant(Fraction(0)))),
        ("a IN (1, 2)", IsIn("a", (1, 2))),
        ("a NOT IN ('x')", Not(IsIn("a", ("x",)))),
        ("a BETWEEN 1 AND 2", And(Comparison("a", ">=", 1), Comparison("a", "<=", 2))),
        ("a IS NULL", IsNull("a")),
        ("a IS NOT NULL", Not(IsNull("a"))),
        ("true", Always(True)),
        ("NOT false", Not(Always(False))),
        ("NOT a = 1", Not(A)),
        ("a = 1 AND b = 2", And(A, B)),
        ("a = 1 OR b = 2 AND a = 1", Or(A, And(B, A))),
        ("(a = 1 OR b = 2) AND a = 1", And(Or(A, B), A)),
        ("a = 1 AND b = 2 AND a = 1", And(And(A, B), A)),
        ("(a) = (1)", A),
        ("a = +1", A),
        ("a = - - 1", A),
        ("a = 1L", A),
        ("a = 1.5D", Comparison("a", "=", 1.5)),
        ("a = 0.1F", Comparison("a", "=", 0.10000000149011612)),
        ("a = 1.5BD", Comparison("a", "=", Decimal("1.5"))),
        ("a < double('Infinity')", Comparison("a", "<", float("inf"))),
        ("a = 'it\\'s'", Comparison("a", "=", "it's")),
        ("a = r'\\d'", Comparison("a", "=", "\\d")),
        ("a = X'1F'", Comparison("a", "=", b"\x1f")),
        ("a = X'1F0'", Comparison("a", "=", b"\x01\xf0")),
        ("a = TIME '10:00:00'", Comparison("a", "=", parse_time_of_day("10:00"))),
        ("a = NULL", Comparison("a", "=", None)),
        ("a IN (1, NULL)", IsIn("a", (1, None))),
        ("a NOT IN (1, NULL)", Not(IsIn("a", (1, None)))),
        ("a BETWEEN NULL AND 2", And(Comparison("a", ">=", None), Comparison("a", "<=", 2))),
        ("a <=> 1", And(Not(IsNull("a")), A)),
        ("1 <=> a", And(Not(IsNull("a")), A)),
        ("a <=> NULL", IsNull("a")),
        ("a IS NOT DISTINCT FROM 1", And(Not(IsNull("a")), A)),
        ("a IS DISTINCT FROM 1", Not(And(Not(IsNull("a")), A))),
        ("a LIKE 'x%'", StartsWith("a", "x")),
        ("a LIKE 'x%%'", StartsWith("a", "x")),
        ("a LIKE '%'", StartsWith("a", "")),
        ("a LIKE 'x'", Comparison("a", "=", "x")),
        ("a NOT LIKE 'x%'", Not(StartsWith("a", "x"))),
        (r"a LIKE 'x\%%'", StartsWith("a", "x%")),
        (r"a LIKE 'x\_y'", Comparison("a", "=", "x_y")),
        ("a LIKE 'x!%%' ESCAPE '!'", StartsWith("a", "x%")),
        ("startswith(a, 'x')", StartsWith("a", "x")),
        ("isnan(a)", And(Not(IsNull("a")), IsNan("a"))),
        ("active", Comparison("active", "=", True)),
        ("NOT active", Not(Comparison("active", "=", True))),
        ("active IS TRUE", And(Not(IsNull("active")), Comparison("active", "=", True))),
        ("active IS NOT FALSE", Not(And(Not(IsNull("active")), Comparison("active", "=", False)))),
        ("active AND a = 1", And(Comparison("active", "=", True), A)),
        ("NULL", UNKNOWN),
        (f"a > 1{'0' * 5000}", Comparison("a", ">", Decimal(f"1{'0' * 5000}"))),
    ],
)
def test_text_becomes_a_predicate(text: str, expected: Predicate) -> None:
    assert parse_predicate(text) == expected


@pytest.mark.parametrize("text", ["", "a =", "a = 1 AND", "= 1", "a = (", "a = 'x", "select 1", "a IN (", "a b c = 1"])
def test_text_that_is_no_expression_is_a_syntax_error(text: str) -> None:
    with pytest.raises(SqlSyntaxError) as caught:
        parse_predicate(text)
    assert caught.value.line >= 1
    assert caught.value.column >= 1


@pytest.mark.parametrize(
    "text",
    [
        "a = b",
        "a <=> b",
        "a IN (b)",
        "a BETWEEN 1 AND b",
        "a + 1 = 2",
        "a LIKE '%x'",
        "a LIKE 'x_'",
        "a LIKE 'x%y'",
        "a LIKE b",
        "a LIKE 'x' ESCAPE 'ab'",
        "a ILIKE 'x%'",
        "a LIKE ANY ('x%')",
        "startswith(a, b)",
        "a IN (SELECT 1)",
        "upper(a) = 'X'",
        "1 = 1",
        "5",
        "'x'",
        "a + 1 IS NULL",
        "a IS NULL IS NULL",
        "a = 1; b = 2",
        "a = CAST('1' AS INT)",
        "a = CAST('1.55' AS DECIMAL(2, 1))",
        "a = -'x'",
        "a = 'it''s'",  # versions of Spark read it differently
        "a = CAST(b AS INT)",
        "a = current_date()",
    ],
)
def test_expression_beyond_comparisons_is_not_supported(text: str) -> None:
    with pytest.raises(UnsupportedError, match="in the filter"):
        parse_predicate(text)


def test_two_columns_are_named_in_the_error() -> None:
    with pytest.raises(UnsupportedError, match="the two columns of `a < b`") as caught:
        parse_predicate("c = 1 AND a < b")
    assert caught.value.hints == ("text is written in quotes: 'b'",)


def test_condition_that_is_no_boolean_column_is_refused_when_bound() -> None:
    schema = Schema(fields=(NestedField(1, "a", False, LONG), NestedField(2, "b", False, BOOLEAN)))
    assert bind(parse_predicate("B"), schema) == Comparison("b", "=", True)
    message = "expected a `boolean` column as a condition, or to compare with true, found `long` in column `a`"
    with pytest.raises(InvalidInputError, match=message):
        bind(parse_predicate("a"), schema)


@pytest.mark.parametrize("text", ["a IN ()", "NOT a IN ()", "b = 1 OR a NOT IN ( )"])
def test_list_without_values_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^expected at least one value in IN \(…\), found `a IN \(\)` in the"):
        parse_predicate(text)


@pytest.mark.parametrize(("word", "join", "count"), [("AND", all_of, 10_000), ("OR", any_of, 1_500)])
def test_chain_of_very_many_terms_is_read(word: str, join: Callable[[list[Predicate]], Predicate], count: int) -> None:
    assert parse_predicate(f" {word} ".join(["a = 1"] * count)) == join([A] * count)


@pytest.mark.parametrize(
    "text", ["(" * 2000 + "a = 1" + ")" * 2000, "NOT " * 5000 + "a = 1", "a = " + "-" * 1 + " -" * 5000 + "1"]
)
def test_very_deep_nesting_is_not_supported(text: str) -> None:
    with pytest.raises(UnsupportedError, match="less nesting"):
        parse_predicate(text)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("a = 'it''s'", r"write \\', as in 'it\\'s'"),
        ("d <=> NaN", r"write isnan\(d\)"),
        ("nan = s.d", r"write isnan\(s\.d\)"),
        ("d = TIMESTAMP '2020-01-01 00:00 Europe/Berlin'", "a zone is Z, UTC, GMT or an offset"),
        ("d = DATE 'today'", "dates and times are written like 2020-02-29"),
    ],
)
def test_likely_mistake_comes_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises((InvalidInputError, UnsupportedError)) as caught:
        parse_predicate(text)
    assert re.search(hint, " ".join(caught.value.hints))


@pytest.mark.parametrize("text", ["", " \n"])
def test_empty_text_is_no_filter(text: str) -> None:
    with pytest.raises(SqlSyntaxError, match="expected a filter, found empty text"):
        parse_predicate(text)
