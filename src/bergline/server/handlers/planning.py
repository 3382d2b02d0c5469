"""Scan planning on the server: the first files are in the response, the others in plan tasks that clients fetch.

Every response is bounded: in files, in bytes, and in the files that are examined for it.
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
from bergline.server.http.response import Response, json_response
from bergline.server.planning.fields import FieldNames
from bergline.server.planning.files import PlannedFileJson, ScanTasks
from bergline.server.planning.filters import file_filter
from bergline.server.planning.residuals import NOTHING, WHOLE, Residuals
from bergline.server.planning.tasks import PlanTask, parse_task, render_task, unknown_task
from bergline.table.scans.append_scan import append_snapshots
from bergline.table.scans.version import resolve_version

_MAX_REQUEST_BYTES = 4 * 1024 * 1024
_MAX_BYTES = 8 * 1024 * 1024
_MAX_EXAMINED = 50_000
_BATCH_SIZE = 500
_MAX_TASKS, _MAX_TASK_BYTES = 500, 4 * 1024 * 1024


def plan_table_scan(context: ServerContext, request: Request) -> Response:
    """The files of a snapshot, or of the appends between two, that may hold matching rows."""
    if len(request.body) > _MAX_REQUEST_BYTES:
        raise InvalidInputError(
            f"expected at most {_MAX_REQUEST_BYTES:,} bytes for a scan to plan, found {len(request.body):,}",
            hints=["such a filter is for the client to plan by: scan-planning-mode=client"],
        )
    body: PlanRequest = request.read()
    metadata = context.catalog.load_table(request.table).metadata
    planning = _Planning(context, metadata, _task(metadata, body))
    tasks, left = planning.fill(planning.whole, body.min_rows_requested or 0)
    later = tuple(map(render_task, planning.split(left))) if left else None
    return json_response(
        PlanTableScanResult(
            status="completed",
            plan_id=str(uuid4()),
            file_scan_tasks=tasks.files,
            delete_files=tasks.deletes,
            plan_tasks=later,
        )
    )


def fetch_scan_tasks(context: ServerContext, request: Request) -> Response:
    """The files of a plan task."""
    body: FetchTasksRequest = request.read()
    metadata = context.catalog.load_table(request.table).metadata
    task = parse_task(body.plan_task)
    if task.table != (metadata.table_uuid or ""):
        raise unknown_task(body.plan_task)
    try:
        planning = _Planning(context, metadata, task)
    except NotFoundError as error:  # the snapshot has expired since
        raise unknown_task(body.plan_task) from error
    whole = planning.whole
    if task.manifests != whole.manifests or not 0 <= task.first <= task.first + task.part <= task.stop <= whole.stop:
        raise unknown_task(body.plan_task)
    tasks, left = planning.fill(task)
    later = None if left is None else (render_task(left),)
    return json_response(
        FetchScanTasksResult(file_scan_tasks=tasks.files, delete_files=tasks.deletes, plan_tasks=later)
    )


class _Planning:
    """The plan that a task is a part of; only the manifests of the task are read."""

    def __init__(self, context: ServerContext, metadata: TableMetadata, task: PlanTask) -> None:
        schema = metadata.schema_by_id(task.schema)
        names = FieldNames(schema, task.case_sensitive)
        wire = context.filters.read(task.filter, names, task.table)
        self._statistics = names.ids(task.statistics, "$.stats-fields")
        columns = names.ids(task.select or tuple(schema.names), "$.select")
        self._residuals = Residuals(wire, metadata, schema)
        self._json = PlannedFileJson(metadata, columns=columns, statistics=self._statistics)
        self._max_files = context.settings.files_per_plan
        self._run_length = self._max_files if wire is True else max(self._max_files, _MAX_EXAMINED)
        self._parts = PlanParts(
            context.catalog.io,
            metadata,
            snapshot_id=task.snapshot,
            appends=None if task.after is None else append_snapshots(metadata, task.after, task.snapshot),
            schema=schema,
            row_filter=file_filter(wire, names),
        )
        self.whole = _replaced(task, manifests=len(self._parts), first=0, stop=len(self._parts), part=0, skip=0)

    def fill(self, task: PlanTask, rows: int = 0) -> tuple[ScanTasks, PlanTask | None]:
        """The files of a task that fit one response, and the task for the rest.

        With `rows` there is no rest once the files certainly hold so many matching rows.
        """
        tasks, examined, sure = ScanTasks(self._json), 0, 0
        first, part, skip = task.first, task.part, task.skip
        while first < task.stop:
            stop = first + part if part else self._end_of_run(first, task.stop, self._max_files)
            for number, planned in self._planned(first, stop, skip):
                if len(tasks.files) >= self._max_files or tasks.size >= _MAX_BYTES:
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
            if examined >= _MAX_EXAMINED:
                break
        return tasks, _replaced(task, first=first, part=0, skip=0) if first < task.stop else None

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
        files = self._parts.plan(start, stop)
        if not self._statistics and not self._residuals.needs_bounds:
            files = files.without_metrics
        for begin in range(skip, len(files), _BATCH_SIZE):
            yield from enumerate(files.part(begin, _BATCH_SIZE), begin)


def _replaced(task: PlanTask, **fields: int) -> PlanTask:
    return msgspec.structs.replace(task, **fields)


def _task(metadata: TableMetadata, body: PlanRequest) -> PlanTask:
    """The request as a task: it pins snapshot and schema, so all parts are of one plan whatever is committed."""
    if body.min_rows_requested is not None and body.min_rows_requested < 0:
        raise InvalidInputError(f"expected a number of rows, found {body.min_rows_requested} at $.min-rows-requested")
    snapshot_id, after = _snapshots(metadata, body)
    schema = _schema(metadata, snapshot_id) if body.use_snapshot_schema else metadata.schema
    return PlanTask(
        table=metadata.table_uuid or "",
        schema=schema.schema_id or 0,
        snapshot=snapshot_id,
        after=after,
        filter=body.filter,
        case_sensitive=body.case_sensitive is not False,
        select=body.select or (),
        statistics=body.stats_fields or (),
    )


def _snapshots(metadata: TableMetadata, body: PlanRequest) -> tuple[int | None, int | None]:
    """The snapshot to read, and the one that an incremental scan starts after."""
    start, end = body.start_snapshot_id, body.end_snapshot_id
    if start is None and end is None:
        return resolve_version(metadata, snapshot_id=body.snapshot_id).snapshot_id, None
    if start is None or end is None or body.snapshot_id is not None:
        raise InvalidInputError(
            "expected snapshot-id alone, or start-snapshot-id with end-snapshot-id, found parts of both"
        )
    return metadata.snapshot(end).snapshot_id, start


def _schema(metadata: TableMetadata, snapshot_id: int | None) -> Schema:
    return metadata.schema if snapshot_id is None else resolve_version(metadata, snapshot_id=snapshot_id).schema
