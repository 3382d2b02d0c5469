"""Scans planned by the server, at once: the answer holds every file."""

from uuid import uuid4

import msgspec

from bergline.catalog.rest.bodies import PlanAnswer, PlanRequest
from bergline.errors import InvalidInputError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.metadata import TableMetadata
from bergline.format.wire import encode_json
from bergline.server.answer import Answer, answer_json
from bergline.server.call import Call
from bergline.server.served import Served
from bergline.server.wire_files import scan_tasks
from bergline.server.wire_filters import read_filter
from bergline.table.append_scan import AppendScan
from bergline.table.scan import TableScan
from bergline.table.version import ReadVersion, resolve_version


def plan_table_scan(served: Served, call: Call) -> Answer:
    """The files of a snapshot, or of the appends between two, that may hold matching rows."""
    asked: PlanRequest = call.read()
    metadata = served.catalog.load_table(call.table).metadata
    scan = _scan(served, metadata, asked)
    row_filter = read_filter(asked.filter, scan.table_schema)
    plan = scan.plan() if row_filter == ALWAYS_TRUE else scan.where(row_filter).plan()
    tasks = scan_tasks(metadata, plan.files)
    return answer_json(
        PlanAnswer(
            status="completed",
            plan_id=str(uuid4()),
            file_scan_tasks=msgspec.Raw(encode_json(tasks["file-scan-tasks"])),
            delete_files=msgspec.Raw(encode_json(tasks.get("delete-files", []))),
        )
    )


def _scan(served: Served, metadata: TableMetadata, asked: PlanRequest) -> TableScan:
    columns = list(asked.select) if asked.select else None
    if asked.start_snapshot_id is not None or asked.end_snapshot_id is not None:
        if asked.start_snapshot_id is None or asked.snapshot_id is not None:
            raise InvalidInputError("expected a snapshot, or a start and an end, found parts of both")
        return AppendScan(served.catalog.io, metadata, asked.start_snapshot_id, asked.end_snapshot_id)
    version = resolve_version(metadata, snapshot_id=asked.snapshot_id)
    if not asked.use_snapshot_schema:
        version = ReadVersion(version.snapshot_id, metadata.schema)
    return TableScan(served.catalog.io, metadata, version, None, columns)
