"""MERGE INTO a lake's table: from a statement, or what `df.mergeInto` was told, to one commit.

With schema evolution the columns and the rows are one transaction: both are there, or nothing is.
"""

from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION
from bergline.spark.backends.choose import backend_of
from bergline.spark.query_text.merge_query import (
    INSERTED,
    MATCHED,
    UNMATCHED,
    ClauseValues,
    clause_values,
    compose_merge,
    compose_source,
    evolving_columns,
    key_columns,
)
from bergline.spark.reads.planning import plan_of_files, plan_read
from bergline.spark.rows.changes import RowLevelCommit
from bergline.spark.rows.merge import COPIED, checks_cardinality, merge_changes, merge_summary
from bergline.spark.rows.several_sources import SeveralSources
from bergline.spark.runtime.deterministic import check_deterministic, not_deterministic
from bergline.spark.writes.evolution import evolved, evolves
from bergline.spark.writes.scope import WritingSession
from bergline.spark.writes.store_assignment import AssignmentRules, assignment_rules
from bergline.spark.writes.target import WriteTarget, resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.queries.merge import MergeInto
from bergline.sql.text.composed import ComposedText
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

ReadTarget = Callable[[ComposedText, int, Target], tuple[DataFrame, TableScan]]
"""Runs a query, in which the target stands at an offset; the target's scan comes back with the rows."""
ReadQuery = Callable[[ComposedText], DataFrame]


def run_merge(
    session: WritingSession, merge: MergeInto, target: Target, read: ReadTarget, read_rows: ReadQuery
) -> None:
    """Run a statement on a target that was looked up; the readers run its queries."""
    _check_deterministic(merge)
    write_target = resolve_write_target(session, target, None)
    source = _source_columns(merge, read_rows)
    with evolved(target, _added_columns(merge, source)) as changing:
        rules = assignment_rules(session.spark)
        schema = changing.table.schema
        values = clause_values(merge, schema, source.names, case_sensitive=rules.is_case_sensitive)
        joined, scan = _read_joined(merge, changing, values, read)
        keys = key_columns(merge.condition.text(merge.sql), scan.metadata.schema, merge.alias or merge.table[-1])
        commit_merge(changing.table, write_target, joined, scan, values, rules=rules, keys=keys)


def explain_merge(
    session: WritingSession, merge: MergeInto, target: Target, read: ReadTarget, read_rows: ReadQuery
) -> DataFrame:
    """The plan of the query that joins target and source, by a `read` that explains; nothing is changed."""
    _check_deterministic(merge)
    resolve_write_target(session, target, None)
    source = _source_columns(merge, read_rows)
    if evolves(target.table, _added_columns(merge, source)):
        raise UnsupportedError(
            "cannot explain a MERGE that adds columns to the table, or changes their types",
            hints=["change the columns by ALTER TABLE, or leave out WITH SCHEMA EVOLUTION"],
        )
    rules = assignment_rules(session.spark)
    values = clause_values(merge, target.table.schema, source.names, case_sensitive=rules.is_case_sensitive)
    return _read_joined(merge, target, values, read)[0]


def _check_deterministic(merge: MergeInto) -> None:
    for condition in (merge.condition, *(clause.condition for clause in merge.clauses)):
        check_deterministic(merge.sql, condition, "MERGE")


def _source_columns(merge: MergeInto, read_rows: ReadQuery) -> T.StructType:
    """The columns of the source, where clauses go by them."""
    if not merge.schema_evolution and not any(clause.star for clause in merge.clauses):
        return T.StructType()
    return read_rows(compose_source(merge)).schema


def _added_columns(merge: MergeInto, source: T.StructType) -> T.StructType:
    """The columns of the source that the table takes over if it does not have them."""
    taken = evolving_columns(merge, source.names) if merge.schema_evolution else []
    return T.StructType([field for field in source if field.name in taken])


def _read_joined(
    merge: MergeInto, target: Target, values: tuple[ClauseValues, ...], read: ReadTarget
) -> tuple[DataFrame, TableScan]:
    metadata = target.table.metadata
    has_row_ids = metadata.format_version >= ROW_LINEAGE_VERSION
    composed = compose_merge(merge, values, [f.name for f in metadata.schema.fields], has_row_ids=has_row_ids)
    return read(composed.composed, composed.target_start, target)


def commit_merge(
    table: Table,
    write_target: WriteTarget,
    joined: DataFrame,
    scan: TableScan,
    clauses: Sequence[ClauseValues],
    *,
    rules: AssignmentRules,
    keys: Sequence[str],
) -> None:
    """Commit what clauses make of target and source joined; the scan is that of the target, the keys name its rows."""
    results, backend = [MATCHED, INSERTED, UNMATCHED], backend_of(joined)
    if any(clause.has_condition for clause in clauses) and backend.has_random_case(joined, results):
        raise not_deterministic("MERGE")
    metadata = scan.metadata
    has_row_ids = metadata.format_version >= ROW_LINEAGE_VERSION
    changes = merge_changes(joined, clauses, metadata.schema, rules, has_row_ids=has_row_ids)
    several = SeveralSources(
        lambda path: plan_of_files(plan_read(scan, backend), [path], backend, table.io),
        keys,
        metadata.schema,
        table.io,
        joined.sparkSession,
    )
    inserts_alone = all(clause.kind == "not matched" for clause in clauses)
    RowLevelCommit(table, scan, write_target, "merge").run(
        changes,
        twice=several if checks_cardinality(clauses) else None,
        summary=_no_entries if inserts_alone else merge_summary,
        copied_rows=None if inserts_alone else COPIED,
    )


def _no_entries(_: Mapping[int, int]) -> dict[str, str]:
    return {}
