"""DELETE, UPDATE and TRUNCATE TABLE on lake tables: change frames of the rows that a statement's query found."""

from collections.abc import Iterable, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.bound_filter import BoundFilter
from bergline.expressions.predicate import ALWAYS_FALSE
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema import reserved
from bergline.spark.backends.choose import backend_of
from bergline.spark.pushdown.condition import exact_condition, exact_equality
from bergline.spark.query_text.assigned_fields import AssignedField
from bergline.spark.query_text.deterministic import not_deterministic
from bergline.spark.query_text.lake_functions import FUNCTION_PREFIX
from bergline.spark.rows.changes import ACTION, DELETED, FILE, POS, UPDATED, RowLevelCommit
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.writes.assigned_columns import assigned_value, updated_columns
from bergline.spark.writes.insert import static_values
from bergline.spark.writes.projection import project, with_computed
from bergline.spark.writes.rows import snapshot_summary
from bergline.spark.writes.scope import WritingSession
from bergline.spark.writes.store_assignment import AssignmentRules, assignment_rules
from bergline.spark.writes.target import WriteTarget
from bergline.sql.queries.query import RowLevel
from bergline.sql.text.tokens import SqlText
from bergline.table.commits.isolation import isolation_level
from bergline.table.manifests.removal import Everything
from bergline.table.operations.delete import Delete, RowsToDelete
from bergline.table.operations.overwrite import Overwrite
from bergline.table.references.staged import staged
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table


def place_columns(metadata: TableMetadata) -> list[str]:
    """The metadata columns that say where a row is, and in format version 3 which one it is."""
    lineage = [reserved.ROW_ID.name] if metadata.format_version >= ROW_LINEAGE_VERSION else []
    places = [reserved.FILE.name, reserved.POS.name, *lineage]
    if own := [name for name in places if name in metadata.schema.names]:
        raise UnsupportedError(
            f"cannot change rows of a table with a column `{own[0]}`, which has the name of a metadata column",
            hints=["rename the column"],
        )
    return places


def exact_delete(session: WritingSession, statement: RowLevel, table: Table) -> BoundFilter | None:
    """The filter that means exactly what the condition of a DELETE means; None if none is known."""
    place = statement.condition
    condition = SqlText("true") if place is None else statement.whole.sql.part(place.start, place.end)
    if condition.has_word("SELECT") or FUNCTION_PREFIX in condition.text:
        return None
    alias = statement.alias or statement.table[-1]
    try:
        return exact_condition(session.spark, table.schema, condition.text, alias=alias)
    except (AnalysisException, UnsupportedError):
        return None  # the query says what is wrong with it


def check_condition(statement: RowLevel, rows: DataFrame) -> None:
    """Refuse a condition with a random function that only Spark knows to be one."""
    if backend_of(rows).has_random_filter(rows):
        raise not_deterministic(statement.keyword)


def delete_matching_rows(
    session: WritingSession, table: Table, write_target: WriteTarget, row_filter: BoundFilter
) -> None:
    """Delete the rows that match a filter: whole files by their metadata, others by tasks."""
    level = isolation_level(table.metadata, "delete")
    rows = RowsToDelete(row_filter, write_target.branch, level, starts_branch=write_target.starts_branch)
    summary = snapshot_summary(session.spark, write_target)
    if row_filter.predicate == ALWAYS_FALSE:
        return
    engine = SparkRowEngine(session.spark)
    operation = Delete(table.io, rows, summary=summary, engine=engine, commit_empty=write_target.commits_empty)
    table.commit(staged(operation, write_target.wap_id))


def changed_twice(path: str, position: int) -> InvalidInputError:
    """The error for a row that a query found twice."""
    return InvalidInputError(
        f"expected one change of each row, found several for the row at position {position} of {path}"
    )


def delete_found_rows(rows: DataFrame, table: Table, scan: TableScan, write_target: WriteTarget) -> None:
    """Delete rows that a query found; their file and position are its first columns."""
    names = [f"_{i}" for i in range(len(rows.columns))]
    changes = project(backend_of(rows).with_names(rows, names), [(ACTION, str(DELETED)), (FILE, "_0"), (POS, "_1")])
    RowLevelCommit(table, scan, write_target, "delete").run(changes, twice=changed_twice)


def update_found_rows(
    rows: DataFrame, fields: Sequence[AssignedField], table: Table, scan: TableScan, write_target: WriteTarget
) -> None:
    """Update rows that a query found: where they are, their columns, and the new values of these fields."""
    changes = update_changes(rows, fields, scan.metadata, assignment_rules(rows.sparkSession))
    RowLevelCommit(table, scan, write_target, "update").run(changes, twice=changed_twice)


def update_changes(
    rows: DataFrame, fields: Sequence[AssignedField], metadata: TableMetadata, rules: AssignmentRules
) -> DataFrame:
    """The change frame of such rows."""
    schema, types = metadata.schema, [column.dataType for column in rows.schema]
    places = len(place_columns(metadata))
    first = places + len(schema.fields)
    numbered = backend_of(rows).with_names(rows, [f"_{i}" for i in range(len(types))])
    given = {
        assigned.path: assigned_value(f"_{i}", types[i], assigned, rules) for i, assigned in enumerate(fields, first)
    }
    frame, values = with_computed(numbered, given)
    new = updated_columns(schema, values, {field.name: f"_{i}" for i, field in enumerate(schema.fields, places)})
    lineage = [(reserved.ROW_ID.name, f"_{i}") for i in range(2, places)]
    return project(frame, [(ACTION, str(UPDATED)), (FILE, "_0"), (POS, "_1"), *lineage, *new.items()])


def truncate(
    session: WritingSession,
    table: Table,
    write_target: WriteTarget,
    partition: Iterable[tuple[str, str | None]] = (),
) -> None:
    """Remove all files of a branch; a branch without any gets a snapshot all the same, as Spark users know it.

    With values of partition columns, only the rows that have them.
    """
    if values := static_values(session.spark, partition, table):
        row_filter = exact_equality(session.spark, table.schema, values)
        delete_matching_rows(session, table, write_target, row_filter)
        return
    summary = snapshot_summary(session.spark, write_target)
    operation = Overwrite(
        table.io,
        (),
        [Everything()],
        branch=write_target.branch,
        summary=summary,
        starts_branch=write_target.starts_branch,
    )
    table.commit(staged(operation, write_target.wap_id))
