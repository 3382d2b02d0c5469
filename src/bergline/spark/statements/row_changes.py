"""DELETE and UPDATE: from a statement to the rows that its query finds, and to one commit."""

from collections.abc import Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame

from bergline.format.schema.schema import Schema
from bergline.quoting import back_quoted
from bergline.spark.query_text.assigned_fields import (
    AssignedField,
    assigned_fields,
    default_literal,
    place_of,
    qualifiers_of,
)
from bergline.spark.query_text.deterministic import check_deterministic
from bergline.spark.query_text.lake_functions import with_lake_functions
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
from bergline.sql.text.tokens import Edit


def change_rows(queries: SessionQueries, statement: RowLevel, args: Any, *, explain: str = "") -> DataFrame:
    """Run a DELETE or UPDATE; with an `EXPLAIN`, the plan of the query that finds its rows."""
    tables = queries.tables
    target = tables.lakes.resolve(statement.table)
    if target is None:
        return queries.run_query(statement.whole, args, explain)
    sql = with_lake_functions(statement.whole.sql, tables.lakes)
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


def target_rows(statement: RowLevel, columns: Sequence[str], fields: Sequence[AssignedField] = ()) -> tuple[Edit, ...]:
    """Edits that make the statement a query: it selects columns of the target, then the values of SET.

    `UPDATE t SET x = e WHERE c` becomes `FROM t SELECT …, (e) WHERE c`: all that the user wrote stays in its order, so
    that errors are shown where they are in the statement.
    """
    start, end = statement.start, statement.from_end
    text = f" SELECT {', '.join(map(back_quoted, columns))}"
    if not statement.assignments:
        return (start, start + len(statement.keyword), ""), (end, end, text)
    edits: list[Edit] = [(start, start + len(statement.keyword), "FROM")]
    text += ", ("
    for assignment, assigned in zip(statement.assignments, fields, strict=True):
        value = assignment.value
        if value is None:
            text += f"{default_literal(assigned.field)}), ("
        else:
            edits.append((end, value.start, text))
            end, text = value.end, "), ("
    return (*edits, (end, statement.set_end, text.removesuffix(", (")))


def set_fields(statement: RowLevel, schema: Schema, *, case_sensitive: bool = False) -> list[AssignedField]:
    """The column, or field inside of one, that each assignment of an UPDATE is to."""
    sql = statement.whole.sql
    names = [(assignment.target, place_of(sql, assignment.start)) for assignment in statement.assignments]
    qualifiers = qualifiers_of(statement.table, statement.alias)
    return assigned_fields(names, schema, qualifiers, case_sensitive=case_sensitive)
