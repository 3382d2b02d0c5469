"""Checks and approvals of snapshots, as their reporters and approvers send them."""

from bergline.errors import InvalidInputError
from bergline.governance.reviews.protocol import (
    ApproveSnapshotRequest,
    ListSnapshotApprovalsResponse,
    ListSnapshotChecksResponse,
    ReportSnapshotCheckRequest,
)
from bergline.governance.reviews.store import SqlSnapshotReviews
from bergline.server.context.context import ServerContext
from bergline.server.http.request import Request
from bergline.server.http.response import NO_CONTENT, Response, json_response

_LONGEST_ID = 19


def list_snapshot_checks(context: ServerContext, request: Request) -> Response:
    """The checks of a snapshot."""
    found = SqlSnapshotReviews(context.catalog, context.store).checks(request.table, _snapshot_id(request))
    return json_response(ListSnapshotChecksResponse(found))


def report_snapshot_check(context: ServerContext, request: Request) -> Response:
    """Record what a check says about a snapshot."""
    body: ReportSnapshotCheckRequest = request.read()
    reviews = SqlSnapshotReviews(context.catalog, context.store)
    reviews.report_check(request.table, _snapshot_id(request), body.name, body.state, body.detail)
    return NO_CONTENT


def list_snapshot_approvals(context: ServerContext, request: Request) -> Response:
    """Who approves a snapshot."""
    found = SqlSnapshotReviews(context.catalog, context.store).approvals(request.table, _snapshot_id(request))
    return json_response(ListSnapshotApprovalsResponse(found))


def approve_snapshot(context: ServerContext, request: Request) -> Response:
    """Approve a snapshot in the name of who asks."""
    body: ApproveSnapshotRequest = request.read()
    SqlSnapshotReviews(context.catalog, context.store).approve(request.table, _snapshot_id(request), body.detail)
    return NO_CONTENT


def withdraw_approval(context: ServerContext, request: Request) -> Response:
    """Withdraw the approval of who asks."""
    SqlSnapshotReviews(context.catalog, context.store).withdraw(request.table, _snapshot_id(request))
    return NO_CONTENT


def _snapshot_id(request: Request) -> int:
    text = request.names["snapshot"]
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID) or int(text) >= 1 << 63:
        raise InvalidInputError(f"expected the id of a snapshot, found `{text[:40]}`")
    return int(text)
