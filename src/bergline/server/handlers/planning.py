"""Scans planned by the server: a first part of the files at once, the others as plan tasks that clients fetch.

Every answer is bounded: in files, in bytes, and in the files that are looked at for it.
"""

from collections.abc import Iterator
from uuid import uuid4

import msgspec

from bergline.catalog.rest.protocol.bodies import (
    FetchScanTasksResult,
    FetchTasksRequest,
    PlanRequest,
    PlanTableScanResult,
)
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.scan.plan import PlannedFile
from bergline.scan.plan_parts import PlanParts
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import Response, answer_json
from bergline.server.planning.fields import FieldNames
from bergline.server.planning.files import PlannedFileJson, ScanTasks
from bergline.server.planning.filters import choosing
from bergline.server.planning.residuals import NOTHING, WHOLE, Residuals
from bergline.server.planning.tasks import PlanTask, no_task, parse_task, render_task
from bergline.table.scans.append_scan import append_snapshots
from bergline.table.scans.version import resolve_version

_MOST_ASKED_BYTES = 4 * 1024 * 1024
_MOST_BYTES = 8 * 1024 * 1024
_MOST_LOOKED_AT = 50_000
_MADE_AT_ONCE = 500
_MOST_TASKS, _MOST_TASK_BYTES = 500, 4 * 1024 * 1024


def plan_table_scan(context: ServerContext, call: Request) -> Response:
    """The files of a snapshot, or of the appends between two, that may hold matching rows."""
    if len(call.body) > _MOST_ASKED_BYTES:
        raise InvalidInputError(
            f"expected at most {_MOST_ASKED_BYTES:,} bytes for a scan to plan, found {len(call.body):,}",
            hints=["such a filter is for the client to plan by: scan-planning-mode=client"],
        )
    asked: PlanRequest = call.read()
    metadata = context.catalog.load_table(call.table).metadata
    planning = _Planning(context, metadata, _task(metadata, asked))
    tasks, left = planning.fill(planning.whole, asked.min_rows_requested or 0)
    later = tuple(map(render_task, planning.split(left))) if left else None
    return answer_json(
        PlanTableScanResult(
            status="completed",
            plan_id=str(uuid4()),
            file_scan_tasks=tasks.files,
            delete_files=tasks.deletes,
            plan_tasks=later,
        )
    )


def fetch_scan_tasks(context: ServerContext, call: Request) -> Response:
    """The files of a plan task."""
    asked: FetchTasksRequest = call.read()
    metadata = context.catalog.load_table(call.table).metadata
    task = parse_task(asked.plan_task)
    if task.table != (metadata.table_uuid or ""):
        raise no_task(asked.plan_task)
    try:
        planning = _Planning(context, metadata, task)
    except NotFoundError as error:  # the snapshot has expired since
        raise no_task(asked.plan_task) from error
    whole = planning.whole
    if task.manifests != whole.manifests or not 0 <= task.first <= task.first + task.part <= task.stop <= whole.stop:
        raise no_task(asked.plan_task)
    tasks, left = planning.fill(task)
    later = None if left is None else (render_task(left),)
    return answer_json(FetchScanTasksResult(file_scan_tasks=tasks.files, delete_files=tasks.deletes, plan_tasks=later))


class _Planning:
    """The plan that a task is a part of; only the manifests of the task are read."""

    def __init__(self, context: ServerContext, metadata: TableMetadata, task: PlanTask) -> None:
        schema = metadata.schema_by_id(task.schema)
        names = FieldNames(schema, task.case_sensitive)
        wire = context.filters.read(task.filter, names, task.table)
        self._statistics = names.ids(task.statistics, "$.stats-fields")
        columns = names.ids(task.select or tuple(schema.names), "$.select")
        self._residuals = Residuals(wire, metadata, schema)
        self._wording = PlannedFileJson(metadata, columns=columns, statistics=self._statistics)
        self._most_files = context.settings.files_per_plan
        self._run_length = self._most_files if wire is True else max(self._most_files, _MOST_LOOKED_AT)
        self._parts = PlanParts(
            context.catalog.io,
            metadata,
            snapshot_id=task.snapshot,
            appends=None if task.after is None else append_snapshots(metadata, task.after, task.snapshot),
            schema=schema,
            row_filter=choosing(wire, names),
        )
        self.whole = _replaced(task, manifests=len(self._parts), first=0, stop=len(self._parts), part=0, skip=0)

    def fill(self, task: PlanTask, rows: int = 0) -> tuple[ScanTasks, PlanTask | None]:
        """The files of a task that fit one answer, and the task of the others.

        With `rows` none are left once the files hold so many matching rows for sure.
        """
        tasks, looked_at, sure = ScanTasks(self._wording), 0, 0
        first, part, skip = task.first, task.part, task.skip
        while first < task.stop:
            stop = first + part if part else self._end_of_run(first, task.stop, self._most_files)
            for number, planned in self._planned(first, stop, skip):
                if len(tasks.files) >= self._most_files or tasks.size >= _MOST_BYTES:
                    return tasks, _replaced(task, first=first, part=stop - first, skip=number)
                left = self._residuals.of(planned.file)
                if left is NOTHING:
                    continue
                tasks.add(planned, left)
                if left is WHOLE and not planned.deletes:
                    sure += planned.file.record_count
                    if 0 < rows <= sure:
                        return tasks, None
            looked_at += sum(self._parts.files_at(place) or 0 for place in range(first, stop))
            first, part, skip = stop, 0, 0
            if looked_at >= _MOST_LOOKED_AT:
                break
        return tasks, _replaced(task, first=first, part=0, skip=0) if first < task.stop else None

    def split(self, task: PlanTask) -> list[PlanTask]:
        """Tasks that clients fetch side by side; not so many that naming them takes long."""
        most = max(1, min(_MOST_TASKS, _MOST_TASK_BYTES // len(render_task(task))))
        tasks = list(self._runs(task))
        together = -(-len(tasks) // most)
        return [
            _replaced(tasks[place], stop=tasks[min(place + together, len(tasks)) - 1].stop)
            for place in range(0, len(tasks), together)
        ]

    def _runs(self, task: PlanTask) -> Iterator[PlanTask]:
        """The task in runs of manifests that have about as many files as one answer."""
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
        """Where manifests from a place on have so many files; a manifest of which nobody knows counts as one run."""
        found = 0
        for place in range(first, stop):
            number = self._parts.files_at(place)
            if place > first and (number is None or found + number > most_files):
                return place
            found += most_files if number is None else number
        return stop

    def _planned(self, start: int, stop: int, skip: int) -> Iterator[tuple[int, PlannedFile]]:
        """The files of a run of manifests from a number on, with their numbers."""
        files = self._parts.plan(start, stop)
        if not self._statistics and not self._residuals.needs_bounds:
            files = files.without_metrics
        for begin in range(skip, len(files), _MADE_AT_ONCE):
            yield from enumerate(files.part(begin, _MADE_AT_ONCE), begin)


def _replaced(task: PlanTask, **fields: int) -> PlanTask:
    return msgspec.structs.replace(task, **fields)


def _task(metadata: TableMetadata, asked: PlanRequest) -> PlanTask:
    """What is asked for, once and for all: whatever becomes of the table, the parts are those of one plan."""
    if asked.min_rows_requested is not None and asked.min_rows_requested < 0:
        raise InvalidInputError(f"expected a number of rows, found {asked.min_rows_requested} at $.min-rows-requested")
    snapshot_id, after = _snapshots(metadata, asked)
    schema = _schema(metadata, snapshot_id) if asked.use_snapshot_schema else metadata.schema
    return PlanTask(
        table=metadata.table_uuid or "",
        schema=schema.schema_id or 0,
        snapshot=snapshot_id,
        after=after,
        filter=asked.filter,
        case_sensitive=asked.case_sensitive is not False,
        select=asked.select or (),
        statistics=asked.stats_fields or (),
    )


def _snapshots(metadata: TableMetadata, asked: PlanRequest) -> tuple[int | None, int | None]:
    """The snapshot that is read, and the one after which it is read."""
    start, end = asked.start_snapshot_id, asked.end_snapshot_id
    if start is None and end is None:
        return resolve_version(metadata, snapshot_id=asked.snapshot_id).snapshot_id, None
    if start is None or end is None or asked.snapshot_id is not None:
        raise InvalidInputError(
            "expected snapshot-id alone, or start-snapshot-id with end-snapshot-id, found parts of both"
        )
    return metadata.snapshot(end).snapshot_id, start


def _schema(metadata: TableMetadata, snapshot_id: int | None) -> Schema:
    return metadata.schema if snapshot_id is None else resolve_version(metadata, snapshot_id=snapshot_id).schema
