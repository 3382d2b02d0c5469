"""MERGE INTO: target, source, condition and clauses, as places in the statement's text."""

import msgspec

from bergline.errors import SqlSyntaxError
from bergline.sql.queries.assignments import Assignment, Expression, parse_assignments, take_expression, take_value
from bergline.sql.queries.query import OtherStatement, QueryReader
from bergline.sql.queries.time_travel import time_travel_clauses
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import Name, SqlText, TokenKind, syntax_error
from bergline.table.row_merges.clauses import MergeClause, When, clause_before_others

TextClause = MergeClause[Expression, tuple[Assignment, ...]]
"""A clause of a statement: its condition and its values are places in the text."""
_NO_ALIAS = ("USING", "ON", "WHEN", "VERSION", "TIMESTAMP", "FOR", "SYSTEM_VERSION", "SYSTEM_TIME")


class MergeSource(msgspec.Struct, frozen=True):
    """What is merged: a table with its time travel clause, or a query in parentheses."""

    place: Expression
    name: Name | None
    alias: str | None


class MergeInto(msgspec.Struct, frozen=True):
    """MERGE INTO a table; `named_queries` is what WITH says before it."""

    sql: SqlText
    table: Name
    table_place: Expression
    alias: str | None
    source: MergeSource
    condition: Expression
    clauses: tuple[TextClause, ...]
    schema_evolution: bool = False
    named_queries: Expression | None = None


def read_merge(sql: SqlText, read: QueryReader) -> MergeInto | OtherStatement | None:
    """A MERGE; None if the text is none, and why it could not be read if it is one."""
    cursor = Cursor(sql)
    named_queries = _named_queries(cursor)
    if not cursor.token.is_word("MERGE"):
        return None
    try:
        return parse_merge(cursor, named_queries)
    except SqlSyntaxError as error:
        if isinstance(found := read(sql), OtherStatement) and found.leave_to_engine:
            return found
        return OtherStatement("MERGE", dotted_names(sql), error, cursor.subject)


def parse_merge(cursor: Cursor, named_queries: Expression | None = None) -> MergeInto:
    """The statement from the word MERGE on; SqlSyntaxError says what was expected where."""
    cursor.expect("MERGE")
    schema_evolution = cursor.accept("WITH", "SCHEMA", "EVOLUTION")
    cursor.expect("INTO")
    start = cursor.token.start
    table = cursor.expect_subject("a table name")
    table_place = Expression(start, _end_before(cursor))
    alias = _alias(cursor)
    cursor.expect("USING")
    source = _source(cursor)
    cursor.expect("ON")
    condition = take_expression(cursor, "a condition", _at_clause)
    clauses: list[TextClause] = []
    while not cursor.is_at_end:
        clauses.append(_clause(cursor))
    if not clauses:
        cursor.fail("`WHEN`")
    cursor.expect_end()
    if (early := clause_before_others(clauses)) is not None:
        message = f"expected a condition in every `WHEN {early.when.upper()}` but the last, found none"
        raise syntax_error(cursor.sql.text, early.start, message)
    return MergeInto(
        cursor.sql,
        table,
        table_place,
        alias,
        source,
        condition,
        tuple(clauses),
        schema_evolution,
        named_queries,
    )


def _named_queries(cursor: Cursor) -> Expression | None:
    """Walk over WITH … to the statement's own first word."""
    if not cursor.token.is_word("WITH"):
        return None
    start, end, depth = cursor.token.start, cursor.token.end, 0
    while cursor.token.kind is not TokenKind.END and not (depth == 0 and cursor.token.is_word("MERGE")):
        token = cursor.advance()
        depth += token.is_symbol("(") - token.is_symbol(")")
        end = token.end
    return Expression(start, end)


def _source(cursor: Cursor) -> MergeSource:
    start = cursor.token.start
    if cursor.accept_symbol("("):
        depth, end = 1, start
        while depth:
            if cursor.token.kind is TokenKind.END:
                cursor.fail("`)`")
            token = cursor.advance()
            depth += token.is_symbol("(") - token.is_symbol(")")
            end = token.end
        return MergeSource(Expression(start, end), None, _alias(cursor))
    name = cursor.expect_dotted_name("a table name or a query in parentheses")
    end = _end_before(cursor)
    for clause_start, clause_end, _ in time_travel_clauses(cursor.sql):
        if clause_start == cursor.token.start:
            while cursor.token.start < clause_end:
                cursor.advance()
            end = clause_end
    return MergeSource(Expression(start, end), name, _alias(cursor))


def _end_before(cursor: Cursor) -> int:
    """Where the token before the current one ends."""
    return max(token.end for token in cursor.sql.tokens if token.end <= cursor.token.start and token.text)


def _alias(cursor: Cursor) -> str | None:
    if cursor.accept("AS"):
        alias = cursor.expect_name("an alias")
    elif cursor.is_at_name and not cursor.token.is_word(*_NO_ALIAS):
        alias = cursor.advance().value
    else:
        return None
    if cursor.token.is_symbol("("):
        cursor.fail("an alias without columns")
    return alias


def _at_clause(cursor: Cursor) -> bool:
    return cursor.is_at("WHEN", "MATCHED") or cursor.is_at("WHEN", "NOT", "MATCHED")


def _at_then(cursor: Cursor) -> bool:
    return cursor.token.is_word("THEN")


def _clause(cursor: Cursor) -> TextClause:
    start = cursor.token.start
    cursor.expect("WHEN")
    when: When = "matched"
    if cursor.accept("NOT", "MATCHED"):
        when = "not matched by source" if cursor.accept("BY", "SOURCE") else "not matched"
        if when == "not matched" and cursor.accept("BY"):
            cursor.expect("TARGET")
    elif not cursor.accept("MATCHED"):
        cursor.fail("`MATCHED`, `NOT MATCHED` or `NOT MATCHED BY SOURCE`")
    condition = take_expression(cursor, "a condition", _at_then) if cursor.accept("AND") else None
    cursor.expect("THEN")
    if when == "not matched":
        return _insert(cursor, start, condition)
    if cursor.accept("DELETE"):
        return MergeClause(when, "delete", condition, start=start)
    if not cursor.accept("UPDATE"):
        cursor.fail("`UPDATE` or `DELETE`")
    cursor.expect("SET")
    has_star = when == "matched" and cursor.accept_symbol("*")
    values = None if has_star else parse_assignments(cursor, _at_clause)
    return MergeClause(when, "update", condition, values, start)


def _insert(cursor: Cursor, start: int, condition: Expression | None) -> TextClause:
    cursor.expect("INSERT")
    if cursor.accept_symbol("*"):
        return MergeClause("not matched", "insert", condition, start=start)
    columns = _columns(cursor)
    cursor.expect("VALUES")
    place = cursor.token.start
    cursor.expect_symbol("(")
    values = [take_value(cursor, _nowhere)]
    while cursor.accept_symbol(","):
        values.append(take_value(cursor, _nowhere))
    cursor.expect_symbol(")")
    if len(values) != len(columns):
        raise syntax_error(
            cursor.sql.text, place, f"expected {len(columns)} values, as many as columns, found {len(values)}"
        )
    assignments = (Assignment(name, at, value) for (name, at), value in zip(columns, values, strict=True))
    return MergeClause("not matched", "insert", condition, tuple(assignments), start)


def _columns(cursor: Cursor) -> list[tuple[Name, int]]:
    cursor.expect_symbol("(")
    columns = [(cursor.token.start, cursor.expect_dotted_name("a column name"))]
    while cursor.accept_symbol(","):
        columns.append((cursor.token.start, cursor.expect_dotted_name("a column name")))
    cursor.expect_symbol(")")
    return [(name, start) for start, name in columns]


def _nowhere(_: Cursor) -> bool:
    return False
