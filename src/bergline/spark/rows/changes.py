"""Rows of a table that a command changes, from a change frame to one commit.

A change frame has a row for each row that is deleted, updated or added: `change_columns` names its columns. Where
they are few, this process writes new rows and gathers positions; else tasks do, or where rows are only deleted, Spark
makes bitmaps of their positions. Of many rows the driver sees file names, counts and sets of positions alone.
"""

import logging
import pickle
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, cast

import msgspec
from pyspark.sql import DataFrame

from bergline.arguments import counted
from bergline.datafiles.write.write_spec import WriteSpec, write_spec
from bergline.errors import BerglineError
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.planned_files import records_of
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.planning import ReadPlan, plan_of_files, plan_read
from bergline.spark.rows.change_task import ADDS, DELETES, ChangeTask, ChangeTaskResult, Positions
from bergline.spark.rows.engine import SparkRowEngine
from bergline.spark.rows.found_positions import find_positions, find_twice, most_bitmaps
from bergline.spark.rows.little_work import few_rows
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.writes.data_files import (
    described_jobs,
    in_small_batches,
    remove_other_attempts,
    removed_on_failure,
)
from bergline.spark.writes.distribution import arrange_local_rows, arrange_rows
from bergline.spark.writes.rows import snapshot_summary
from bergline.spark.writes.target import WriteTarget
from bergline.spark.writes.task import this_attempt
from bergline.table.commits.isolation import RowLevelCommand
from bergline.table.operations.row_changes import RowChanges, RowLevelWrite, write_row_changes
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
_PLACES: Final = (ACTION, FILE, POS)
_LOG = logging.getLogger("bergline.spark")


def change_columns(metadata: TableMetadata, *, adds: bool = True) -> list[str]:
    """The columns of a change frame: action, data file and position of a row, and those of its new version.

    A row that is inserted has no file, no position and, in format version 3, no `_row_id`; one that is only deleted, or
    kept, has nothing else.
    """
    lineage = [ROW_ID.name] if metadata.format_version >= ROW_LINEAGE_VERSION else []
    return [*_PLACES, *([*lineage, *(f.name for f in metadata.schema.fields)] if adds else [])]


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
    writing = _ChangeWriter(io, metadata, command, what, twice)
    with described_jobs(changes.sparkSession, what):
        changed = writing.here(changes)
        if changed is None:
            changed = writing.in_tasks(changes, planned)
    _log(what, changed, time.monotonic() - started)
    return changed


class _ChangeWriter(NamedTuple):
    """One call of `write_changes`."""

    io: FileIO
    metadata: TableMetadata
    command: RowLevelCommand
    what: str
    twice: RowError | None

    def here(self, changes: DataFrame) -> ChangedRows | None:
        """What becomes of few rows, which this process gathers and writes; None if they may be many."""
        arranged = arrange_local_rows(changes, self.metadata)
        spec = self._spec(arranged.sort_order_id)
        rows = few_rows(arranged.frame)
        if rows is None:
            return None
        task = ChangeTask(self.io, spec, str(uuid.uuid4()), self._names(changes))
        result = task.carry_out(rows, this_attempt())
        try:
            return _joined([result], self.twice)
        except BaseException:
            self.io.delete(file.file_path for file in result.files)
            raise

    def in_tasks(self, changes: DataFrame, planned: ReadPlan) -> ChangedRows:
        """What becomes of any number of rows."""
        if self.command == "merge":
            changes = backend_of(changes).with_semi_join(changes)
        return self._written(changes) if self._names(changes) else self._found(changes, planned)

    def _found(self, changes: DataFrame, planned: ReadPlan) -> ChangedRows:
        """Positions alone."""
        found = find_positions(changes, _most_bitmaps(planned))
        if self.twice is not None and found.has_twice:
            raise self.twice(*find_twice(changes))
        return ChangedRows((), found.of(DELETES), found.counts)

    def _written(self, changes: DataFrame) -> ChangedRows:
        """Positions and new rows of one evaluation: each task sends back both."""
        job, backend = str(uuid.uuid4()), backend_of(changes)
        arranged = arrange_rows(changes, self.metadata, self.command)
        io, spec = self.io, self._spec(arranged.sort_order_id)
        prepare_executors(backend, spec.data_location)
        task = ChangeTask(io, spec, job, self._names(changes))
        with removed_on_failure(io, spec.data_location, job):
            written = backend.map_in_arrow(arranged.frame, task.run, "result binary")
            with in_small_batches(written, changes.schema) as running:
                collected = running.collect()
            results = [cast("ChangeTaskResult", pickle.loads(row.result)) for row in collected]  # noqa: S301  (ours)
            changed = _joined(results, self.twice)
            attempts, kept = [result.attempt for result in results], [file.file_path for file in changed.added]
            remove_other_attempts(backend, io, spec.data_location, job, attempts, keep=kept)
        return changed

    def _names(self, changes: DataFrame) -> list[str]:
        return changes.columns[len(_PLACES) :]

    def _spec(self, sort_order_id: int) -> WriteSpec:
        spec = write_spec(self.metadata, check_types=False)
        return msgspec.structs.replace(spec, schema=_written_columns(self.metadata), sort_order_id=sort_order_id)


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
    """How many bitmaps hold the positions of all rows that a scan may read, at most."""
    work, files = planned.work, planned.plan.files
    return most_bitmaps(work.files, work.rows) if work else most_bitmaps(len(files), records_of(files))


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
