"""SQL literals as Python values."""

import math
from decimal import Decimal

import pytest
import sqlglot

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.parse_literal import is_literal, parse_literal
from bergline.expressions.predicate import And, Comparison, IsNan, IsNull, Not


def test_impossible_date_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="found `2020-02-30`"):
        parse_predicate("a = DATE '2020-02-30'")


@pytest.mark.parametrize(
    "text",
    [
        "a = 300Y",
        "a = 1e400D",
        "a = CAST('x' AS DECIMAL(2, 1))",
        "a = TIMESTAMP 'soon'",
        r"a LIKE 'x\\y'",
        "a LIKE 'x!' ESCAPE '!'",
    ],
)
def test_literal_that_is_no_such_value_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="in the filter"):
        parse_predicate(text)


@pytest.mark.parametrize("text", ["a = CAST('NaN' AS DOUBLE)", "a = float('nan')", "double('NaN') = a"])
def test_nan_is_a_literal(text: str) -> None:
    found = parse_predicate(text)
    assert isinstance(found, Comparison)
    assert math.isnan(found.literal)
    assert parse_predicate("a <=> double('NaN')") == And(Not(IsNull("a")), IsNan("a"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("NULL", None),
        ("TRUE", True),
        ("-5", -5),
        ("5L", 5),
        ("1.50", Decimal("1.50")),
        ("'eu'", "eu"),
        ("X'0aff'", b"\x0a\xff"),
    ],
)
def test_literal_is_a_python_value(text: str, value: object) -> None:
    tree = sqlglot.parse_one(text, dialect="spark")
    assert is_literal(tree)
    found = parse_literal(tree, text)
    assert (found, type(found)) == (value, type(value))


def test_column_is_no_literal() -> None:
    tree = sqlglot.parse_one("a", dialect="spark")
    assert not is_literal(tree)
    with pytest.raises(UnsupportedError):
        parse_literal(tree, "a")
