"""Assignments and expressions: where each begins and ends."""

import pytest

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.assignments import parse_assignments, take_expression
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText


def _at_where(cursor: Cursor) -> bool:
    return cursor.token.is_word("WHERE")


def _parsed(text: str) -> list[tuple[str, str | None]]:
    cursor = Cursor(SqlText(text))
    found = parse_assignments(cursor, _at_where)
    return [(".".join(a.target), a.value and a.value.text(cursor.sql)) for a in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [("a", "1")]),
        ("a = 1, b = 2 WHERE x = 3", [("a", "1"), ("b", "2")]),
        ("t.a.b = DEFAULT, c = default", [("t.a.b", None), ("c", None)]),
        ("a = default + 1", [("a", "default + 1")]),
        ("a = f(1, 2), b = ARRAY[1, 2][0]", [("a", "f(1, 2)"), ("b", "ARRAY[1, 2][0]")]),
        ("a = CASE WHEN x THEN 1, b = 2", None),
        (
            "a = CASE WHEN (SELECT 1 WHERE true) = 1 THEN CASE x WHEN 1 THEN 2 END END, b = t.end WHERE c",
            [("a", "CASE WHEN (SELECT 1 WHERE true) = 1 THEN CASE x WHEN 1 THEN 2 END END"), ("b", "t.end")],
        ),
        ("a = 'x, WHERE', `b c` = 2 -- done\n", [("a", "'x, WHERE'"), ("b c", "2")]),
        ("a = /* , */ 1 ;", [("a", "1")]),
        ("a = t.case, b = 1", [("a", "t.case"), ("b", "1")]),
    ],
)
def test_assignments_end_where_the_next_one_begins(text: str, expected: list[tuple[str, str | None]] | None) -> None:
    if expected is None:
        with pytest.raises(SqlSyntaxError, match="expected `END`"):
            _parsed(text)
    else:
        assert _parsed(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "expected `=`, found the end of the statement"),
        ("a = ", "expected a value, found the end of the statement"),
        ("a = 1,", "expected a column name, found the end of the statement"),
        ("a = , b = 1", "expected a value, found `,`"),
        ("a = (1, 2", "expected a closing parenthesis, found the end of the statement"),
        ("1 = a", "expected a column name, found `1`"),
    ],
)
def test_what_is_broken_is_one_error_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SqlSyntaxError, match=message):
        _parsed(text)


def test_expression_keeps_its_place() -> None:
    cursor = Cursor(SqlText("  a > 1 WHERE"))
    found = take_expression(cursor, "a condition", _at_where)
    assert (found.start, found.end) == (2, 7)
