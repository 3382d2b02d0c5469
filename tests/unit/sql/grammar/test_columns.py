"""Column definitions."""

import pytest

from bergline.errors import SqlSyntaxError, UnsupportedError
from bergline.format.types.types import INT, LONG, STRING
from bergline.sql.grammar.columns import (
    ColumnDefinition,
    parse_added_columns,
    parse_created_columns,
    parse_position,
    parse_replaced_columns,
)
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText


def cursor(text: str) -> Cursor:
    return Cursor(SqlText(text))


def test_created_columns_stand_in_brackets() -> None:
    assert parse_created_columns(cursor("(a INT NOT NULL DEFAULT 1, `b c` STRING COMMENT 'x')")) == (
        ColumnDefinition(("a",), INT, required=True, default=1),
        ColumnDefinition(("b c",), STRING, doc="x"),
    )


def test_added_columns_may_be_inside_others_and_have_a_place() -> None:
    assert parse_added_columns(cursor("p.x BIGINT FIRST, y INT AFTER z")) == (
        ColumnDefinition(("p", "x"), LONG, position=("first",)),
        ColumnDefinition(("y",), INT, position=("after", "z")),
    )


def test_replaced_columns_have_comments_alone() -> None:
    assert parse_replaced_columns(cursor("(a INT COMMENT 'x')")) == (ColumnDefinition(("a",), INT, doc="x"),)
    with pytest.raises(SqlSyntaxError, match="expected `COMMENT`, `,`, `\\)`, found `NOT`"):
        parse_replaced_columns(cursor("(a INT NOT NULL)"))


def test_position_is_none_where_none_is_written() -> None:
    assert parse_position(cursor("COMMENT 'x'")) is None


@pytest.mark.parametrize("option", ["NOT NULL NOT NULL", "COMMENT 'a' COMMENT 'b'"])
def test_option_may_stand_once(option: str) -> None:
    with pytest.raises(SqlSyntaxError, match="once"):
        parse_created_columns(cursor(f"(a INT {option})"))


@pytest.mark.parametrize("option", ["CHECK (a > 1)", "UNIQUE", "REFERENCES t (a)", "PRIMARY KEY"])
def test_what_iceberg_cannot_keep_is_refused(option: str) -> None:
    with pytest.raises(UnsupportedError, match="Iceberg has no such thing"):
        parse_created_columns(cursor(f"(a INT {option})"))
