"""Functions, and branches that are evaluated only where they are taken."""

from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from support.fixtures.expression_rows import values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CASE WHEN i = 1 THEN 'x' WHEN s IS NULL THEN 'y' END", ["x", "y", None]),
        ("CASE i WHEN 1 THEN 10 ELSE 0 END", [10, 0, 0]),
        ("CASE WHEN l + 7 = 0 THEN 0 ELSE 10 DIV (l + 7) END", [0, 0, None]),
        ("if(b, 1, 2.5)", [Decimal("1.0"), Decimal("2.5"), Decimal("2.5")]),
        ("coalesce(l, i, 0)", [7, -7, 2**31 - 1]),
        ("nvl(s, 'none')", ["a_b", "none", "Ünx"]),
        ("nullif(i, 1)", [None, None, 2**31 - 1]),
        ("greatest(i, l)", [7, -7, 2**31 - 1]),
        ("least(m, 0)", [Decimal("0.00"), Decimal("0.00"), Decimal("-7.50")]),
        ("upper(s) || '!'", ["A_B!", None, "ÜNX!"]),
        ("concat(s, '-', i, '-', m)", ["a_b-1-1.25", None, "Ünx-2147483647--7.50"]),
        ("length(s)", [3, None, 3]),
        ("substring(s, 2)", ["_b", None, "nx"]),
        ("substring(s, -2, 1)", ["_", None, "n"]),
        ("substring(s, 0, 2)", ["a_", None, "Ün"]),
        ("trim('  x ') || ltrim(' y ') || rtrim(' z ')", ["xy  z"] * 3),
        ("lower(s)", ["a_b", None, "ünx"]),
        ("upper('straße')", ["STRASSE"] * 3),
        ("lower('İ')", ["i\u0307"] * 3),
        ("startswith(s, 'a')", [True, None, False]),
    ],
)
def test_functions(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize("text", ["upper(i)", "substring(s, 'a')", "d || 'x'"])
def test_functions_refuse_other_types(text: str) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        values(text)
