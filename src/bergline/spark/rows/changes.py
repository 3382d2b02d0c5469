"""Rows of a table that a command changes, from a change frame to one commit.

A change frame has a row for each row that is deleted, updated or added: `change_columns` names its columns. Where rows
are only deleted, Spark makes bitmaps of their positions; else tasks write the new rows and gather positions. The driver
sees file names, counts and sets of positions, never rows.
"""

import logging
import pickle
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

import msgspec
from pyspark.sql import DataFrame

from bergline.arguments import counted
from bergline.errors import BerglineError
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.parquet.write.write_spec import write_spec
from bergline.scan.planned_files import records_of, sizes_of
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.planning import ReadPlan, plan_of_files, plan_read
from bergline.spark.rows.change_task import ADDS, DELETES, ChangeTask, ChangeTaskResult, Positions
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.rows.found_positions import STRETCH, find_positions, find_twice
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.writes.data_files import described_jobs, in_small_batches, remove_other_attempts, removed_on_failure
from bergline.spark.writes.distribution import arrange_rows
from bergline.spark.writes.rows import snapshot_summary
from bergline.spark.writes.target import WriteTarget
from bergline.table.changes.row_changes import RowChanges, RowLevelWrite, write_row_changes
from bergline.table.commits.isolation import RowLevelCommand
from bergline.table.references.staged import staged
from bergline.table.scans.scan import TableScan
from bergline.table.table import Table

DELETED: Final = DELETES
UPDATED: Final = DELETES | ADDS
INSERTED: Final = ADDS
KEPT: Final = 0
"""Actions of a change frame. Higher bits are a caller's own, to tell apart what it counts."""
ACTION: Final = "_bergline_action"
FILE: Final = "_bergline_file"
POS: Final = "_bergline_pos"
RowError = Callable[[str, int], BerglineError]
"""What is wrong if a row comes twice: the row of a data file at a position."""
_SMALL_TARGET: Final = 1 << 20
"""Targets of fewer bytes are joined before it is clear how to do it best."""
_LOG = logging.getLogger("bergline.spark")


def change_columns(metadata: TableMetadata, *, adds: bool = True) -> list[str]:
    """The columns of a change frame: action, data file and position of a row, and those of its new version.

    A row that is inserted has no file, no position and, in format version 3, no `_row_id`; one that is only deleted, or
    kept, has nothing else.
    """
    lineage = [ROW_ID.name] if metadata.format_version >= ROW_LINEAGE_VERSION else []
    return [ACTION, FILE, POS, *([*lineage, *(f.name for f in metadata.schema.fields)] if adds else [])]


class ChangedRows(msgspec.Struct, frozen=True):
    """What the tasks of a change frame wrote and gathered."""

    added: tuple[DataFile, ...]
    deleted: Mapping[str, PositionSet]
    counts: Mapping[int, int]
    """How many rows came with each action."""


class RowLevelCommit:
    """One command on a branch of a table, whose rows were read by a scan."""

    def __init__(self, table: Table, scan: TableScan, write_target: WriteTarget, command: RowLevelCommand) -> None:
        self._table = table
        self._scan = scan
        self._write_target = write_target
        self._command = command

    def run(
        self,
        changes: DataFrame,
        *,
        twice: RowError | None = None,
        summary: Callable[[Mapping[int, int]], Mapping[str, str]] = lambda _: {},
        copied_rows: str | None = None,
    ) -> Mapping[int, int]:
        """Carry out the changes of a frame and commit them, if there are any; the counts by action come back.

        A row of the table that comes twice is the error `twice`, if there is one, and leaves nothing behind. The
        summary gets the entries that `summary` makes of the counts, and the number of rows that were copied, if that
        has a name.
        """
        table, spark, target = self._table, changes.sparkSession, self._write_target
        metadata = self._scan.metadata
        write = RowLevelWrite(
            self._command,
            target.branch,
            target.starts_branch,
            summary=snapshot_summary(spark, target),
            copied_rows=copied_rows,
        )
        # what may fail comes before rows are written: from then on files have an owner that removes them
        backend = backend_of(spark)
        planned, engine = plan_read(self._scan, backend), SparkRowEngine(spark)
        changed = write_changes(changes, table.io, metadata, self._command, planned, twice=twice)
        row_changes = RowChanges(changed.deleted, changed.added, summary(changed.counts))
        if row_changes.is_empty and not target.commits_empty:
            return changed.counts
        try:
            read = plan_of_files(planned, list(changed.deleted), backend, table.io)
        except BaseException:
            table.io.delete(file.file_path for file in changed.added)
            raise
        operation = write_row_changes(table.io, metadata, read, row_changes, write, engine=engine)
        table.commit(staged(operation, target.wap_id))
        return changed.counts


def write_changes(
    changes: DataFrame,
    io: FileIO,
    metadata: TableMetadata,
    command: RowLevelCommand,
    planned: ReadPlan,
    *,
    twice: RowError | None = None,
) -> ChangedRows:
    """The new rows of a change frame as files, and the positions of those that go; an error leaves no file.

    `planned` is how the rows of the table are read.
    """
    what, started = f"bergline: {command} rows of {metadata.location}", time.monotonic()
    if command == "merge" and sum(sizes_of(planned.plan.files)) > _SMALL_TARGET:
        changes = backend_of(changes).with_semi_join(changes)
    names = changes.columns[len(change_columns(metadata, adds=False)) :]
    if names:
        changed = _write_added(changes, names, io, metadata, command, what=what, twice=twice)
    else:
        with described_jobs(changes.sparkSession, what):
            changed = _find_deleted(changes, _most_bitmaps(planned), twice)
    _log(what, changed, time.monotonic() - started)
    return changed


def _find_deleted(changes: DataFrame, bitmaps: int, twice: RowError | None) -> ChangedRows:
    found = find_positions(changes, bitmaps)
    if twice is not None and found.has_twice:
        raise twice(*find_twice(changes))
    return ChangedRows((), found.of(DELETES), found.counts)


def _write_added(
    changes: DataFrame,
    names: list[str],
    io: FileIO,
    metadata: TableMetadata,
    command: RowLevelCommand,
    *,
    what: str,
    twice: RowError | None,
) -> ChangedRows:
    job, spec = str(uuid.uuid4()), write_spec(metadata)
    prepare_executors(backend_of(changes), spec.data_location)
    arranged = arrange_rows(changes, metadata, command)
    spec = msgspec.structs.replace(spec, schema=_written_columns(metadata), sort_order_id=arranged.sort_order_id)
    task = ChangeTask(io, spec, job, names)
    with removed_on_failure(io, spec.data_location, job):
        written = backend_of(changes).map_in_arrow(arranged.frame, task.run, "result binary")
        with described_jobs(changes.sparkSession, what), in_small_batches(written, changes.schema) as running:
            collected = running.collect()
        results = [cast("ChangeTaskResult", pickle.loads(row.result)) for row in collected]  # noqa: S301  (ours)
        changed = _joined(results, twice)
        attempts, kept = [result.attempt for result in results], [file.file_path for file in changed.added]
        remove_other_attempts(backend_of(changes), io, spec.data_location, job, attempts, keep=kept)
    return changed


def _joined(results: Sequence[ChangeTaskResult], twice: RowError | None) -> ChangedRows:
    if refusal := next((result.refusal for result in results if result.refusal), None):
        raise refusal
    deleted, seen = Positions(), Positions()
    for result in results:
        deleted.join(result.deleted)
        seen.join(result.deleted)
        seen.join(result.kept)
    by_file = deleted.by_file()
    if twice is not None:
        seen.by_file()
        found = seen.twice or next((result.twice for result in results if result.twice), None)
        if found is not None:
            raise twice(*found)
    counts = Counter[int]()
    for result in results:
        counts.update(result.counts)
    return ChangedRows(tuple(file for result in results for file in result.files), by_file, counts)


def _most_bitmaps(planned: ReadPlan) -> int:
    """How many bitmaps tell of all rows that a scan may read."""
    work, files = planned.work, planned.plan.files
    return work.files + work.rows // STRETCH if work else len(files) + records_of(files) // STRETCH


def _written_columns(metadata: TableMetadata) -> Schema:
    schema = metadata.schema
    if metadata.format_version < ROW_LINEAGE_VERSION:
        return schema
    # a row that was changed has no number of its own: it gets that of the commit
    fields = (*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER)
    return Schema(fields=fields, schema_id=schema.schema_id)


def _log(what: str, changed: ChangedRows, seconds: float) -> None:
    gone, files = counted(sum(map(len, changed.deleted.values())), "row"), counted(len(changed.deleted), "data file")
    rows = counted(sum(file.record_count for file in changed.added), "row")
    _LOG.info("%s: %s of %s deleted, %s added, %.1f s", what, gone, files, rows, seconds)
