"""The responses of one plan, from plain values alone: in a thread of the server, or in a worker process.

Every response is bounded: in files, in bytes, and in the files that are examined for it.
"""

from collections.abc import Callable, Iterator

import msgspec

from bergline.catalog.rest.protocol.bodies import FetchScanTasksResult, PlanTableScanResult
from bergline.errors import NotFoundError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile
from bergline.scan.plan_parts import PlanParts
from bergline.server.planning.fields import FieldNames
from bergline.server.planning.files import PlannedFileJson, ScanTasks
from bergline.server.planning.filters import FilterCache, file_filter
from bergline.server.planning.residuals import NOTHING, WHOLE, Residuals
from bergline.server.planning.tasks import PlanTask, render_task, unknown_task
from bergline.table.scans.append_scan import append_snapshots

_MAX_BYTES = 8 * 1024 * 1024
_MAX_EXAMINED = 50_000
_BATCH_SIZE = 500
_MAX_TASKS, _MAX_TASK_BYTES = 500, 4 * 1024 * 1024
_TOTALS = ("total-data-files", "total-delete-files")


class PlanJob(msgspec.Struct, frozen=True):
    """What one response is worked out from."""

    metadata: TableMetadata
    """With the snapshots of the plan alone."""
    task: PlanTask
    appends: tuple[int, ...] | None
    """The snapshots of a plan of appends."""
    most_files: int
    plan_id: str | None = None
    """Of a plan that begins; None for a task of one."""
    rows: int = 0
    """How many matching rows are enough; 0 for all."""

    @property
    def files(self) -> int | None:
        """How many files the plan may have to look at, by the summaries of its snapshots; None if they do not say."""
        counts = [s.summary.get(key, "") for s in self.metadata.snapshots for key in _TOTALS]
        return sum(map(int, counts)) if all(c.isascii() and c.isdecimal() for c in counts) else None


def plan_job(
    metadata: TableMetadata, task: PlanTask, most_files: int, plan_id: str | None = None, rows: int = 0
) -> PlanJob:
    """A job with as much of the table as it needs; NotFoundError if the snapshot is not there."""
    appends = None if task.after is None else tuple(append_snapshots(metadata, task.after, task.snapshot))
    named = appends if appends is not None else () if task.snapshot is None else (task.snapshot,)
    used = msgspec.structs.replace(
        metadata,
        properties={},
        current_snapshot_id=None,
        refs={},
        snapshots=tuple(metadata.snapshot(snapshot_id) for snapshot_id in named),
        statistics=(),
        partition_statistics=(),
        snapshot_log=(),
        metadata_log=(),
        encryption_keys=(),
    )
    return PlanJob(used, task, appends, most_files, plan_id, rows)


def check_columns(job: PlanJob) -> None:
    """InvalidInputError, with its place, for a filter or a column that the table does not have."""
    _Columns(job, FilterCache())


def respond(io: FileIO, job: PlanJob, filters: FilterCache, check: Callable[[], None] = lambda: None) -> bytes:
    """The body of the response; `check` is called between manifests, and may raise."""
    task = job.task
    if job.plan_id is None:
        try:
            pages = _PlanPages(io, job, filters, check)
        except NotFoundError as error:  # the schema or the manifest list is gone
            raise unknown_task(render_task(task)) from error
        whole = pages.whole
        places = 0 <= task.first <= task.first + task.part <= task.stop <= whole.stop and task.skip >= 0
        if task.manifests != whole.manifests or not places:
            raise unknown_task(render_task(task))
        tasks, left = pages.fill(task)
        next_task = None if left is None else (render_task(left),)
        return encode_json(FetchScanTasksResult(tasks.files, tasks.deletes, next_task))
    pages = _PlanPages(io, job, filters, check)
    tasks, left = pages.fill(pages.whole, job.rows)
    later = tuple(map(render_task, pages.split(left))) if left else None
    return encode_json(PlanTableScanResult("completed", job.plan_id, tasks.files, tasks.deletes, later))


class _Columns:
    """The columns and the filter of a job."""

    def __init__(self, job: PlanJob, filters: FilterCache) -> None:
        task = job.task
        self.schema = job.metadata.schema_by_id(task.schema)
        names = FieldNames(self.schema, task.case_sensitive)
        self.filter = filters.read(task.filter, names)
        self.statistics = names.ids(task.statistics, "$.stats-fields")
        self.selected = names.ids(task.select or tuple(self.schema.names), "$.select")
        self.file_filter = file_filter(self.filter, names)


class _PlanPages:
    """The plan that a task is a part of; only the manifests of the task are read."""

    def __init__(self, io: FileIO, job: PlanJob, filters: FilterCache, check: Callable[[], None]) -> None:
        self._check = check
        columns, metadata = _Columns(job, filters), job.metadata
        self._statistics = columns.statistics
        self._residuals = Residuals(columns.filter, metadata, columns.schema)
        self._json = PlannedFileJson(metadata, columns=columns.selected, statistics=columns.statistics)
        self._max_files = job.most_files
        self._run_length = self._max_files if columns.filter is True else max(self._max_files, _MAX_EXAMINED)
        self._parts = PlanParts(
            io,
            metadata,
            snapshot_id=job.task.snapshot,
            appends=job.appends,
            schema=columns.schema,
            row_filter=columns.file_filter,
        )
        number = len(self._parts)
        self.whole = _replaced(job.task, manifests=number, first=0, stop=number, part=0, skip=0)

    def fill(self, task: PlanTask, rows: int = 0) -> tuple[ScanTasks, PlanTask | None]:
        """The files of a task that fit one response, and the task for the rest.

        With `rows` there is no rest once the files certainly hold so many matching rows.
        """
        tasks, examined, sure = ScanTasks(self._json), 0, 0
        first, part, skip = task.first, task.part, task.skip
        while first < task.stop:
            self._check()
            stop = first + part if part else self._end_of_run(first, task.stop, self._max_files)
            for number, planned in self._planned(first, stop, skip):
                if self._is_full(tasks):
                    return tasks, _replaced(task, first=first, part=stop - first, skip=number)
                left = self._residuals.of(planned.file)
                if left is NOTHING:
                    continue
                tasks.add(planned, left)
                if left is WHOLE and not planned.deletes:
                    sure += planned.file.record_count
                    if 0 < rows <= sure:
                        return tasks, None
            examined += sum(self._parts.files_at(place) or 0 for place in range(first, stop))
            first, part, skip = stop, 0, 0
            if examined >= _MAX_EXAMINED or self._is_full(tasks):
                break
        return tasks, _replaced(task, first=first, part=0, skip=0) if first < task.stop else None

    def _is_full(self, tasks: ScanTasks) -> bool:
        return len(tasks.files) >= self._max_files or tasks.size >= _MAX_BYTES

    def split(self, task: PlanTask) -> list[PlanTask]:
        """Tasks that clients can fetch in parallel, in bounded number."""
        most = max(1, min(_MAX_TASKS, _MAX_TASK_BYTES // len(render_task(task))))
        tasks = list(self._runs(task))
        together = -(-len(tasks) // most)
        return [
            _replaced(tasks[place], stop=tasks[min(place + together, len(tasks)) - 1].stop)
            for place in range(0, len(tasks), together)
        ]

    def _runs(self, task: PlanTask) -> Iterator[PlanTask]:
        """The task in runs of manifests that have about as many files as one response."""
        first = task.first
        if task.part:
            yield _replaced(task, stop=first + task.part)
            first += task.part
        while first < task.stop:
            stop = self._end_of_run(first, task.stop, self._run_length)
            if any(self._parts.files_at(place) != 0 for place in range(first, stop)):
                yield _replaced(task, first=first, stop=stop, part=0, skip=0)
            first = stop

    def _end_of_run(self, first: int, stop: int, most_files: int) -> int:
        """Where manifests from a place on have so many files; a manifest of unknown size is a run of its own."""
        found = 0
        for place in range(first, stop):
            number = self._parts.files_at(place)
            if place > first and (number is None or found + number > most_files):
                return place
            found += most_files if number is None else number
        return stop

    def _planned(self, start: int, stop: int, skip: int) -> Iterator[tuple[int, PlannedFile]]:
        """The files of a run of manifests from a number on, with their numbers."""
        files = self._parts.files(start, stop)
        if not self._statistics and not self._residuals.needs_bounds:
            files = files.without_metrics
        size = max(_BATCH_SIZE, self._max_files)
        for begin in range(skip, len(files), size):
            self._check()
            yield from enumerate(self._parts.with_deletes(files.window(begin, size)), begin)


def _replaced(task: PlanTask, **fields: int) -> PlanTask:
    return msgspec.structs.replace(task, **fields)
