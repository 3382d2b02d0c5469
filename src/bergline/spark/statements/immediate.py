"""Texts and names that Spark works out when a statement is run: EXECUTE IMMEDIATE, and IDENTIFIER's expressions."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from pyspark.errors import PySparkException

from bergline.errors import BerglineError, InvalidInputError, SqlSyntaxError
from bergline.quoting import dotted
from bergline.spark.runtime.sql_backend import RunSql
from bergline.sql.analyze import Statement
from bergline.sql.names.resolve import Lakes
from bergline.sql.queries.query import Insert, MultiInsert, Query, RowLevel, TruncateTable
from bergline.sql.statements.create_table import CreateTable
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import loose_names, parse_name
from bergline.sql.text.tokens import Name, SqlText, Token

Evaluate = Callable[[str, Any], Any]
"""Evaluates an expression with arguments; None if it has no value."""


def constant(expression: str, args: Any, run_sql: RunSql) -> Any:
    """What Spark makes of a constant expression; None if it refuses."""
    try:
        return run_sql(f"SELECT {expression}", args).collect()[0][0]
    except PySparkException:
        return None


def with_identifiers(sql: SqlText, args: Any, lakes: Lakes, evaluate: Evaluate) -> tuple[SqlText, Any]:
    """The text with names of lakes in place of the clauses that mean them, and the arguments that are left."""
    if "identifier" not in sql.text.lower():
        return sql, args
    try:
        clauses = _clauses(sql.tokens)
    except BerglineError:
        return sql, args
    edits = []
    for clause in reversed(clauses):
        first, last = clause.markers
        own = args[first:last] if isinstance(args, list) else args
        name = _parsed(evaluate(sql.text[slice(*clause.expression)], own or None))
        if name is None or not lakes.owns(name):
            continue
        edits.append((clause.start, clause.end, dotted(name)))
        if isinstance(args, list):
            args = [*args[:first], *args[last:]] or None
    return sql.edited(edits), args


class ImmediateStatement(msgspec.Struct, frozen=True):
    """What EXECUTE IMMEDIATE runs: a statement, its arguments, and the variables that the result goes to."""

    statement: SqlText
    args: Any = None
    variables: str | None = None


def immediate_statement(
    sql: SqlText,
    args: Any,
    lakes: Lakes,
    run_sql: RunSql,
    *,
    read_text: Callable[[str], SqlText],
    analyze: Callable[[SqlText], Statement],
) -> ImmediateStatement | None:
    """The statement that EXECUTE IMMEDIATE runs, if it is about lake tables; None if it is not.

    `read_text` reads its text as the session does.
    """
    try:
        immediate = _parse_immediate(sql)
    except SqlSyntaxError:
        return None
    value = constant(immediate.statement, args, run_sql) if immediate else None
    inner = read_text(value) if isinstance(value, str) else None
    if immediate is None or inner is None:
        return None
    given = None
    if immediate.arguments is not None:
        (row,) = run_sql(f"SELECT {immediate.arguments}", args).collect()
        given = row.asDict() if immediate.named else list(row)
    inner, given = with_identifiers(inner, given, lakes, functools.partial(constant, run_sql=run_sql))
    statement = analyze(inner)
    if not is_about(statement, inner, lakes):
        return None
    if immediate.into is not None and not isinstance(statement, Query):
        raise InvalidInputError(f"expected a query in EXECUTE IMMEDIATE … INTO, found `{inner.text}`")
    return ImmediateStatement(inner, given, immediate.into)


def is_about(statement: Statement, sql: SqlText, lakes: Lakes) -> bool:
    """Whether a statement reads or changes what a lake has."""
    match statement:
        case Query() as query:
            names = tuple(use.name for use in query.tables)
        case Insert() as insert:
            names = (insert.table, *(use.name for use in insert.whole.tables))
        case MultiInsert(inserts, whole):
            names = (*(insert.table for insert in inserts), *(use.name for use in whole.tables))
        case RowLevel() as change:
            names = tuple(use.name for use in change.whole.tables)
        case CreateTable() | TruncateTable() as about:
            names = (about.table,)
        case _:
            names = loose_names(sql.text)
    return any(lakes.owns(name) for name in names)


class _Clause(msgspec.Struct, frozen=True):
    """Where a clause and its expression stand, and which of the statement's `?` are in it."""

    start: int
    end: int
    expression: tuple[int, int]
    markers: tuple[int, int]


def _clauses(tokens: Sequence[Token]) -> list[_Clause]:
    found, markers, place = [], 0, 0
    while place < len(tokens):
        token = tokens[place]
        opens = token.is_word("IDENTIFIER") and tokens[place + 1].is_symbol("(")
        closing = _closing(tokens, place + 1) if opens else None
        if closing is None:
            markers += token.is_symbol("?")
            place += 1
            continue
        inside = tokens[place + 2 : closing]
        before, markers = markers, markers + sum(t.is_symbol("?") for t in inside)
        expression = (tokens[place + 1].end, tokens[closing].start)
        found.append(_Clause(token.start, tokens[closing].end, expression, (before, markers)))
        place = closing + 1
    return found


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(tokens)):
        depth += tokens[place].is_symbol("(") - tokens[place].is_symbol(")")
        if depth == 0:
            return place
    return None


def _parsed(value: Any) -> Name | None:
    if not isinstance(value, str):
        return None
    try:
        return parse_name(value, "a name")
    except BerglineError:
        return None


class _Immediate(msgspec.Struct, frozen=True):
    """The expression that gives the text, and the arguments of USING as they are written."""

    statement: str
    arguments: str | None = None
    named: bool = False
    """Whether the arguments have names."""
    into: str | None = None
    """The variables that the result goes to."""


def _parse_immediate(sql: SqlText) -> _Immediate | None:
    """EXECUTE IMMEDIATE; None if the text is another kind of statement."""
    cursor = Cursor(sql)
    if not cursor.accept("EXECUTE", "IMMEDIATE"):
        return None
    statement, _ = _until(cursor, "INTO", "USING")
    into = _until(cursor, "USING")[0].text if cursor.accept("INTO") else None
    if not cursor.accept("USING"):
        return _Immediate(statement.text, into=into)
    arguments, named = _until(cursor)
    if arguments.text.startswith("(") and arguments.text.endswith(")"):
        arguments, named = _until(Cursor(arguments.part(1, len(arguments.text) - 1)))
    return _Immediate(statement.text, arguments.text, named, into)


def _until(cursor: Cursor, *words: str) -> tuple[SqlText, bool]:
    """The text up to one of the words outside of brackets, and whether there is an AS in it."""
    start = end = cursor.token.start
    depth, named = 0, False
    while not cursor.is_at_end and not (depth == 0 and cursor.token.is_word(*words)):
        named = named or (depth == 0 and cursor.token.is_word("AS"))
        token = cursor.advance()
        depth += token.is_symbol("(") - token.is_symbol(")")
        end = token.end
    return cursor.sql.part(start, end), named
