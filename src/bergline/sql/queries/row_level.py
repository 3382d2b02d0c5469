"""DELETE FROM, UPDATE and TRUNCATE TABLE: parsed by tokens, with the expressions left as they are written."""

from typing import Literal

from bergline.errors import BerglineError, InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.sql.queries.assignments import Assignment, parse_assignments, take_expression
from bergline.sql.queries.insert import parse_partition_values
from bergline.sql.queries.query import OtherStatement, QueryReader, RowLevel, TruncateTable
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import Name, SqlText, Token, TokenKind

_OPENING, _CLOSING = "([{", ")]}"


def read_row_level(sql: SqlText, read: QueryReader) -> RowLevel | TruncateTable | OtherStatement | None:
    """A statement that changes rows; None if the text is another one."""
    cursor = Cursor(sql.without_semicolon())
    try:
        if cursor.accept("TRUNCATE", "TABLE"):
            return _truncate(cursor)
        return _row_level(cursor, read) if _walk_to_keyword(cursor) else None
    except BerglineError as error:
        if (
            isinstance(error, SqlSyntaxError)
            and isinstance(found := read(sql), OtherStatement)
            and found.leave_to_engine
        ):
            return found
        return OtherStatement(sql.first_word, dotted_names(sql), error, cursor.subject)


def _walk_to_keyword(cursor: Cursor) -> bool:
    """Move to DELETE FROM or UPDATE outside of parentheses: the first word, or after WITH."""
    if cursor.token.is_word("DELETE", "UPDATE"):
        return True
    if not cursor.token.is_word("WITH"):
        return False
    depth = 0
    while cursor.token.kind is not TokenKind.END:
        if depth == 0 and (cursor.is_at("DELETE", "FROM") or cursor.is_at("UPDATE")):
            return True
        depth += _step(cursor.advance())
    return False


def _truncate(cursor: Cursor) -> TruncateTable:
    table = cursor.expect_subject("a table name")
    partition = parse_partition_values(cursor) if cursor.accept("PARTITION") else ()
    for column, value in partition:
        if value is None:
            raise InvalidInputError(f"expected a value for partition column `{column}` in TRUNCATE TABLE, found none")
    cursor.expect_end()
    return TruncateTable(table, partition)


def _row_level(cursor: Cursor, read: QueryReader) -> RowLevel | OtherStatement:
    sql, keyword = cursor.sql, cursor.advance()
    if keyword.is_word("DELETE"):
        cursor.expect("FROM")
    start = cursor.token.start
    table = cursor.expect_subject("a table name")
    alias = _alias(cursor, table)
    from_end = _last_end(cursor)
    assignments: tuple[Assignment, ...] = ()
    if keyword.is_word("UPDATE"):
        cursor.expect("SET")
        assignments = parse_assignments(cursor, _is_at_where)
    set_end = _last_end(cursor)
    condition = take_expression(cursor, "a condition", _is_at_where) if cursor.accept("WHERE") else None
    cursor.expect_end(*(() if condition else ("`WHERE`",)))
    name: Literal["DELETE", "UPDATE"] = "DELETE" if keyword.is_word("DELETE") else "UPDATE"
    whole = read(sql)
    if isinstance(whole, OtherStatement):
        if whole.leave_to_engine:
            return whole
        error = whole.error or SqlSyntaxError(f"expected one {name}, found another statement", line=1, column=1)
        return OtherStatement(name, whole.tables, error, table)
    target = next(use for use in whole.tables if use.start == start)
    return RowLevel(name, table, target, whole, keyword.start, from_end, alias, assignments, set_end, condition)


def _alias(cursor: Cursor, table: Name) -> str | None:
    has_as = cursor.accept("AS")
    if not has_as and (not cursor.is_at_name or cursor.token.is_word("SET", "WHERE")):
        return None
    alias = cursor.expect_name("an alias")
    if cursor.token.is_symbol("("):
        raise UnsupportedError(f"cannot rename the columns of `{'.'.join(table)}` in a statement that changes its rows")
    return alias


def _is_at_where(cursor: Cursor) -> bool:
    return cursor.token.is_word("WHERE")


def _last_end(cursor: Cursor) -> int:
    """Where the token before the current one ends."""
    return max(token.end for token in cursor.sql.tokens[:-1] if token.end <= cursor.token.start)


def _step(token: Token) -> int:
    if token.kind is not TokenKind.SYMBOL:
        return 0
    return (token.text in _OPENING) - (token.text in _CLOSING)
