"""MERGE INTO a lake's table: from a statement, or what `df.mergeInto` was told, to one commit.

With schema evolution the columns and the rows are one transaction: both are there, or nothing is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import SqlSyntaxError
from bergline.format.evolution.schema_changes import UnionByName
from bergline.format.evolution.schema_evolution import apply_schema_change, evolving
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION
from bergline.spark.rows.changes import RowLevelCommit
from bergline.spark.rows.merge import COPIED, checks_cardinality, merge_changes, merge_summary
from bergline.spark.runtime.types import iceberg_schema
from bergline.spark.writes.scope import WritingSession
from bergline.spark.writes.target import WriteTarget, resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.sql.queries.merge import MergeInto
from bergline.sql.queries.query import Query
from bergline.sql.queries.read import read_query
from bergline.sql.rewrite.merge_query import (
    ClauseValues,
    check_deterministic,
    clause_values,
    compose_merge,
    compose_source,
    evolving_columns,
)
from bergline.sql.text.composed import ComposedText
from bergline.sql.text.tokens import SqlText
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

_TWICE: Final = "expected at most one source row for each row of the table in MERGE"
ReadTarget = Callable[[Query, int, Target], tuple[DataFrame, TableScan]]
"""Runs a query, in which the target stands at an offset; the target's scan comes back with the rows."""
ReadQuery = Callable[[Query], DataFrame]


def run_merge(
    session: WritingSession, merge: MergeInto, target: Target, read: ReadTarget, read_rows: ReadQuery
) -> None:
    """Run a statement on a target that was looked up; the readers run its queries."""
    check_deterministic(merge)
    write_target = resolve_write_target(session, target, None)
    source = T.StructType()
    if merge.schema_evolution or any(clause.star for clause in merge.clauses):
        source = read_rows(_query(merge, compose_source(merge))).schema
    taken = evolving_columns(merge, source.names) if merge.schema_evolution else []
    with evolved(target, T.StructType([f for f in source if f.name in taken])) as changing:
        metadata = changing.table.metadata
        values = clause_values(merge, metadata.schema, source.names)
        has_row_ids = metadata.format_version >= ROW_LINEAGE_VERSION
        composed = compose_merge(merge, values, [f.name for f in metadata.schema.fields], has_row_ids=has_row_ids)
        joined, scan = read(_query(merge, composed.composed), composed.target_start, changing)
        commit_merge(changing.table, write_target, joined, scan, values)


def commit_merge(
    table: Table, write_target: WriteTarget, joined: DataFrame, scan: TableScan, clauses: Sequence[ClauseValues]
) -> None:
    """Commit what clauses make of target and source joined; the scan is that of the target."""
    metadata = scan.metadata
    has_row_ids = metadata.format_version >= ROW_LINEAGE_VERSION
    changes = merge_changes(joined, clauses, metadata.schema, has_row_ids=has_row_ids)
    twice = _TWICE if checks_cardinality(clauses) else ""
    inserts_alone = all(clause.kind == "not matched" for clause in clauses)
    RowLevelCommit(table, scan, write_target, "merge").run(
        changes,
        twice=twice,
        summary=_no_entries if inserts_alone else merge_summary,
        copied_rows=None if inserts_alone else COPIED,
    )


def _no_entries(_: Mapping[int, int]) -> dict[str, str]:
    return {}


@contextmanager
def evolved(target: Target, source: T.StructType) -> Iterator[Target]:
    """The target with the columns of the source that it lacks, and types as wide; the block's commits are one."""
    table: Table = target.table
    if not source.fields:
        yield target
        return
    wanted = iceberg_schema(source)
    if apply_schema_change(evolving(table.metadata), UnionByName(wanted)).schema == table.schema:
        yield target
        return
    with table.transaction() as changing:
        with changing.update_schema() as schema:
            schema.union_by_name(wanted)
        yield Target(changing, target.selector)


def _query(merge: MergeInto, composed: ComposedText) -> Query:
    found = read_query(SqlText(composed.text))
    if not isinstance(found, Query):
        raise found.error or SqlSyntaxError("cannot read the statement", line=1, column=1)
    return msgspec.structs.replace(found, within=(merge.sql.text, 0), parts=composed.parts)
