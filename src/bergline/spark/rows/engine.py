"""The row engine of Spark's executors: the parts of a plan run in tasks, side by side.

The driver sees names and counts; no row passes through it, and no data file is opened by it.
"""

import functools
import logging
import operator
import pickle
import time
import uuid
from collections.abc import Callable, Sequence
from typing import cast

import msgspec
from pyspark.sql import SparkSession

from bergline.arguments import counted
from bergline.errors import UnsupportedError
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of
from bergline.spark.backends.choose import backend_of, session_backend
from bergline.spark.rows.parts import split_deleted, split_files, split_groups
from bergline.spark.rows.task import CarryOut, ComputeTask, RowTask, RowTaskResult
from bergline.spark.runtime.backend import check_running
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.runtime.tasks import task_frame
from bergline.spark.writes.data_files import remove_files, removed_on_failure
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import KnownDeletePlan, PositionDeletePlan, RewritePlan
from bergline.table.engine.position_deletes import delete_matching, write_deletes
from bergline.table.engine.rewrite_rows import rewrite_group
from bergline.table.engine.row_engine import Computed, FileChanges, Part, RowEngine, joined_changes

_LOG = logging.getLogger("bergline.spark")
_FEW_DELETE_FILES = 8
"""As many are read by the driver sooner than by a task."""


def row_engine(spark: SparkSession) -> RowEngine:
    """What `table.delete`, `overwrite` and `compact` take as `engine`, to rewrite files on a session's executors."""
    check_running(session_backend(spark))
    return SparkRowEngine(spark)


class SparkRowEngine:
    """Data files that are rewritten, or get delete files, are spread over tasks; each is in one."""

    def __init__(self, spark: SparkSession) -> None:
        self._backend = backend_of(spark)

    def rewrite(self, io: FileIO, plan: RewritePlan) -> FileChanges:
        """Each task writes files of its own."""
        if not plan.groups:
            return FileChanges()
        cores = self._prepare(plan.data_location)
        groups = split_groups(plan, cores)
        files = counted(sum(len(group.files) for group in groups), "data file")
        what = f"bergline: rewrite {files} of {plan.data_location}"
        carry_out = functools.partial(rewrite_group, io, msgspec.structs.replace(plan, groups=()))
        return self._run(what, io, carry_out, groups, plan.data_location)

    def delete_positions(self, io: FileIO, plan: PositionDeletePlan) -> FileChanges:
        """Each task writes the delete files of its data files, joined with those that they have."""
        if not plan.files:
            return FileChanges()
        cores = self._prepare(plan.data_location)
        parts = split_files(plan.files, cores)
        what = f"bergline: delete rows of {counted(len(plan.files), 'data file')} of {plan.data_location}"
        carry_out = functools.partial(delete_matching, io, msgspec.structs.replace(plan, files=()))
        return self._run(what, io, carry_out, parts, plan.data_location)

    def write_deletes(self, io: FileIO, plan: KnownDeletePlan) -> FileChanges:
        """Each task writes the delete files of its data files; what is quickly done needs no task."""
        known = sum(len(plan.write.taken_over(d.planned)) for d in plan.deleted)
        is_one_file = plan.write.kind == "vector" or len(plan.deleted) == 1
        if not plan.deleted or (is_one_file and known <= _FEW_DELETE_FILES):
            return ArrowRowEngine().write_deletes(io, plan)
        cores = self._prepare(plan.data_location)
        parts = split_deleted(plan.deleted, cores)
        what = f"bergline: delete rows of {counted(len(plan.deleted), 'data file')} of {plan.data_location}"
        carry_out = functools.partial(write_deletes, io, plan.write)
        return self._run(what, io, carry_out, parts, plan.data_location)

    def compute(
        self, io: FileIO, what: str, work: Callable[[FileIO, Part], Computed], parts: Sequence[Part], location: str
    ) -> list[Computed]:
        """Parts are dealt out to tasks; the driver gets only the results."""
        if not parts:
            return []
        self._prepare(location)
        blobs = [pickle.dumps(part) for part in enumerate(parts)]
        frame = task_frame(self._backend, blobs, location).mapInArrow(ComputeTask(io, work).run, "result binary")
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

    def _run(self, what: str, io: FileIO, carry_out: CarryOut, parts: Sequence[object], location: str) -> FileChanges:
        """Only files of successful tasks come back; if it fails, its files are removed as far as they can be found."""
        job, started = str(uuid.uuid4()), time.monotonic()
        blobs = [pickle.dumps(part) for part in enumerate(parts)]
        with removed_on_failure(io, location, job):
            frame = task_frame(self._backend, blobs, location).mapInArrow(
                RowTask(io, carry_out, job).run, "result binary"
            )
            with self._backend.described_jobs(what):
                rows = frame.collect()
        results = [cast("RowTaskResult", pickle.loads(row.result)) for row in rows]  # noqa: S301  (our own tasks wrote it)
        changes = joined_changes(result.changes for result in results)
        error = next((result.error for result in results if result.error), None)
        if error is not None:
            io.delete(changes.paths)
        if any(result.was_repeated for result in results):
            remove_files(io, location, job, keep=() if error else changes.paths)
        if error is not None:
            raise error
        _log(what, changes, time.monotonic() - started)
        return changes


def _log(what: str, changes: FileChanges, seconds: float) -> None:
    rows, files = counted(changes.deleted_rows, "row"), counted(len(changes.paths), "file")
    _LOG.info("%s: %s deleted, %s written, %.1f s", what, rows, files, seconds)
