"""MERGE INTO a lake's table: from a statement, or what `df.mergeInto` was told, to one commit.

With schema evolution the columns and the rows are one transaction: both are there, or nothing is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import SqlSyntaxError, UnsupportedError
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION
from bergline.spark.backends.choose import backend_of
from bergline.spark.merge.changes import COPIED, checks_cardinality, merge_changes, merge_summary
from bergline.spark.merge.clauses import RESULTS, AssignedClause
from bergline.spark.merge.several_sources import SeveralSources
from bergline.spark.merge.text_query import compose_merge, compose_source, evolving_columns, text_clauses
from bergline.spark.query_text.deterministic import check_deterministic, not_deterministic
from bergline.spark.query_text.lake_functions import with_lake_functions
from bergline.spark.reads.planning import plan_of_files, plan_read
from bergline.spark.rows.changes import RowLevelCommit
from bergline.spark.statements.queries import no_result
from bergline.spark.statements.session_queries import SessionQueries, TargetRows, TargetTable
from bergline.spark.statements.tables import SessionTables
from bergline.spark.writes.evolution import evolved, evolves
from bergline.spark.writes.store_assignment import AssignmentRules, assignment_rules
from bergline.spark.writes.target import WriteTarget, resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import OtherStatement, Query
from bergline.sql.queries.rewritten import ComposedText, parameter_order
from bergline.sql.statements.other import check_not_of_lakes
from bergline.sql.text.names import dotted_names
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table


def merge_rows(queries: SessionQueries, merge: MergeInto, args: Any, *, explain: str = "") -> DataFrame | None:
    """Run a MERGE, or with an `EXPLAIN` plan the join of target and source; None if its target is not a lake's."""
    tables = queries.tables
    target = tables.lakes.resolve(merge.table)
    if target is None:
        check_not_of_lakes(OtherStatement("MERGE", dotted_names(merge.sql), subject=merge.table), tables.lakes)
        return None
    sql = with_lake_functions(merge.sql, tables.lakes)
    edited = merge if sql is merge.sql else queries.analyze(sql)
    merge = _with_full_names(edited if isinstance(edited, MergeInto) else merge, tables)
    for condition in (merge.condition, *(clause.condition for clause in merge.clauses)):
        check_deterministic(merge.sql, condition, "MERGE")
    write_target = resolve_write_target(tables, target, None)
    source = _source_columns(queries, merge, args)
    # the columns of the source that the table takes over if it does not have them
    taken = evolving_columns(merge, source.names) if merge.schema_evolution else []
    added = T.StructType([field for field in source if field.name in taken])
    rules = assignment_rules(tables.spark)
    if explain:
        if evolves(target.table, added):
            raise UnsupportedError(
                "cannot explain a MERGE that adds columns to the table, or changes their types",
                hints=["change the columns by ALTER TABLE, or leave out WITH SCHEMA EVOLUTION"],
            )
        clauses = text_clauses(merge, target.table.schema, source.names, case_sensitive=rules.is_case_sensitive)
        return _read_joined(queries, merge, args, target, clauses, explain=explain).rows
    with evolved(target, added) as changing:
        clauses = text_clauses(merge, changing.table.schema, source.names, case_sensitive=rules.is_case_sensitive)
        joined, scan = _read_joined(queries, merge, args, changing, clauses)
        on = merge.condition.text(merge.sql), merge.alias or merge.table[-1]
        commit_merge(changing.table, write_target, joined, scan, clauses, rules=rules, on=on)
    return no_result(tables.spark)


def commit_merge(
    table: Table,
    write_target: WriteTarget,
    joined: DataFrame,
    scan: TableScan,
    assigned: Sequence[AssignedClause],
    *,
    rules: AssignmentRules,
    on: tuple[str, str],
) -> None:
    """Commit what clauses make of target and source joined; the scan is that of the target.

    `on` are the text of the condition and the name that the target has there, for an error.
    """
    clauses, backend = [one.clause for one in assigned], backend_of(joined)
    has_conditions = any(clause.condition is not None for clause in clauses)
    if has_conditions and backend.has_random_case(joined, RESULTS.values()):
        raise not_deterministic("MERGE")
    metadata = scan.metadata
    changes = merge_changes(joined, assigned, metadata, rules)
    several = SeveralSources(
        lambda path: plan_of_files(plan_read(scan, backend), [path], backend, table.io),
        *on,
        metadata.schema,
        table.io,
        joined.sparkSession,
    )
    inserts_alone = all(clause.when == "not matched" for clause in clauses)
    RowLevelCommit(table, scan, write_target, "merge").run(
        changes,
        twice=several if checks_cardinality(clauses) else None,
        summary=_no_entries if inserts_alone else merge_summary,
        copied_rows=None if inserts_alone else COPIED,
    )


def _source_columns(queries: SessionQueries, merge: MergeInto, args: Any) -> T.StructType:
    """The columns of the source, where clauses go by them."""
    if not merge.schema_evolution and not any(clause.has_star for clause in merge.clauses):
        return T.StructType()
    return queries.run_query(*_query(queries, merge, args, compose_source(merge))).schema


def _read_joined(
    queries: SessionQueries,
    merge: MergeInto,
    args: Any,
    target: Target,
    clauses: tuple[AssignedClause, ...],
    *,
    explain: str = "",
) -> TargetRows:
    metadata = target.table.metadata
    has_row_ids = metadata.format_version >= ROW_LINEAGE_VERSION
    composed = compose_merge(merge, clauses, [f.name for f in metadata.schema.fields], has_row_ids=has_row_ids)
    query, given = _query(queries, merge, args, composed.composed)
    use = next(use for use in query.tables if use.start == composed.target_start)
    return queries.read_target(query, given, TargetTable(use, target), (), (), explain=explain)


def _query(queries: SessionQueries, merge: MergeInto, args: Any, composed: ComposedText) -> tuple[Query, Any]:
    """A query that was composed of parts of a MERGE, and its arguments."""
    found = queries.tables.backend.sql.read_query(SqlText(composed.text, merge.sql.dialect))
    if not isinstance(found, Query):
        if found.leave_to_engine:  # Spark says what is wrong with it
            queries.run_sql(merge.sql.text)
        raise found.error or SqlSyntaxError("cannot read the statement", line=1, column=1)
    query = msgspec.structs.replace(found, within=(merge.sql.text, 0), parts=composed.parts)
    if not isinstance(args, list | tuple):
        return query, args
    return query, [args[i] for i in parameter_order(query.sql, query.parts, merge.sql)] or None


def _with_full_names(merge: MergeInto, tables: SessionTables) -> MergeInto:
    """The statement with the names that columns of both sides may be qualified by."""
    source = merge.source
    if source.name is not None and tables.lakes.place(source.name):
        source = msgspec.structs.replace(source, name=tables.full_name(source.name))
    return msgspec.structs.replace(merge, table=tables.full_name(merge.table), source=source)


def _no_entries(_: Mapping[int, int]) -> dict[str, str]:
    return {}
