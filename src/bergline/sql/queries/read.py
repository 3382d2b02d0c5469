"""Queries, by sqlglot: the tables and long column names that they have, with where these stand in the text."""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Literal

import msgspec
import sqlglot
from sqlglot import exp

from bergline.errors import SqlSyntaxError, UnsupportedError
from bergline.quoting import without_back_quotes
from bergline.sql.queries.query import AsOf, OtherStatement, Query, TableUse
from bergline.sql.queries.time_travel import time_travel_clauses
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.misspelled import misspelled_before
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import Name, SqlText, TokenKind

QUERY_WORDS = ("SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "CREATE", "INSERT", "(")
"""The first words of queries, and of statements that end with one."""
_ROW_LEVEL_WORDS = ("DELETE", "UPDATE")


def read_query(sql: SqlText) -> Query | OtherStatement:
    """What a query reads, or CREATE … AS of an engine's own table; why it could not be read, or that it is no query.

    Of a DELETE or UPDATE the table that it changes is among them.
    """
    keyword = sql.first_word
    if keyword not in (*QUERY_WORDS, *_ROW_LEVEL_WORDS):
        return OtherStatement(keyword, ())
    if keyword == "TABLE" and (query := _table_query(sql)):
        return query
    clauses = time_travel_clauses(sql)
    try:
        with _without_sqlglots_log():
            tree = sqlglot.parse_one(sql.blanked([(start, end) for start, end, _ in clauses]).text, dialect="spark")
    except sqlglot.errors.SqlglotError as error:
        return OtherStatement(keyword, dotted_names(sql), _syntax_error(error, sql))
    except RecursionError:
        deep = UnsupportedError(f"expected a query with less nesting, found {len(sql.text)} characters of it")
        return OtherStatement(keyword, dotted_names(sql), deep)
    match tree:
        case exp.Query() | exp.Values():
            return _query(sql, tree, clauses)
        case exp.Delete() | exp.Update():
            return msgspec.structs.replace(_query(sql, tree, clauses), writes=True)
        case exp.Create() if isinstance(tree.expression, exp.Query) and _created(tree) == "TABLE":
            return msgspec.structs.replace(_query(sql, tree.expression, clauses), writes=True)
        case exp.Create():
            return OtherStatement(f"CREATE {_created(tree)}", dotted_names(sql))
    return OtherStatement(keyword, dotted_names(sql))


def _created(tree: exp.Create) -> str:
    return str(tree.args.get("kind")).upper()


def _table_query(sql: SqlText) -> Query | None:
    """`TABLE db.orders`, which is short for SELECT * FROM."""
    cursor = Cursor(sql)
    cursor.expect("TABLE")
    start = cursor.token.start
    try:
        name = cursor.expect_dotted_name("a table name")
        cursor.expect_end()
    except SqlSyntaxError:
        return None
    end = max(token.end for token in sql.tokens if not token.is_symbol(";") and token.kind is not TokenKind.END)
    return Query(sql, (TableUse(name, start, end, None, add_alias=False),))


@contextlib.contextmanager
def _without_sqlglots_log() -> Iterator[None]:
    """Text that sqlglot cannot parse goes to Spark, so sqlglot's warnings would only confuse."""
    log = logging.getLogger("sqlglot")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _syntax_error(error: sqlglot.errors.SqlglotError, sql: SqlText) -> SqlSyntaxError:
    details = getattr(error, "errors", None) or [{}]
    place = details[0]
    found = place.get("highlight") or "the text"
    line, column = place.get("line") or 1, place.get("col") or 1
    typo = misspelled_before(sql, line, column)
    return typo or SqlSyntaxError(f"cannot read the statement near `{found}`", line=line, column=column)


def _query(sql: SqlText, tree: exp.Expr, clauses: list[tuple[int, int, AsOf]]) -> Query:
    """What the query reads; clauses are those of time travel, which the tree does not have."""
    text = sql.text
    by_start = {start: (end, as_of) for start, end, as_of in clauses}
    following = {a.end: b for a, b in pairwise(sql.tokens)}
    uses = []
    for table in tree.find_all(exp.Table):
        if not _stands_in(text, table.parts) or (len(table.parts) == 1 and not _may_be_table(table)):
            continue
        spans = [part.meta for part in table.parts]
        start, end = spans[0]["start"], spans[-1]["end"] + 1
        after = following.get(end)
        clause_end, as_of = by_start.get(after.start, (end, None)) if after else (end, None)
        version = table.args.get("version")
        if as_of is None and version is not None:
            as_of = AsOf("timestamp" if version.name == "TIMESTAMP" else "version", None)
        add_alias = not table.alias and not table.args.get("sample")
        uses.append(TableUse(tuple(p.name for p in table.parts), start, clause_end, as_of, add_alias))
    uses = _told_apart(uses, tree)
    return Query(sql, tuple(sorted(uses, key=lambda u: u.start)), _long_columns(text, tree))


def _told_apart(uses: Sequence[TableUse], tree: exp.Expr) -> list[TableUse]:
    """The tables with aliases that distinguish them from anything else named like the last part of their name."""
    called: list[tuple[str, Name | None]] = [(alias.name.casefold(), None) for alias in tree.find_all(exp.TableAlias)]
    called += [(use.name[-1].casefold(), _folded(use.name)) for use in uses if use.add_alias]
    qualifiers = {_all_parts(column)[0].name.casefold() for column in tree.find_all(exp.Column) if column.table}

    def alias(use: TableUse) -> Literal["last", "whole", "unclear"]:
        last, name = use.name[-1].casefold(), _folded(use.name)
        if all(other == name for known, other in called if known == last):
            return "last"
        return "unclear" if last in qualifiers or called.count((last, name)) > 1 else "whole"

    return [msgspec.structs.replace(use, alias=alias(use)) if use.add_alias else use for use in uses]


def _folded(name: Name) -> Name:
    return tuple(part.casefold() for part in name)


def _may_be_table(table: exp.Table) -> bool:
    """Whether a name of one part can be a table: not a function, nor a query that WITH gave this name."""
    if not isinstance(table.this, exp.Identifier):
        return False
    node: exp.Expr = table
    while (parent := node.parent) is not None:
        if any(query.alias.casefold() == table.name.casefold() for query in _named_before(node, parent)):
            return False
        node = parent
    return True


def _named_before(node: exp.Expr, parent: exp.Expr) -> list[exp.Expr]:
    """The queries that WITH names and that a part of a statement sees: inside WITH, those before it."""
    if isinstance(node, exp.With):
        return []
    clause = parent if isinstance(parent, exp.With) else parent.args.get("with_")
    if not isinstance(clause, exp.With):
        return []
    if clause is not parent or clause.args.get("recursive"):
        return list(clause.expressions)
    return list(takewhile(lambda query: query is not node, clause.expressions))


def _stands_in(text: str, parts: Sequence[exp.Expr]) -> bool:
    """Whether names are in the text where sqlglot says; inside hints its offsets count from the hint's start."""
    return all(
        "start" in p.meta and _plain(text[p.meta["start"] : p.meta["end"] + 1]) == p.name for p in parts
    ) and not any(p.find_ancestor(exp.Hint) for p in parts[:1])


def _plain(name: str) -> str:
    return without_back_quotes(name) if name.startswith("`") else name


def _long_columns(text: str, tree: exp.Expr) -> tuple[tuple[Name, tuple[int, ...]], ...]:
    """Columns like `db.orders.id`, which may begin with a table's name."""
    found = []
    for column in tree.find_all(exp.Column):
        parts = _all_parts(column)
        if len(parts) > 2 and _stands_in(text, parts):  # noqa: PLR2004
            found.append((tuple(p.name for p in parts), tuple(p.meta["start"] for p in parts)))
    return tuple(found)


def _all_parts(column: exp.Column) -> list[exp.Expr]:
    """The parts of a column and of the struct fields behind it."""
    parts = list(column.parts)
    node: exp.Expr = column
    while isinstance(node.parent, exp.Dot) and node.parent.this is node:
        node = node.parent
        parts.append(node.expression)
    return parts
