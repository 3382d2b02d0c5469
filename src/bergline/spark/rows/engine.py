"""The row engine of Spark's executors: the parts of a plan run in tasks, side by side.

The driver sees names and counts, and opens no data file, unless there is so little to do that tasks would take longer.
"""

import concurrent.futures
import functools
import logging
import operator
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import msgspec
from pyspark.sql import SparkSession

from bergline.arguments import counted
from bergline.errors import UnsupportedError
from bergline.format.deletes.position_set import PositionSet
from bergline.format.schema.reserved import FILE, POS
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.planned_files import records_of
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads.errors import missing_files_named
from bergline.spark.reads.scan import read_plan
from bergline.spark.rows.change_task import DELETES
from bergline.spark.rows.found_positions import find_positions, most_bitmaps
from bergline.spark.rows.little_work import is_little
from bergline.spark.rows.parts import split_deleted, split_groups
from bergline.spark.rows.sorting import rewrite_sorted_group
from bergline.spark.rows.task import CarryOut, ComputeTask, RowTask, RowTaskResult
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.runtime.tasks import task_frame
from bergline.spark.writes.data_files import remove_other_attempts, removed_on_failure
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import (
    DeletedPositions,
    DeleteJoin,
    KnownDeletePlan,
    PositionDeletePlan,
    RewriteGroup,
    RewritePlan,
)
from bergline.table.engine.position_deletes import join_deletes, write_deletes
from bergline.table.engine.rewrite_rows import rewrite_group
from bergline.table.engine.row_engine import Computed, FileChanges, Part, gathered_changes, joined_changes
from bergline.table.engine.z_order import ZOrder

_LOG = logging.getLogger("bergline.spark")
_FEW_DELETE_FILES = 8
"""As many are read by the driver sooner than by a task."""
_FEW_NEW_FILES, _FEW_POSITIONS = 32, 1_000_000
"""As many position delete files, which hold so many rows, are written by the driver sooner than by tasks."""
_GROUPS_AT_A_TIME = 5
_PLACES = Schema(fields=(FILE, POS))


class SparkRowEngine:
    """Data files that are rewritten, or get delete files, are spread over tasks; each is in one."""

    def __init__(self, spark: SparkSession) -> None:
        self._backend = backend_of(spark)

    def rewrite(self, io: FileIO, plan: RewritePlan) -> FileChanges:
        """Each task writes files of its own."""
        if is_little([planned for group in plan.groups for planned in group.files]):
            return ArrowRowEngine().rewrite(io, plan)
        return joined_changes(self.rewrite_groups(io, plan))

    def rewrite_groups(self, io: FileIO, plan: RewritePlan) -> list[FileChanges]:
        """Groups whose rows stay in order and place are one job; others are a job each, a few at a time."""
        if not plan.groups:
            return []
        cores = self._prepare(plan.data_location)
        alone = [n for n, group in enumerate(plan.groups) if plan.delete_where is None and _is_shuffled(group)]
        if plan.groups_at_a_time is not None and plan.delete_where is None:
            alone = list(range(len(plan.groups)))
        together = [n for n in range(len(plan.groups)) if n not in set(alone)]
        done: dict[int, FileChanges] = {}
        try:
            if together:
                some = msgspec.structs.replace(plan, groups=tuple(plan.groups[n] for n in together))
                done |= zip(together, self._rewrite_plainly(io, some, cores), strict=True)
            if alone:
                self._rewrite_alone(io, plan, alone, cores, done)
        except BaseException:
            io.delete(joined_changes(done.values()).paths)
            raise
        return [done[n] for n in range(len(plan.groups))]

    def _rewrite_plainly(self, io: FileIO, plan: RewritePlan, cores: int) -> list[FileChanges]:
        parts = split_groups(plan, cores)
        files = counted(sum(len(group.files) for group in plan.groups), "data file")
        what = f"bergline: rewrite {files} of {plan.data_location}"
        carry_out = functools.partial(rewrite_group, io, msgspec.structs.replace(plan, groups=()))
        written = self._run(what, io, carry_out, [part for _, part in parts], plan.data_location)
        numbers = [number for number, _ in parts]
        return gathered_changes(zip(numbers, written, strict=True), len(plan.groups))

    def _rewrite_alone(
        self, io: FileIO, plan: RewritePlan, numbers: Sequence[int], cores: int, done: dict[int, FileChanges]
    ) -> None:
        """A job for each group, side by side; after an error no further one is begun."""
        failed = threading.Event()

        def rewrite(number: int) -> None:
            if failed.is_set():
                return
            group = plan.groups[number]
            try:
                if _is_shuffled(group):
                    done[number] = self._rewrite_shuffled(io, plan, group, f"group {number + 1}/{len(plan.groups)}")
                else:
                    alone = msgspec.structs.replace(plan, groups=(group,))
                    (done[number],) = self._rewrite_plainly(io, alone, cores)
            except BaseException:
                failed.set()
                raise

        at_a_time = plan.groups_at_a_time or _GROUPS_AT_A_TIME
        with concurrent.futures.ThreadPoolExecutor(at_a_time, "bergline-rewrite") as pool:
            running = [pool.submit(rewrite, number) for number in numbers]
        for each in running:  # all have ended
            each.result()

    def _rewrite_shuffled(self, io: FileIO, plan: RewritePlan, group: RewriteGroup, which: str) -> FileChanges:
        files, started = counted(len(group.files), "data file"), time.monotonic()
        order = "zorder" if isinstance(group.order, ZOrder) else "sort" if group.order else "partition"
        what = f"bergline: rewrite {files} of {plan.data_location} ({order}, {which})"
        changes = rewrite_sorted_group(self._backend, io, plan, group, what)
        _log(what, changes, time.monotonic() - started)
        return changes

    def delete_positions(self, io: FileIO, plan: PositionDeletePlan) -> FileChanges:
        """Spark finds the rows, whoever reads them."""
        if not plan.files:
            return FileChanges()
        started = time.monotonic()
        what = f"bergline: delete rows of {counted(len(plan.files), 'data file')} of {plan.data_location}"
        if is_little(plan.files):
            changes = ArrowRowEngine().delete_positions(io, plan)
        else:
            found = self._matching(io, plan.read, plan.files, what)
            deleted = tuple(
                DeletedPositions(planned, found[planned.file.file_path])
                for planned in plan.files
                if planned.file.file_path in found
            )
            changes = self.write_deletes(io, KnownDeletePlan(deleted, plan.write)) if deleted else FileChanges()
        _log(what, changes, time.monotonic() - started)
        return changes

    def _matching(
        self, io: FileIO, read: ScanPlan, files: Sequence[PlannedFile], what: str
    ) -> Mapping[str, PositionSet]:
        """The positions of the rows of some data files that match a plan's filter, by file."""
        self._prepare(files[0].file.file_path)
        places = msgspec.structs.replace(read, schema=_PLACES, files=files)
        rows = self._backend.select_texts(
            read_plan(places, self._backend.spark, io), [str(DELETES), *(field.name for field in _PLACES.fields)]
        )
        with self._backend.described_jobs(what), missing_files_named(places):
            return find_positions(rows, most_bitmaps(len(files), records_of(files))).of(DELETES)

    def join_deletes(self, io: FileIO, joins: Sequence[DeleteJoin]) -> list[FileChanges]:
        """Each group is written by one task."""
        if not joins:
            return []
        location = joins[0].write.write.data_location
        self._prepare(location)
        files = {d.file_path for join in joins for planned in join.files for d in planned.deletes}
        what = f"bergline: rewrite {counted(len(files), 'position delete file')} of {location}"
        return self._run(what, io, functools.partial(join_deletes, io), joins, location)

    def write_deletes(self, io: FileIO, plan: KnownDeletePlan) -> FileChanges:
        """Each task writes the delete files of its data files; what is quickly done needs no task."""
        known = sum(len(plan.write.taken_over(d.planned)) for d in plan.deleted)
        rows = sum(len(d.positions) for d in plan.deleted)
        is_little = plan.write.kind == "vector" or (len(plan.deleted) <= _FEW_NEW_FILES and rows <= _FEW_POSITIONS)
        if known <= _FEW_DELETE_FILES and is_little:
            return ArrowRowEngine().write_deletes(io, plan)
        cores = self._prepare(plan.data_location)
        parts = split_deleted(plan.deleted, cores)
        what = f"bergline: delete rows of {counted(len(plan.deleted), 'data file')} of {plan.data_location}"
        carry_out = functools.partial(write_deletes, io, plan.write)
        return joined_changes(self._run(what, io, carry_out, parts, plan.data_location))

    def compute(
        self, io: FileIO, what: str, work: Callable[[FileIO, Part], Computed], parts: Sequence[Part], location: str
    ) -> list[Computed]:
        """Parts are dealt out to tasks; the driver gets only the results."""
        if not parts:
            return []
        self._prepare(location)
        blobs = [pickle.dumps(part) for part in enumerate(parts)]
        tasks = task_frame(self._backend, blobs, location)
        frame = map_in_arrow(tasks, ComputeTask(io, work).run, "result binary")
        with self._backend.described_jobs(f"bergline: {what}"):
            rows = frame.collect()
        results = [pickle.loads(row.result) for row in rows]  # noqa: S301  (our own tasks wrote it)
        for _, _, error in results:
            if error is not None:
                raise error
        return [result for _, result, _ in sorted(results, key=operator.itemgetter(0))]

    def _prepare(self, location: str) -> int:
        if scheme_of(location) == "memory":
            raise UnsupportedError(f"expected files that Spark can reach, found them in memory at {location}")
        return prepare_executors(self._backend, location)

    def _run(
        self, what: str, io: FileIO, carry_out: CarryOut, parts: Sequence[object], location: str
    ) -> list[FileChanges]:
        """What was written for each part, by successful tasks only.

        If it fails, its files are removed as far as they can be found.
        """
        job, started = str(uuid.uuid4()), time.monotonic()
        blobs = [pickle.dumps(part) for part in enumerate(parts)]
        with removed_on_failure(io, location, job):
            tasks = task_frame(self._backend, blobs, location)
            frame = map_in_arrow(tasks, RowTask(io, carry_out, job).run, "result binary")
            with self._backend.described_jobs(what):
                rows = frame.collect()
            results = [cast("RowTaskResult", pickle.loads(row.result)) for row in rows]  # noqa: S301  (our own tasks wrote it)
            changes = joined_changes(result.changes for result in results)
            error = next((result.error for result in results if result.error), None)
            if error is not None:
                io.delete(changes.paths)
            attempts = [result.attempt for result in results]
            remove_other_attempts(self._backend, io, location, job, attempts, keep=() if error else changes.paths)
        if error is not None:
            raise error
        _log(what, changes, time.monotonic() - started)
        return [result.changes for result in sorted(results, key=lambda result: result.number)]


def _is_shuffled(group: RewriteGroup) -> bool:
    """Whether rows are sorted, or all of them go to other partitions, where few tasks should write to each."""
    return group.order is not None or (group.partition is None and not group.without)


def _log(what: str, changes: FileChanges, seconds: float) -> None:
    rows, files = counted(changes.deleted_rows, "row"), counted(len(changes.paths), "file")
    _LOG.info("%s: %s deleted, %s written, %.1f s", what, rows, files, seconds)
