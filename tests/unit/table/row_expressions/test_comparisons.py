"""Comparisons in three values, NaN as the greatest number, and types that meet."""

from typing import Any

import pytest

from bergline.errors import InvalidInputError
from support.fixtures.expression_rows import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d > 1", [True, True, None]),
        ("d >= CAST('Infinity' AS DOUBLE)", [False, True, None]),
        ("d = d", [True, True, None]),
        ("d != d", [False, False, None]),
        ("1 < d", [True, True, None]),
        ("d <= 100", [True, False, None]),
        ("i <=> NULL", [False, True, False]),
        ("m = 1.250", [True, None, False]),
        ("m > i", [True, None, False]),
        ("m = '1.25'", [True, None, False]),
        ("m = ' 1.250e0 '", [True, None, False]),
        ("m = '1.249'", [False, None, False]),
        ("m <= '1.249'", [False, None, True]),
        ("m IN ('1.255', '-7.5')", [False, None, True]),
        ("CAST(m AS DECIMAL(38, 2)) = '1.249'", [False, None, False]),
        ("CAST(m AS DECIMAL(38, 2)) > '1.249'", [True, None, False]),
        ("i = 1.0", [True, None, False]),
        ("day = '1970-01-02'", [False, True, None]),
        ("t > day", [False, True, None]),
        ("t = z", [True, False, None]),
        ("z > '1970-01-01'", [False, True, None]),
        ("u = '00000000-0000-0000-0000-000000000001'", [True, None, False]),
        ("u > '00000000-0000-0000-0000-000000000001'", [False, None, True]),
        ("y = X'6162'", [True, None, False]),
        ("s > 'a'", [True, None, True]),
        ("p <=> p", [True, True, True]),
        ("b AND i = 1", [True, None, False]),
        ("b OR i IS NULL", [True, True, False]),
        ("NOT b", [False, None, True]),
        ("b OR NULL", [True, None, None]),
        ("i IS NOT NULL AND 1 / i > 0", [True, False, True]),
        ("isnan(d)", [False, True, False]),
        ("b IS FALSE", [False, False, True]),
    ],
)
def test_comparisons(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


def test_the_other_side_of_an_and_is_not_evaluated_where_it_does_not_matter() -> None:
    assert values("l > 0 AND 10 / (l + 7) > 0") == [True, False, None]
    assert values("l < 0 OR 10 / (l + 7) > 0") == [True, True, None]


def test_structs_are_compared_whole_only() -> None:
    with pytest.raises(InvalidInputError, match="without fields or elements for <"):
        values("p < p")


@pytest.mark.parametrize("text", ["m = 'x'", "m = '1_0'", "m = ''", "m > 'NaN'"])
def test_other_text_is_no_decimal(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected a number to compare, found "):
        values(text)
