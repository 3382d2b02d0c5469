"""From SQL text to what it means; text that is not ours comes back as OtherStatement with the names in it."""

import contextlib
import logging
from collections.abc import Iterator

import msgspec
import sqlglot
from sqlglot import exp

from bergline.errors import SqlSyntaxError, UnsupportedError
from bergline.sql.parse.call import parse_call
from bergline.sql.parse.insert import count_inserts, parse_insert_head
from bergline.sql.parse.own import OwnStatement, parse_own, parse_subject
from bergline.sql.parse.query_tables import dotted_names, loose_names, read_query
from bergline.sql.parse.time_travel import blanked, time_travel_clauses
from bergline.sql.parse.wrappers import parse_head
from bergline.sql.statements.statements import CallProcedure, Insert, OtherStatement, Query, QueryWrapper, TableUse
from bergline.sql.statements.table_statements import CreateTable
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.misspelled import misspelled_before, misspelled_head
from bergline.sql.text.tokens import Token, TokenKind, tokenize

Statement = OwnStatement | CallProcedure | Query | Insert | QueryWrapper | OtherStatement

_READABLE = {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "INSERT", "CREATE", "("}
_AROUND = {"CACHE", "CREATE", "DESC", "DESCRIBE", "EXPLAIN"}
# what Spark could run on a table of its own; other words are mistakes, and Spark says so
_OTHER = {
    "ALTER",
    "ANALYZE",
    "CACHE",
    "COMMENT",
    "DELETE",
    "DESC",
    "DESCRIBE",
    "DROP",
    "EXPLAIN",
    "LOAD",
    "MERGE",
    "MSCK",
    "REFRESH",
    "REPAIR",
    "REPLACE",
    "SHOW",
    "TRUNCATE",
    "UNCACHE",
    "UPDATE",
    "USE",
}
_WITH_SUBJECT = {"ANALYZE", "CACHE", "DELETE", "MERGE", "REFRESH", "TRUNCATE", "UNCACHE", "UPDATE"}
_CACHE_HINT = "spark.table(…).cache() keeps the rows of a frame, CACHE TABLE v AS SELECT … those of a temporary view"
_INSERTS_HINT = "write one INSERT INTO … SELECT … for each table: each is one commit"


def analyze(text: str) -> Statement:
    """What the statement means; why it does not parse is kept in it, and counts only if it is about our tables."""
    try:
        tokens = tokenize(text)
    except SqlSyntaxError as error:
        return OtherStatement(text.split(maxsplit=1)[0].upper(), loose_names(text), error)
    keyword, names = tokens[0].text.upper(), dotted_names(tokens)
    if (typo := misspelled_head(text, tokens)) is not None:
        return OtherStatement(keyword, names, typo, names[0] if names else None)
    if keyword == "CALL" and (call := parse_call(text)):
        return call
    if keyword in _AROUND and (around := _around(text, tokens)):
        return around
    own = parse_own(text, tokens)
    match own:
        case CreateTable(source=str()):
            return _create_as(text, own, tokens)
        case OtherStatement():
            return msgspec.structs.replace(own, tables=names)
        case None:
            return _read(text, tokens) if keyword in _READABLE else _other(text, keyword, tokens)
    return own


def _around(text: str, tokens: list[Token]) -> QueryWrapper | OtherStatement | None:
    """A statement around a query; None if the text is none."""
    head = parse_head(text)
    if head is None:
        return None
    kind, start = head
    before, inner = text[:start], analyze(text[start:])
    match inner:
        case Query():
            return QueryWrapper(kind, before, inner)
        case Insert() if kind == "EXPLAIN":
            return QueryWrapper(kind, before, inner.whole, inner.table, inner.source)
        case CreateTable(source=str(source), whole=Query() as whole) if kind == "EXPLAIN":
            return QueryWrapper(kind, before, whole, inner.table, source)
    error = inner.error if isinstance(inner, OtherStatement) else None
    return OtherStatement(kind, dotted_names(tokens), error)


def _other(text: str, keyword: str, tokens: list[Token]) -> OtherStatement:
    if keyword not in _OTHER:
        return OtherStatement(keyword, ())
    subject = parse_subject(text) if keyword in _WITH_SUBJECT else None
    error = UnsupportedError("cannot cache a lake's table by its name", hints=[_CACHE_HINT])
    return OtherStatement(keyword, dotted_names(tokens), error if keyword == "CACHE" else None, subject)


def _read(text: str, tokens: list[Token]) -> Query | Insert | OtherStatement:
    """A statement that reads or inserts, by sqlglot."""
    keyword = tokens[0].text.upper()
    if keyword in {"INSERT", "WITH", "FROM"} and (insert := _insert(text, tokens)):
        return insert
    if keyword == "TABLE" and (query := _table_query(text, tokens)):
        return query
    clauses = time_travel_clauses(text, tokens)
    try:
        with _without_sqlglots_log():
            tree = sqlglot.parse_one(blanked(text, [(start, end) for start, end, _ in clauses]), dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        return OtherStatement(keyword, dotted_names(tokens), _syntax_error(error, text, tokens))
    match tree:
        case exp.Query() | exp.Values():
            return read_query(text, tree, tokens, clauses)
        case exp.Create() if isinstance(tree.expression, exp.Query) and _made(tree) == "TABLE":
            return msgspec.structs.replace(read_query(text, tree.expression, tokens, clauses), writes=True)
        case exp.Create():
            return OtherStatement(f"CREATE {_made(tree)}", dotted_names(tokens))
    return OtherStatement(keyword, dotted_names(tokens))


def _made(tree: exp.Create) -> str:
    return str(tree.args.get("kind")).upper()


def _create_as(text: str, statement: CreateTable, tokens: list[Token]) -> CreateTable | OtherStatement:
    """CREATE TABLE … AS: what its query reads, should the table be the engine's own."""
    source = statement.source or ""
    start = text.rindex(source)
    query = analyze(source)
    if isinstance(query, OtherStatement):
        return OtherStatement("CREATE", dotted_names(tokens), query.error, statement.table)
    if not isinstance(query, Query):
        return OtherStatement("CREATE TABLE … AS", dotted_names(tokens), subject=statement.table)
    uses = tuple(msgspec.structs.replace(u, start=u.start + start, end=u.end + start) for u in query.tables)
    columns = tuple((name, tuple(s + start for s in starts)) for name, starts in query.columns)
    return msgspec.structs.replace(statement, whole=Query(text, uses, columns, writes=True))


def _insert(text: str, tokens: list[Token]) -> Insert | OtherStatement | None:
    """An INSERT into a table; None if the text is none."""
    try:
        head = parse_insert_head(text)
    except SqlSyntaxError as error:
        return OtherStatement("INSERT", dotted_names(tokens), error)
    if head is None:
        return None
    if count_inserts(tokens) > 1:
        several = UnsupportedError("cannot insert into several tables in one statement", hints=[_INSERTS_HINT])
        return OtherStatement("INSERT", dotted_names(tokens), several, head.table)
    source = blanked(text, [(head.start, head.end)]).rstrip().removesuffix(";")
    query = analyze(source)
    if not isinstance(query, Query):
        why = query.error if isinstance(query, OtherStatement) else None
        return OtherStatement("INSERT", dotted_names(tokens), why)
    return Insert(
        head.table,
        head.overwrite,
        head.columns,
        source,
        msgspec.structs.replace(query, text=text, writes=True),
        head.by_name,
        head.partition,
        head.if_not_exists,
        head.replace_where,
        head.options,
    )


def _table_query(text: str, tokens: list[Token]) -> Query | None:
    """`TABLE db.orders`, which is short for SELECT * FROM."""
    cursor = Cursor(text)
    cursor.expect("TABLE")
    start = cursor.token.start
    try:
        name = cursor.expect_dotted_name("a table name")
        cursor.expect_end()
    except SqlSyntaxError:
        return None
    end = max(token.end for token in tokens if not token.is_symbol(";") and token.kind is not TokenKind.END)
    return Query(text, (TableUse(name, start, end, None, add_alias=False),))


@contextlib.contextmanager
def _without_sqlglots_log() -> Iterator[None]:
    """Text that sqlglot does not know goes to Spark, so its warnings would only confuse."""
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _syntax_error(error: sqlglot.errors.SqlglotError, text: str, tokens: list[Token]) -> SqlSyntaxError:
    details = getattr(error, "errors", None) or [{}]
    place = details[0]
    found = place.get("highlight") or "the text"
    line, column = place.get("line") or 1, place.get("col") or 1
    typo = misspelled_before(text, tokens, line, column)
    return typo or SqlSyntaxError(f"cannot read the statement near `{found}`", line=line, column=column)
