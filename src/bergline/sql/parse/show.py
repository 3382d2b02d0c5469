"""Parser for SHOW, DESCRIBE and USE."""

from bergline.errors import UnsupportedError
from bergline.sql.parse.namespace import NAMESPACE_WORDS
from bergline.sql.parse.properties import parse_property_key
from bergline.sql.statements.show_statements import (
    DescribeNamespace,
    DescribeTable,
    Show,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowPartitions,
    ShowProcedures,
    ShowProperties,
    ShowTableExtended,
    ShowTables,
    ShowViews,
    Use,
)
from bergline.sql.statements.statements import Name
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import TokenKind

_TABLE, _NAMESPACE = "a table name", "a namespace's name"
_OTHER_DESCRIPTIONS = ("FUNCTION", "QUERY", "CATALOG", "PROCEDURE", "HISTORY", "DETAIL")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "(")


def parse_use(cursor: Cursor) -> Use | None:
    """USE; None if the text is another kind of statement."""
    if not cursor.accept("USE"):
        return None
    if cursor.following.kind in {TokenKind.WORD, TokenKind.QUOTED}:
        any(cursor.accept(word) for word in NAMESPACE_WORDS)
    namespace = cursor.expect_subject(_NAMESPACE)
    cursor.expect_end()
    return Use(namespace)


def parse_show(cursor: Cursor) -> Show | None:
    """SHOW of what we know; None for all else."""
    cursor.expect("SHOW")
    if cursor.accept("CURRENT"):
        cursor.expect_one_of(*NAMESPACE_WORDS)
        statement: Show = ShowCurrentNamespace()
    elif cursor.accept("TABLES"):
        statement = ShowTables(_place(cursor), _like(cursor))
    elif cursor.accept("TABLE", "EXTENDED"):
        statement = _table_extended(cursor)
    elif cursor.accept("VIEWS"):
        statement = ShowViews(_place(cursor), _like(cursor))
    elif cursor.accept("CATALOGS"):
        statement = ShowCatalogs(_like(cursor))
    elif cursor.accept("PROCEDURES"):
        statement = ShowProcedures(_place(cursor), _like(cursor))
    elif any(cursor.accept(f"{word}S") for word in NAMESPACE_WORDS):
        statement = ShowNamespaces(_place(cursor), _like(cursor))
    elif cursor.accept("CREATE", "TABLE"):
        statement = ShowCreateTable(cursor.expect_subject(_TABLE))
    elif cursor.accept("TBLPROPERTIES"):
        table = cursor.expect_subject(_TABLE)
        statement = ShowProperties(table, parse_property_key(cursor) if cursor.token.is_symbol("(") else None)
    elif cursor.accept("PARTITIONS"):
        table = cursor.expect_subject(_TABLE)
        statement = ShowPartitions(table, _values(cursor) if cursor.accept("PARTITION") else {})
    elif cursor.accept("COLUMNS"):
        cursor.expect_one_of("IN", "FROM")
        table = cursor.expect_dotted_name(_TABLE)
        namespace = cursor.expect_dotted_name(_NAMESPACE) if _accept_in(cursor) else ()
        cursor.subject = (*namespace, *table)
        statement = ShowColumns(cursor.subject)
    else:
        return None
    cursor.expect_end()
    return statement


def parse_describe(cursor: Cursor) -> DescribeTable | DescribeNamespace | None:
    """DESCRIBE of tables and namespaces; None for all else."""
    cursor.expect_one_of("DESCRIBE", "DESC")
    if cursor.token.is_word(*_QUERIES) and not cursor.token.is_word("TABLE"):
        return None
    names_more = cursor.following.kind in {TokenKind.WORD, TokenKind.QUOTED}
    if names_more and cursor.token.is_word(*_OTHER_DESCRIPTIONS):
        return None
    if names_more and any(cursor.accept(word) for word in NAMESPACE_WORDS):
        extended = cursor.accept("EXTENDED")
        namespace = cursor.expect_subject(_NAMESPACE)
        cursor.expect_end()
        return DescribeNamespace(namespace, extended)
    if names_more:
        cursor.accept("TABLE")
    extended = False
    if cursor.following.kind in {TokenKind.WORD, TokenKind.QUOTED}:
        extended = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
    table = cursor.expect_subject(_TABLE)
    column = ".".join(cursor.expect_dotted_name("a column's name")) if cursor.is_at_name else None
    cursor.expect_end(*(() if column else ("a column's name",)))
    return DescribeTable(table, extended, column)


def _table_extended(cursor: Cursor) -> ShowTableExtended:
    namespace = _place(cursor)
    cursor.expect("LIKE")
    statement = ShowTableExtended(namespace, cursor.expect_text("a pattern in quotes"))
    if cursor.token.is_word("PARTITION"):
        raise UnsupportedError(
            "cannot show one partition of a lake table",
            hints=["SHOW PARTITIONS lists them, `t.partitions` describes them"],
        )
    return statement


def _accept_in(cursor: Cursor) -> bool:
    return cursor.accept("IN") or cursor.accept("FROM")


def _place(cursor: Cursor) -> Name | None:
    return cursor.expect_subject(_NAMESPACE) if _accept_in(cursor) else None


def _like(cursor: Cursor) -> str | None:
    if cursor.accept("LIKE"):
        return cursor.expect_text("a pattern in quotes")
    return cursor.expect_text("a pattern in quotes") if cursor.token.kind is TokenKind.STRING else None


def _values(cursor: Cursor) -> dict[str, str | None]:
    """`(region = 'eu', ts_day = '2026-01-31')`: values as they are shown."""
    cursor.expect_symbol("(")
    values: dict[str, str | None] = {}
    while True:
        name = cursor.expect_name("the name of a partition field")
        cursor.expect_symbol("=")
        if cursor.accept("NULL"):
            values[name] = None
        elif cursor.token.kind in {TokenKind.STRING, TokenKind.NUMBER} or cursor.token.is_word("TRUE", "FALSE"):
            token = cursor.advance()
            values[name] = token.value if token.kind is TokenKind.STRING else token.text.lower()
        else:
            cursor.fail("a value: text, a number, `TRUE`, `FALSE`, `NULL`")
        if cursor.accept_symbol(")"):
            return values
        cursor.expect_symbol(",")
