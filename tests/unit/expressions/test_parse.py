"""Predicates from SQL text."""

import datetime as dt
from decimal import Decimal

import pytest

from bergline.errors import BerglineError, InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import Always, And, Comparison, IsIn, IsNull, Not, Or, Predicate

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
        ("a = DATE '2020-02-29'", Comparison("a", "=", dt.date(2020, 2, 29))),
        ("a = CAST('2020-02-29' AS DATE)", Comparison("a", "=", dt.date(2020, 2, 29))),
        ("a > TIMESTAMP '2020-01-01 10:00:00+00:00'", Comparison("a", ">", dt.datetime(2020, 1, 1, 10, tzinfo=dt.UTC))),
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
        "a",
        "a = b",
        "a + 1 = 2",
        "a LIKE 'x%'",
        "a IN (SELECT 1)",
        "a = NULL",
        "a NOT IN (1, NULL)",
        "a <=> 1",
        "upper(a) = 'X'",
        "1 = 1",
        "a IS TRUE",
        "a = 1; b = 2",
        "a = X'1F'",
        "a = CAST('1' AS INT)",
    ],
)
def test_expression_beyond_comparisons_is_not_supported(text: str) -> None:
    with pytest.raises(UnsupportedError, match="in the filter"):
        parse_predicate(text)


def test_impossible_date_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="found `2020-02-30`"):
        parse_predicate("a = DATE '2020-02-30'")


@pytest.mark.parametrize("text", ["(" * 2000 + "a = 1" + ")" * 2000, " AND ".join(["a = 1"] * 3000)])
def test_filter_of_very_many_terms_raises_our_error(text: str) -> None:
    with pytest.raises(BerglineError):
        parse_predicate(text)
