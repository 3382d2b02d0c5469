"""Checks and approvals of snapshots, as their reporters and approvers send them."""

import msgspec

from bergline.catalog.rest.protocol.governance_rules import (
    ApproveSnapshotRequest,
    ListSnapshotApprovalsResponse,
    ListSnapshotChecksResponse,
    ReportSnapshotCheckRequest,
    SnapshotApprovalBody,
    SnapshotCheckBody,
)
from bergline.catalog.sql.governance.snapshot_reviews import SqlSnapshotReviews
from bergline.errors import InvalidInputError
from bergline.server.handlers.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response

_LONGEST_ID = 19


def list_snapshot_checks(context: ServerContext, request: Request) -> Response:
    """The checks of a snapshot."""
    found = SqlSnapshotReviews(context.catalog).checks(request.table, _snapshot_id(request))
    bodies = tuple(SnapshotCheckBody(**msgspec.structs.asdict(check)) for check in found)
    return json_response(ListSnapshotChecksResponse(bodies))


def report_snapshot_check(context: ServerContext, request: Request) -> Response:
    """Record what a check says about a snapshot."""
    body: ReportSnapshotCheckRequest = request.read()
    reviews = SqlSnapshotReviews(context.catalog)
    reviews.report_check(request.table, _snapshot_id(request), body.name, body.state, body.detail)
    return NO_CONTENT


def list_snapshot_approvals(context: ServerContext, request: Request) -> Response:
    """Who approves a snapshot."""
    found = SqlSnapshotReviews(context.catalog).approvals(request.table, _snapshot_id(request))
    bodies = tuple(SnapshotApprovalBody(**msgspec.structs.asdict(approval)) for approval in found)
    return json_response(ListSnapshotApprovalsResponse(bodies))


def approve_snapshot(context: ServerContext, request: Request) -> Response:
    """Approve a snapshot in the name of who asks."""
    body: ApproveSnapshotRequest = request.read()
    SqlSnapshotReviews(context.catalog).approve(request.table, _snapshot_id(request), body.detail)
    return NO_CONTENT


def withdraw_approval(context: ServerContext, request: Request) -> Response:
    """Withdraw the approval of who asks."""
    SqlSnapshotReviews(context.catalog).withdraw(request.table, _snapshot_id(request))
    return NO_CONTENT


def _snapshot_id(request: Request) -> int:
    text = request.names["snapshot"]
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID) or int(text) >= 1 << 63:
        raise InvalidInputError(f"expected the id of a snapshot, found `{text[:40]}`")
    return int(text)
