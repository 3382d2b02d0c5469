"""Scan planning on the server: the first files are in the response, the others in plan tasks that clients fetch.

Scans of small tables are planned in the thread of the request, others in worker processes, which no thread waits for. A
client that can ask again for a plan that takes long is told to.
"""

import re
from uuid import UUID, uuid4

from bergline.catalog.rest.protocol.bodies import ErrorModel, FetchTasksRequest, PlanRequest, PlanTableScanResult
from bergline.catalog.rest.protocol.errors import row_of
from bergline.catalog.rest.protocol.names import decode_name
from bergline.errors import BerglineError, InvalidInputError, NotFoundError, UnavailableError
from bergline.format.encoding.wire import encode_json
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.scan.manifest_runs import files_in
from bergline.scan.manifests import load_manifest_lists
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, PendingResponse, Response, json_response
from bergline.server.planning.pages import PlanJob, check_columns, plan_job, respond
from bergline.server.planning.plan_ids import LONGEST_PLAN_ID, new_plan_id, read_plan_id, unknown_plan
from bergline.server.planning.tasks import PlanTask, parse_task, unknown_task
from bergline.server.planning.worker_messages import PlanStopped
from bergline.server.planning.worker_pool import RunningPlan
from bergline.table.scans.version import resolve_version

_MAX_REQUEST_BYTES = 4 * 1024 * 1024
_MAX_REQUEST_IN_ID = 16 * LONGEST_PLAN_ID
_FILES_IN_A_THREAD = 2000
_REQUEST_IN_A_THREAD = 64 * 1024
"""Bytes: conditions by the thousand take seconds, even for one file."""
_JAVA = re.compile(r"Apache Iceberg (\d{1,4})\.(\d{1,4})")
_FIRST_THAT_POLLS = (1, 11)
_ASYNC = "respond-async"
_LEAST_WAIT_S = 0.5  # for who asks again: Java would sleep for a second


def plan_table_scan(context: ServerContext, request: Request) -> Response:
    """The files of a snapshot, or of the appends between two, that may hold matching rows."""
    if len(request.body) > _MAX_REQUEST_BYTES:
        raise InvalidInputError(
            f"expected at most {_MAX_REQUEST_BYTES:,} bytes for a scan to plan, found {len(request.body):,}",
            hints=["such a filter is for the client to plan by: scan-planning-mode=client"],
        )
    body: PlanRequest = request.read()
    metadata = request.seen(context.catalog.load_table(request.table).metadata)
    task, rows = _task(metadata, body), body.min_rows_requested or 0
    plan_id, can_wait = _plan_id(context, request, task, rows)
    job = plan_job(metadata, task, context.settings.files_per_plan, plan_id, rows)
    _check_manifests(context, request, metadata, job)
    is_always_submitted = can_wait and not context.settings.planning_wait_s
    if not context.plan_workers.is_there or (_is_small(context, job) and not is_always_submitted):
        return _planned_here(context, job)
    if not can_wait:
        return _pending(context, context.plan_workers.start(request.principal, job))
    check_columns(job)
    plan = context.plan_workers.start(request.principal, job)

    def submitted() -> Response:
        context.submitted_plans.keep(plan_id, plan)
        return json_response(PlanTableScanResult("submitted", plan_id))

    wait_s = context.settings.planning_wait_s
    return PendingResponse(running=plan.response, done=lambda: _finished(plan), late=submitted, wait_s=wait_s)


def fetch_planning_result(context: ServerContext, request: Request) -> Response:
    """What has become of a plan; one that this server does not know is planned again."""
    plan_id = decode_name(request.names["plan_id"])
    metadata = request.seen(context.catalog.load_table(request.table).metadata)
    recipe = read_plan_id(plan_id)
    if recipe.task.table != (metadata.table_uuid or ""):
        raise unknown_plan(plan_id)
    plans = context.submitted_plans
    if plans.was_cancelled(request.principal, plan_id):
        return json_response(PlanTableScanResult("cancelled"))
    plan = plans.find(request.principal, plan_id)
    if plan is None:
        job = _known_job(context, metadata, recipe.task, plan_id, recipe.rows)
        _check_manifests(context, request, metadata, job)
        if not context.plan_workers.is_there:
            return _planned_here(context, job)
        started = context.plan_workers.start(request.principal, job)
        plan = plans.keep(plan_id, started)
        if plan is not started:  # the client asked twice at once
            context.plan_workers.cancel(started)
    return PendingResponse(
        running=plan.response,
        done=lambda: _result(plan),
        late=lambda: json_response(PlanTableScanResult("submitted", plan_id)),
        wait_s=max(context.settings.planning_wait_s, _LEAST_WAIT_S),
    )


def cancel_planning(context: ServerContext, request: Request) -> Response:
    """Give up a plan of the caller's; one that is over, or another server's, needs nothing."""
    context.catalog.pointer(request.table)
    plan_id = decode_name(request.names["plan_id"])
    if not _is_uuid(plan_id):  # that of a plan that was complete at once
        read_plan_id(plan_id)
        plan = context.submitted_plans.cancel(request.principal, plan_id)
        if plan is not None:
            context.plan_workers.cancel(plan)
    return NO_CONTENT


def fetch_scan_tasks(context: ServerContext, request: Request) -> Response:
    """The files of a plan task."""
    body: FetchTasksRequest = request.read()
    metadata = request.seen(context.catalog.load_table(request.table).metadata)
    task = parse_task(body.plan_task)
    if task.table != (metadata.table_uuid or ""):
        raise unknown_task(body.plan_task)
    try:
        job = plan_job(metadata, task, context.settings.files_per_plan)
    except (NotFoundError, InvalidInputError) as error:  # the snapshot has expired since
        raise unknown_task(body.plan_task) from error
    _check_manifests(context, request, metadata, job)
    if not context.plan_workers.is_there or _is_small(context, job):
        return _planned_here(context, job)
    return _pending(context, context.plan_workers.start(request.principal, job))


def _check_manifests(context: ServerContext, request: Request, metadata: TableMetadata, job: PlanJob) -> None:
    """RefusedError where a snapshot names the manifests of another table, whose bounds the plan would show."""
    who = request.principal, request.groups
    context.named_files.check_planned(who, request.table, metadata, job.metadata.snapshots)


def _plan_id(context: ServerContext, request: Request, task: PlanTask, rows: int) -> tuple[str, bool]:
    """An id for a new plan, and whether the client can ask for the plan by it."""
    if context.plan_workers.is_there and _takes_submitted(request) and len(request.body) < _MAX_REQUEST_IN_ID:
        plan_id = new_plan_id(task, rows)
        if plan_id is not None:
            return plan_id, True
    return str(uuid4()), False


def _takes_submitted(request: Request) -> bool:
    """Whether the client asks again for a plan under way: Java does since 1.11, PyIceberg 0.12 fails."""
    if _ASYNC in request.headers.get("prefer", ""):
        return True
    found = _JAVA.match(request.headers.get("x-client-version", ""))
    return found is not None and (int(found[1]), int(found[2])) >= _FIRST_THAT_POLLS


def _is_small(context: ServerContext, job: PlanJob) -> bool:
    """Whether commits would not notice that it is planned in the same interpreter; summaries may be wrong."""
    few = job.files is not None and job.files <= _FILES_IN_A_THREAD
    if not few or len(encode_json(job.task)) > _REQUEST_IN_A_THREAD:
        return False
    try:
        lists = load_manifest_lists(context.catalog.io, job.metadata.snapshots)
    except BerglineError:  # whoever plans it says so
        return True
    return sum(files_in(manifest) for listed in lists for manifest in listed) <= _FILES_IN_A_THREAD


def _planned_here(context: ServerContext, job: PlanJob) -> Response:
    return Response(200, respond(context.catalog.io, job, context.filters))


def _known_job(context: ServerContext, metadata: TableMetadata, task: PlanTask, plan_id: str, rows: int) -> PlanJob:
    """The job of a plan that was submitted before; NotFoundError if its snapshot or schema is gone."""
    try:
        job = plan_job(metadata, task, context.settings.files_per_plan, plan_id, rows)
        check_columns(job)
    except (NotFoundError, InvalidInputError) as error:
        raise unknown_plan(plan_id) from error
    return job


def _pending(context: ServerContext, plan: RunningPlan) -> Response:
    """The response of a plan that the client waits for to the end."""

    def late() -> Response:
        context.plan_workers.cancel(plan)
        raise TimeoutError

    return PendingResponse(running=plan.response, done=lambda: _finished(plan), late=late)


def _finished(plan: RunningPlan) -> Response:
    try:
        return Response(200, plan.response.result())
    except PlanStopped:
        raise UnavailableError("the plan was given up: nothing was changed, try again") from None


def _result(plan: RunningPlan) -> Response:
    """How a submitted plan has ended."""
    try:
        return Response(200, plan.response.result())
    except PlanStopped:
        return json_response(PlanTableScanResult("cancelled"))
    except BerglineError as error:
        row = row_of(error)
        why = "; ".join((str(error), *error.hints))
        return json_response(PlanTableScanResult("failed", error=ErrorModel(why, row.type, row.status)))


def _is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text
    except ValueError:
        return False


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
