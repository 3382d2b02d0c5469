"""Column definitions, in CREATE TABLE and in ALTER TABLE."""

from typing import Any, Literal

import msgspec

from bergline.errors import UnsupportedError
from bergline.format.types.types import IcebergType
from bergline.sql.grammar.literals import parse_literal
from bergline.sql.grammar.spark_types import parse_spark_type
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name

ColumnPlacement = tuple[Literal["first"]] | tuple[Literal["after"], str]

_CONSTRAINTS = (("CONSTRAINT",), ("PRIMARY", "KEY"), ("FOREIGN", "KEY"))
_UNSUPPORTED = "UNSUPPORTED_FEATURE.TABLE_OPERATION"
_OPTIONS = "`NOT NULL`, `DEFAULT`, `COMMENT`"


class ColumnDefinition(msgspec.Struct, frozen=True):
    """A new column; its default is a literal, None for none."""

    path: Name
    type: IcebergType
    required: bool = False
    doc: str | None = None
    default: Any = None
    position: ColumnPlacement | None = None


def parse_created_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """The columns of CREATE TABLE, in parentheses."""
    cursor.expect_symbol("(")
    columns: list[ColumnDefinition] = []
    while True:
        check_no_constraint(cursor)
        name = cursor.expect_name("a column's name")
        columns.append(_column(cursor, (name,), moves=False))
        if cursor.accept_symbol(")"):
            return tuple(columns)
        if not cursor.accept_symbol(","):
            cursor.fail(f"{_OPTIONS}, `,`, `)`")


def check_no_constraint(cursor: Cursor) -> None:
    """Refuse what begins like a constraint of a table."""
    is_check = cursor.token.is_word("CHECK") and cursor.following.is_symbol("(")
    if is_check or any(cursor.is_at(*words) for words in _CONSTRAINTS):
        message = f"cannot keep constraints such as `{cursor.rest().text[:40]}`: Iceberg has none"
        raise UnsupportedError(message, condition=_UNSUPPORTED)


def parse_added_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """The columns of ADD COLUMNS, with or without parentheses, each perhaps with a position."""
    if cursor.is_at("IF", "NOT", "EXISTS"):
        cursor.fail("a column's name")
    bracket = cursor.accept_symbol("(")
    columns = [_column(cursor, cursor.expect_dotted_name("a column's name"), moves=True)]
    while cursor.accept_symbol(","):
        columns.append(_column(cursor, cursor.expect_dotted_name("a column's name"), moves=True))
    if bracket and not cursor.accept_symbol(")"):
        cursor.fail(f"{_OPTIONS}, `FIRST`, `AFTER`, `,`, `)`")
    return tuple(columns)


def parse_replaced_columns(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """The columns of REPLACE COLUMNS, in parentheses; existing rows have no values for them."""
    cursor.expect_symbol("(")
    columns: list[ColumnDefinition] = []
    while True:
        path = (cursor.expect_name("a column's name"),)
        type_ = parse_spark_type(cursor, path[0])
        doc = cursor.expect_text("a comment in quotes") if cursor.accept("COMMENT") else None
        columns.append(ColumnDefinition(path, type_, doc=doc))
        if cursor.accept_symbol(")"):
            return tuple(columns)
        if not cursor.accept_symbol(","):
            cursor.fail("`COMMENT`, `,`, `)`")


def parse_position(cursor: Cursor) -> ColumnPlacement | None:
    """`FIRST` or `AFTER column`, if it comes next."""
    if cursor.accept("FIRST"):
        return ("first",)
    return ("after", cursor.expect_name("a column's name")) if cursor.accept("AFTER") else None


def _column(cursor: Cursor, path: Name, *, moves: bool) -> ColumnDefinition:
    type_ = parse_spark_type(cursor, ".".join(path))
    required, doc, default, position = False, None, None, None
    seen: set[str] = set()
    while option := _option(cursor, moves=moves):
        if option in seen:
            cursor.fail(f"`{option}` once")
        seen.add(option)
        match option:
            case "NOT NULL":
                required = True
            case "COMMENT":
                doc = cursor.expect_text("a comment in quotes")
            case "DEFAULT":
                default = parse_literal(cursor)
            case "position":
                position = parse_position(cursor)
            case "GENERATED" | "CHECK" | "PRIMARY KEY" | "UNIQUE" | "REFERENCES" | "CONSTRAINT":
                message = f"cannot keep {option} of column `{'.'.join(path)}`: Iceberg has no such thing"
                raise UnsupportedError(message, condition=_UNSUPPORTED)
    return ColumnDefinition(path, type_, required, doc, default, position)


def _option(cursor: Cursor, *, moves: bool) -> str | None:
    for words in (("NOT", "NULL"), ("COMMENT",), ("DEFAULT",), ("PRIMARY", "KEY")):
        if cursor.accept(*words):
            return " ".join(words)
    for word in ("GENERATED", "CHECK", "UNIQUE", "REFERENCES", "CONSTRAINT"):
        if cursor.accept(word):
            return word
    return "position" if moves and (cursor.is_at("FIRST") or cursor.is_at("AFTER")) else None
