"""Statements that wrap another: EXPLAIN, DESCRIBE QUERY, temporary views, cached queries."""

import msgspec

from bergline.quoting import dotted
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import RowLevel, WrapperKind
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import SqlText, TokenKind

_EXPLAIN_MODES = ("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL")
_QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "MAP", "REDUCE")


class ViewHead(msgspec.Struct, frozen=True):
    """CREATE TEMPORARY VIEW up to its query: a name, and names and comments of columns."""

    name: str
    columns: tuple[tuple[str, str | None], ...]
    replaces: bool
    is_global: bool


class ExplainedChange(msgspec.Struct, frozen=True):
    """EXPLAIN of a DELETE, UPDATE or MERGE: `head` is what comes before it, as written."""

    head: SqlText
    change: RowLevel | MergeInto


def parse_head(sql: SqlText) -> tuple[WrapperKind, int] | None:
    """Which statement wraps a query, and where the query begins; None for all other statements."""
    cursor = Cursor(sql)
    kind = _walk(cursor)
    if kind is None or cursor.is_at_end:
        return None
    return kind, cursor.token.start


def cached_view(head: SqlText) -> tuple[str, str]:
    """The name in the head of a cached query, and the statement that caches a view of that name."""
    cursor = Cursor(head)
    cursor.accept("CACHE")
    cursor.accept("LAZY")
    cursor.expect("TABLE")
    name = dotted(cursor.expect_dotted_name("a name"))
    end = len(head.text)
    while not cursor.is_at_end:
        token = cursor.advance()
        end = token.start if token.is_word("AS") else end
    return name, head.text[:end]


def parse_view_head(head: SqlText) -> ViewHead | None:
    """The head of a temporary view; None for one that Spark refuses, such as one with IF NOT EXISTS."""
    cursor = Cursor(head)
    cursor.expect("CREATE")
    replaces, is_global = cursor.accept("OR", "REPLACE"), cursor.accept("GLOBAL")
    cursor.expect_one_of("TEMP", "TEMPORARY")
    cursor.expect("VIEW")
    if cursor.accept("IF", "NOT", "EXISTS"):
        return None
    name = cursor.expect_dotted_name("a name")
    columns: list[tuple[str, str | None]] = []
    if cursor.accept_symbol("("):
        while not columns or cursor.accept_symbol(","):
            column = cursor.expect_name("a column")
            columns.append((column, cursor.expect_text("a comment") if cursor.accept("COMMENT") else None))
        cursor.expect_symbol(")")
    return ViewHead(name[0], tuple(columns), replaces, is_global) if len(name) == 1 else None


def _walk(cursor: Cursor) -> WrapperKind | None:
    """Move the cursor to where the query begins."""
    if cursor.accept("EXPLAIN"):
        any(cursor.accept(mode) for mode in _EXPLAIN_MODES)
        return "EXPLAIN"
    if cursor.accept("DESCRIBE") or cursor.accept("DESC"):
        return _walk_description(cursor)
    if cursor.accept("CREATE"):
        cursor.accept("OR", "REPLACE")
        cursor.accept("GLOBAL")
        is_view = cursor.accept("TEMP", "VIEW") or cursor.accept("TEMPORARY", "VIEW")
        return "CREATE VIEW" if is_view and _pass_as(cursor) else None
    if cursor.accept("CACHE"):
        cursor.accept("LAZY")
        return "CACHE TABLE" if cursor.accept("TABLE") and _walk_cached(cursor) else None
    return None


def _walk_description(cursor: Cursor) -> WrapperKind | None:
    names_query = cursor.token.is_word("QUERY") and cursor.following.is_word(*_QUERY_WORDS, "TABLE")
    if names_query or (cursor.token.is_word("QUERY") and cursor.following.is_symbol("(")):
        cursor.advance()
        return "DESCRIBE QUERY"
    is_query = cursor.token.is_word(*_QUERY_WORDS) or cursor.token.is_symbol("(")
    return "DESCRIBE QUERY" if is_query and cursor.following.kind is not TokenKind.END else None


def _walk_cached(cursor: Cursor) -> bool:
    """Move past the name and the options of a cached query; AS may be omitted."""
    if not cursor.is_at_name:
        return False
    cursor.expect_dotted_name("a name")
    if cursor.accept("OPTIONS"):
        while not cursor.is_at_end and not cursor.accept_symbol(")"):
            cursor.advance()
    return cursor.accept("AS") or cursor.token.is_word(*_QUERY_WORDS) or cursor.token.is_symbol("(")


def _pass_as(cursor: Cursor) -> bool:
    """Move past the AS outside parentheses."""
    depth = 0
    while not cursor.is_at_end:
        if depth == 0 and cursor.accept("AS"):
            return True
        token = cursor.advance()
        depth += token.is_symbol("(") - token.is_symbol(")")
    return False
