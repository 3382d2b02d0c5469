"""DELETE and UPDATE: from a statement to the rows that its query finds, and to one commit."""

from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bergline.spark.query_text.deterministic import check_deterministic
from bergline.spark.query_text.target_rows import set_fields, target_rows
from bergline.spark.rows.statements import (
    check_condition,
    delete_found_rows,
    delete_matching_rows,
    exact_delete,
    place_columns,
    update_found_rows,
)
from bergline.spark.statements.queries import no_result
from bergline.spark.statements.query_session import QuerySession, TargetTable
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.queries.query import RowLevel


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
