"""Scans planned by the server: a first part of the files at once, the others as plan tasks that clients fetch."""

from collections.abc import Sequence
from uuid import uuid4

import msgspec

from bergline.catalog.rest.bodies import FetchTasksRequest, PlanAnswer, PlanRequest, TasksAnswer
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata import TableMetadata
from bergline.format.schema import Schema
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.planner import plan_appends, plan_scan
from bergline.server.answer import Answer, answer_json
from bergline.server.call import Call
from bergline.server.plan_tasks import PlanTask, no_task, parse_task, render_task
from bergline.server.served import Served
from bergline.server.wire_fields import FieldNames
from bergline.server.wire_files import FileWording
from bergline.server.wire_filters import choosing, read_filter
from bergline.server.wire_residuals import WHOLE, Residuals
from bergline.table.append_scan import append_snapshots
from bergline.table.version import resolve_version


def plan_table_scan(served: Served, call: Call) -> Answer:
    """The files of a snapshot, or of the appends between two, that may hold matching rows."""
    asked: PlanRequest = call.read()
    metadata = served.catalog.load_table(call.table).metadata
    most = served.settings.files_per_plan
    task = _task(metadata, asked, most)
    planned = _Planned(served, metadata, task)
    first = planned.part(0, most)
    enough = planned.enough(first, asked.min_rows_requested or 0)
    later = () if enough < len(first) else range(most, planned.count, most)
    files, deletes = planned.wording.scan_tasks(first[:enough])
    return answer_json(
        PlanAnswer(
            status="completed",
            plan_id=str(uuid4()),
            file_scan_tasks=files,
            delete_files=deletes,
            plan_tasks=tuple(render_task(msgspec.structs.replace(task, start=start)) for start in later) or None,
        )
    )


def fetch_scan_tasks(served: Served, call: Call) -> Answer:
    """The files of a plan task."""
    asked: FetchTasksRequest = call.read()
    metadata = served.catalog.load_table(call.table).metadata
    task = parse_task(asked.plan_task)
    if task.table != (metadata.table_uuid or "") or task.start < 0 or task.length < 1:
        raise no_task(asked.plan_task)
    try:
        planned = _Planned(served, metadata, task)
    except NotFoundError as error:  # the snapshot has expired since
        raise no_task(asked.plan_task) from error
    files, deletes = planned.wording.scan_tasks(
        planned.part(task.start, min(task.length, served.settings.files_per_plan))
    )
    return answer_json(TasksAnswer(file_scan_tasks=files, delete_files=deletes))


class _Planned:
    """The plan that a task is a part of."""

    def __init__(self, served: Served, metadata: TableMetadata, task: PlanTask) -> None:
        schema = metadata.schema_by_id(task.schema)
        names = FieldNames(schema, task.case_sensitive)
        wire = read_filter(task.filter, names)
        statistics = names.ids(task.statistics, "$.stats-fields")
        columns = names.ids(task.select or tuple(schema.names), "$.select")
        self.residuals = Residuals(wire, metadata, schema)
        self.wording = FileWording(metadata, self.residuals, columns=columns, statistics=statistics)
        io, chosen_by = served.catalog.io, choosing(wire, names)
        if task.after is None:
            plan = plan_scan(io, metadata, task.snapshot, table_schema=schema, columns=schema, row_filter=chosen_by)
        else:
            appends = append_snapshots(metadata, task.after, task.snapshot)
            plan = plan_appends(io, metadata, appends, table_schema=schema, columns=schema, row_filter=chosen_by)
        files = plan.files if isinstance(plan.files, PlannedFiles) else PlannedFiles(())
        self._files = files if statistics else files.without_metrics
        self.count = len(files)

    def part(self, start: int, length: int) -> Sequence[PlannedFile]:
        """Some of the files."""
        return tuple(self._files.part(start, length))

    def enough(self, files: Sequence[PlannedFile], rows: int) -> int:
        """How many of the files hold so many matching rows for sure; all of them where that is not sure."""
        found = 0
        for number, planned in enumerate(files, 1):
            if not planned.deletes and self.residuals.of(planned.file) is WHOLE:
                found += planned.file.record_count
                if 0 < rows <= found:
                    return number
        return len(files)


def _task(metadata: TableMetadata, asked: PlanRequest, length: int) -> PlanTask:
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
        length=length,
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
