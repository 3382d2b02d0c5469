"""From SQL text to what it means; text that is not ours comes back as OtherStatement with the names in it."""

import msgspec

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.insert import read_insert
from bergline.sql.queries.merge import MergeInto, read_merge
from bergline.sql.queries.query import (
    Insert,
    MultiInsert,
    OtherStatement,
    Query,
    QueryReader,
    QueryWrapper,
    RowLevel,
    TruncateTable,
)
from bergline.sql.queries.read import QUERY_WORDS, read_query
from bergline.sql.queries.row_level import read_row_level
from bergline.sql.queries.wrappers import ExplainedChange, parse_head
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.statements.other import read_other
from bergline.sql.statements.registry import FIRST_WORDS, HEADS, parse_statement
from bergline.sql.statements.statement import LakeStatement
from bergline.sql.text.misspelled import misspelled_head
from bergline.sql.text.names import dotted_names, loose_names
from bergline.sql.text.tokens import SqlText

Statement = (
    LakeStatement
    | Query
    | Insert
    | MultiInsert
    | MergeInto
    | RowLevel
    | TruncateTable
    | QueryWrapper
    | ExplainedChange
    | OtherStatement
)


def analyze(sql: SqlText, read: QueryReader = read_query) -> Statement:
    """What the statement means; why it does not parse is kept in it, and counts only if it is about our tables.

    `read` finds the tables of a query: an engine may have a parser of its own for that.
    """
    try:
        keyword = sql.first_word
    except SqlSyntaxError as error:
        return OtherStatement(sql.text.split(maxsplit=1)[0].upper(), loose_names(sql.text), error)
    if (typo := misspelled_head(sql, HEADS)) is not None:
        names = dotted_names(sql)
        return OtherStatement(keyword, names, typo, names[0] if names else None)
    match keyword:
        case "SELECT" | "VALUES":
            return read(sql)
        case "INSERT":
            return read_insert(sql, read) or read(sql)
        case "EXPLAIN" | "DESCRIBE" | "DESC" | "CREATE" | "CACHE" if (wrapper := _wrapper(sql, read)) is not None:
            return wrapper
        case "MERGE" | "WITH" if (merge := read_merge(sql, read)) is not None:
            return merge
        case "DELETE" | "UPDATE" | "TRUNCATE" | "WITH" if (change := read_row_level(sql, read)) is not None:
            return change
        case "SET" | "DECLARE" if sql.has_word("SELECT", "FROM", "TABLE"):  # variables
            return read(sql)
    statement = parse_statement(sql)
    if isinstance(statement, CreateTable) and statement.source is not None:
        return _create_as(sql, statement, statement.source, read)
    if statement is not None:
        return statement
    if keyword not in QUERY_WORDS:
        return read_other(sql, FIRST_WORDS)
    return read_insert(sql, read) or read(sql)


def _wrapper(sql: SqlText, read: QueryReader) -> QueryWrapper | ExplainedChange | OtherStatement | None:
    """A statement that wraps another; None if the text is not one."""
    parsed = parse_head(sql)
    if parsed is None:
        return None
    kind, start = parsed
    head, inner = sql.part(0, start), analyze(sql.part(start), read)
    match inner:
        case Query() if kind == "CREATE VIEW":
            return QueryWrapper(kind, head, msgspec.structs.replace(inner, within=(sql.text, start)))
        case Query():
            return QueryWrapper(kind, head, inner)
        case Insert() if kind == "EXPLAIN":
            return QueryWrapper(kind, head, inner.whole, inner.table, inner.source)
        case CreateTable(whole=Query() as whole) if kind == "EXPLAIN":
            return QueryWrapper(kind, head, whole, inner.table, inner.query)
        case RowLevel() | MergeInto() if kind == "EXPLAIN":
            return ExplainedChange(head, inner)
    if isinstance(inner, OtherStatement) and inner.leave_to_engine:
        return inner
    error = inner.error if isinstance(inner, OtherStatement) else None
    return OtherStatement(kind, dotted_names(sql), error)


def _create_as(
    sql: SqlText, statement: CreateTable, source: SqlText, read: QueryReader
) -> CreateTable | OtherStatement:
    """CREATE TABLE … AS: what its query reads, also should the table be the engine's own."""
    start = sql.text.rindex(source.text)
    query = analyze(source, read)
    if isinstance(query, OtherStatement):
        if query.leave_to_engine:
            return query
        return OtherStatement("CREATE", dotted_names(sql), query.error, statement.table)
    if not isinstance(query, Query):
        return OtherStatement("CREATE TABLE … AS", dotted_names(sql), subject=statement.table)
    uses = tuple(msgspec.structs.replace(u, start=u.start + start, end=u.end + start) for u in query.tables)
    columns = tuple((name, tuple(s + start for s in starts)) for name, starts in query.columns)
    return msgspec.structs.replace(
        statement,
        query=msgspec.structs.replace(query, within=(sql.text, start)),
        whole=Query(sql, uses, columns, writes=True),
    )
