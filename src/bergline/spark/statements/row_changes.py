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
from bergline.spark.statements.session_queries import SessionQueries, TargetTable
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.queries.query import RowLevel


def change_rows(queries: SessionQueries, statement: RowLevel, args: Any, *, explain: str = "") -> DataFrame:
    """Run a DELETE or UPDATE; with an `EXPLAIN`, the plan of the query that finds its rows."""
    tables = queries.tables
    target = tables.lakes.resolve(statement.table)
    if target is None:
        return queries.run_query(statement.whole, args, explain)
    sql = queries.engine_text(statement.whole.sql)
    edited = statement if sql is statement.whole.sql else queries.analyze(sql)
    statement = edited if isinstance(edited, RowLevel) else statement
    statement = msgspec.structs.replace(statement, table=tables.full_name(statement.table))
    table, write_target = target.table, resolve_write_target(tables, target, None)
    fields = set_fields(statement, table.schema, case_sensitive=tables.lakes.engine.is_case_sensitive)
    check_deterministic(statement.whole.sql, statement.condition, statement.keyword)
    is_delete = statement.keyword == "DELETE" and not explain
    if is_delete and (row_filter := exact_delete(tables, statement, table)) is not None:
        delete_matching_rows(tables, table, write_target, row_filter)
        return no_result(tables.spark)
    places = place_columns(table.metadata)
    columns = [f.name for f in table.schema.fields] if fields else []
    edits = target_rows(statement, [*places, *columns], fields)
    found = TargetTable(statement.target, target)
    read = queries.read_target(statement.whole, args, found, places, edits, explain=explain)
    if explain:
        return read.rows
    check_condition(statement, read.rows)
    if fields:
        update_found_rows(read.rows, fields, table, read.scan, write_target)
    else:
        delete_found_rows(read.rows, table, read.scan, write_target)
    return no_result(tables.spark)
