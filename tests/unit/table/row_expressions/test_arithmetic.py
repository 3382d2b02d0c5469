"""Arithmetic gives Spark's types, and errors instead of wrapped numbers."""

import math
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from support.fixtures.expression_rows import bound, values


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("i - 1", "int", [0, None, 2**31 - 2]),
        ("i + l", "long", [8, None, None]),
        ("i / 2", "double", [0.5, None, 1073741823.5]),
        ("l DIV 2", "long", [3, -3, None]),
        ("l % 4", "long", [3, -3, None]),
        ("f * 2", "double", [1.0, None, 6.0]),
        ("f + d", "double", [2.0, None, None]),
        ("d % 1", "double", [0.5, math.nan, None]),
        ("m * 2", "decimal(12, 2)", [Decimal("2.50"), None, Decimal("-15.00")]),
        ("m * 1.1", "decimal(13, 3)", [Decimal("1.375"), None, Decimal("-8.250")]),
        ("m + l", "decimal(23, 2)", [Decimal("8.25"), None, None]),
        ("m / 3", "decimal(14, 6)", [Decimal("0.416667"), None, Decimal("-2.500000")]),
        ("m % 2", "decimal(3, 2)", [Decimal("1.25"), None, Decimal("-1.50")]),
        ("m DIV 1.25", "long", [1, None, -6]),
        ("m * m * m * m", "decimal(38, 6)", [Decimal("2.441406"), None, Decimal("3164.062500")]),
        ("m + d", "double", [2.75, None, None]),
        ("-m", "decimal(10, 2)", [Decimal("-1.25"), None, Decimal("7.50")]),
        ("abs(l)", "long", [7, 7, None]),
        ("round(m, 1)", "decimal(10, 1)", [Decimal("1.3"), None, Decimal("-7.5")]),
        ("round(d)", "double", [2.0, math.nan, None]),
        ("round(1.005D, 2)", "double", [1.01] * 3),
        ("round(-0.285D, 2)", "double", [-0.29] * 3),
        ("round(1.5e300D, 2)", "double", [1.5e300] * 3),
        ("round(CAST(1.005 AS FLOAT), 1)", "float", [1.0] * 3),
        ("round(i, 2)", "int", [1, None, 2**31 - 1]),
        ("i + NULL", "int", [None] * 3),
        ("-9223372036854775808 % -1", "long", [0] * 3),
    ],
)
def test_results_have_the_types_of_spark(text: str, type_: str, expected: list[Any]) -> None:
    assert str(bound(text).type) == type_
    assert [str(v) for v in values(text)] == [str(v) for v in expected]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i + 1", "expected a result that fits `int`, found an overflow in `i + 1`"),
        ("l * 9223372036854775807", "expected a result that fits `long`, found an overflow"),
        ("-(-2147483648 - CAST(0 AS INT))", "expected a result that fits `int`, found an overflow"),
        ("99999999999999999999999999999999999999 * i * 100", "found an overflow"),
        ("i / 0", "expected a divisor other than zero, found a division by zero in `i / 0`"),
        ("m / 0.0", "found a division by zero"),
        ("l % 0", "found a division by zero"),
        ("d / 0", "found a division by zero"),
    ],
)
def test_overflow_and_division_by_zero_are_errors(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        values(text)
    assert message in str(refused.value)


def test_null_divided_by_zero_is_null() -> None:
    assert values("CAST(NULL AS INT) / 0") == [None] * 3


def test_doubles_have_no_integer_division() -> None:
    with pytest.raises(InvalidInputError, match="expected whole numbers for DIV"):
        bound("d DIV 2")
