"""DELETE, UPDATE and MERGE: from a statement to the rows that its query finds, and to one commit."""

from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bergline.errors import SqlSyntaxError
from bergline.spark.query_text.target_rows import set_fields, target_rows
from bergline.spark.rows.statements import (
    check_condition,
    delete_found_rows,
    delete_matching_rows,
    exact_delete,
    place_columns,
    update_found_rows,
)
from bergline.spark.runtime.deterministic import check_deterministic
from bergline.spark.statements.merging import explain_merge, run_merge
from bergline.spark.statements.queries import no_result
from bergline.spark.statements.query_session import QuerySession, TargetRows, TargetTable
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import OtherStatement, Query, RowLevel
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.text.composed import ComposedText, parameter_order
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import SqlText


def change_rows(session: QuerySession, statement: RowLevel, args: Any, *, explain: str = "") -> DataFrame:
    """Run a DELETE or UPDATE; with an `EXPLAIN`, the plan of the query that finds its rows."""
    target = session.lakes.resolve(statement.table)
    if target is None:
        return session.run_query(statement.whole, args, explain)
    sql = session.engine_text(statement.whole.sql)
    edited = statement if sql is statement.whole.sql else session.analyze(sql)
    statement = edited if isinstance(edited, RowLevel) else statement
    statement = msgspec.structs.replace(statement, table=session.full_name(statement.table))
    table, write_target = target.table, resolve_write_target(session, target, None)
    fields = set_fields(statement, table.schema, case_sensitive=session.lakes.engine.is_case_sensitive)
    check_deterministic(statement.whole.sql, statement.condition, statement.keyword)
    is_delete = statement.keyword == "DELETE" and not explain
    if is_delete and (row_filter := exact_delete(session, statement, table)) is not None:
        delete_matching_rows(session, table, write_target, row_filter)
        return no_result(session.spark)
    places = place_columns(table.metadata)
    columns = [f.name for f in table.schema.fields] if fields else []
    edits = target_rows(statement, [*places, *columns], fields)
    found = TargetTable(statement.target, target)
    read = session.read_target(statement.whole, args, found, places, edits, explain=explain)
    if explain:
        return read.rows
    check_condition(statement, read.rows)
    if fields:
        update_found_rows(read.rows, fields, table, read.scan, write_target)
    else:
        delete_found_rows(read.rows, table, read.scan, write_target)
    return no_result(session.spark)


def merge_rows(session: QuerySession, merge: MergeInto, args: Any, *, explain: str = "") -> DataFrame | None:
    """Run a MERGE, or with an `EXPLAIN` plan the join of target and source; None if its target is not a lake's."""
    target = session.lakes.resolve(merge.table)
    if target is None:
        check_not_of_lakes(OtherStatement("MERGE", dotted_names(merge.sql), subject=merge.table), session.lakes)
        return None
    sql = session.engine_text(merge.sql)
    edited = merge if sql is merge.sql else session.analyze(sql)
    merge = _with_full_names(edited if isinstance(edited, MergeInto) else merge, session)

    def given(query: Query) -> Any:
        if not isinstance(args, list | tuple):
            return args
        return [args[i] for i in parameter_order(query.sql, query.parts, merge.sql)] or None

    def read_target(composed: ComposedText, start: int, target: Target) -> TargetRows:
        query = _composed(session, merge, composed)
        use = next(use for use in query.tables if use.start == start)
        return session.read_target(query, given(query), TargetTable(use, target), (), (), explain=explain)

    def read_rows(composed: ComposedText) -> DataFrame:
        query = _composed(session, merge, composed)
        return session.run_query(query, given(query))

    if explain:
        return explain_merge(session, merge, target, read_target, read_rows)
    run_merge(session, merge, target, read_target, read_rows)
    return no_result(session.spark)


def _with_full_names(merge: MergeInto, session: QuerySession) -> MergeInto:
    """The statement with the names that columns of both sides may be qualified by."""
    source = merge.source
    if source.name is not None and session.lakes.place(source.name):
        source = msgspec.structs.replace(source, name=session.full_name(source.name))
    return msgspec.structs.replace(merge, table=session.full_name(merge.table), source=source)


def _composed(session: QuerySession, merge: MergeInto, composed: ComposedText) -> Query:
    """A query that was composed of parts of a MERGE."""
    found = session.backend.read_query(SqlText(composed.text, merge.sql.dialect))
    if isinstance(found, Query):
        return msgspec.structs.replace(found, within=(merge.sql.text, 0), parts=composed.parts)
    if found.leave_to_engine:  # Spark says what is wrong with it
        session.run_sql(merge.sql.text)
    raise found.error or SqlSyntaxError("cannot read the statement", line=1, column=1)
