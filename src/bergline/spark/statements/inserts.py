"""Rows of a query that go into a table: INSERT, several of them from one source, and CREATE TABLE … AS."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from bergline.format.schema.schema import Schema
from bergline.format.types.types import NestedField
from bergline.spark.pushdown.provenance import branch_reads
from bergline.spark.query_text.assigned_fields import default_literal
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.runtime.types import stored_schema
from bergline.spark.statements.queries import no_result
from bergline.spark.statements.session_queries import SessionQueries
from bergline.spark.statements.tables import SessionTables
from bergline.spark.writes.assignment import assign
from bergline.spark.writes.insert import run_insert
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.rows import TableWrite
from bergline.spark.writes.store_assignment import AssignmentRules
from bergline.spark.writes.target import check_replaceable, resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.names.selector import VersionSelector
from bergline.sql.queries.query import Insert, MultiInsert, Query
from bergline.sql.statements.create_table import CreateTable, check_exists, place_new_table, staged
from bergline.sql.text.tokens import SqlText, Token, TokenKind
from bergline.table.commits.isolation import NO_ISOLATION


def insert_rows(queries: SessionQueries, insert: Insert, args: Any) -> DataFrame:
    """Run an INSERT."""
    tables = queries.tables
    target = tables.lakes.resolve(insert.table)
    if target is None:
        return queries.run_query(insert.whole, args)
    rows = _inserted_rows(queries, insert, target, args)
    run_insert(tables, insert, target, rows, engine=SparkRowEngine(tables.spark))
    return no_result(tables.spark)


def insert_several(queries: SessionQueries, statement: MultiInsert, args: Any) -> DataFrame:
    """Run several inserts from one source, each a commit of its own; all read what was there before the first."""
    tables = queries.tables
    targets = [tables.lakes.resolve(insert.table) for insert in statement.inserts]
    if not any(targets):
        return queries.run_query(statement.whole, args)
    runs = [
        _sparks_insert(queries, insert, args) if target is None else _lakes_insert(queries, insert, target, args)
        for insert, target in zip(statement.inserts, targets, strict=True)
    ]
    for run in runs:
        run()
    return no_result(tables.spark)


def _lakes_insert(queries: SessionQueries, insert: Insert, target: Target, args: Any) -> Callable[[], object]:
    rows = _inserted_rows(queries, insert, target, args)
    return lambda: run_insert(queries.tables, insert, target, rows, engine=SparkRowEngine(queries.tables.spark))


def _sparks_insert(queries: SessionQueries, insert: Insert, args: Any) -> Callable[[], object]:
    query = queries.parsed(insert.whole)
    ours = queries.lake_tables(query, args)
    return lambda: queries.query_rows(query, args, ours) if ours else queries.run_sql(query.text, args)


def _inserted_rows(queries: SessionQueries, insert: Insert, target: Target, args: Any) -> DataFrame:
    query = queries.analyzed_again(insert.source, source_with_defaults(insert, target.table.schema))
    return queries.run_query(query, args)


def create_as(queries: SessionQueries, statement: CreateTable, query: Query, args: Any) -> DataFrame:
    """A table with the columns and rows of a query: both are there when it is, or nothing is."""
    tables = queries.tables
    placed = place_new_table(statement, tables.lakes)
    if placed is None:
        return queries.run_query(statement.whole or query, args)
    if check_exists(statement, *placed) and statement.if_not_exists:
        return no_result(tables.spark)
    check_replaces(tables, statement)
    rows = queries.run_query(query, args)
    reads = branch_reads(rows) if statement.replaces else ()
    with staged(statement, tables.lakes, placed, stored_schema(rows.schema), reads) as table:
        write_target = resolve_write_target(tables, Target(table, VersionSelector()), None)
        # what was read of the old table is validated where it is replaced
        writing = TableWrite(tables.spark, table, write_target, WriteOptions(isolation=NO_ISOLATION))
        write = writing.overwrite if statement.replaces else writing.append
        write(assign(rows, table.schema, by_name=False, rules=AssignmentRules()))
    return no_result(tables.spark)


def check_replaces(tables: SessionTables, statement: CreateTable) -> None:
    """Refuse a statement that would replace a table that must stay."""
    placed = place_new_table(statement, tables.lakes) if statement.replaces else None
    if placed is not None:
        check_replaceable(tables, *placed)


def source_with_defaults(insert: Insert, schema: Schema) -> SqlText:
    """The query of an INSERT, with values in place of DEFAULT in VALUES rows and in the outermost SELECT list."""
    sql = insert.source.sql
    if insert.by_name or not sql.has_word("DEFAULT"):
        return sql
    targets = _targets(insert, schema)
    defaults = [(token, targets[place]) for token, place in _defaults(sql.tokens) if place < len(targets)]
    return sql.edited((token.start, token.end, default_literal(field)) for token, field in defaults)


def _targets(insert: Insert, schema: Schema) -> list[NestedField]:
    """The columns that the query supplies, in order; unknown names are reported later."""
    if insert.columns is not None:
        known = {field.name.casefold(): field for field in schema.fields}
        return [known[name.casefold()] for name in insert.columns if name.casefold() in known]
    given = {name.casefold() for name, value in insert.partition if value is not None}
    return [field for field in schema.fields if field.name.casefold() not in given]


def _defaults(tokens: Sequence[Token]) -> list[tuple[Token, int]]:
    """Each DEFAULT that is a whole value of a row, with its position there."""
    row_depth = 1 if tokens[0].is_word("VALUES") else 0
    if not tokens[0].is_word("VALUES", "SELECT"):
        return []
    found, depth, place = [], 0, 0
    for before, token, after in zip(tokens, tokens[1:], [*tokens[2:], tokens[-1]], strict=False):
        if token.kind is TokenKind.SYMBOL and token.text in "([{":
            depth += 1
            place = 0 if depth == row_depth else place
        elif token.kind is TokenKind.SYMBOL and token.text in ")]}":
            depth -= 1
        elif depth == row_depth and token.is_symbol(","):
            place += 1
        elif depth == row_depth and token.is_word("FROM"):
            break
        elif depth == row_depth and token.is_word("DEFAULT") and _stands_alone(before, after):
            found.append((token, place))
    return found


def _stands_alone(before: Token, after: Token) -> bool:
    opens = before.is_symbol("(") or before.is_symbol(",") or before.is_word("SELECT")
    closes = after.is_symbol(")") or after.is_symbol(",") or after.is_symbol(";") or after.kind is TokenKind.END
    return opens and (closes or after.is_word("FROM"))
