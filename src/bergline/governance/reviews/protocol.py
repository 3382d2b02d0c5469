"""Checks and approvals over REST: the bodies of requests and responses, and the endpoints."""

import msgspec

from bergline.catalog.rest.protocol.endpoints import OWN, Endpoint, endpoints_in
from bergline.governance.reviews.model import CheckState, SnapshotApproval, SnapshotCheck


class ListSnapshotChecksResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The checks of a snapshot, by name."""

    checks: tuple[SnapshotCheck, ...]


class ReportSnapshotCheckRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """What a check found."""

    name: str
    state: CheckState
    detail: str | None = None


class ListSnapshotApprovalsResponse(msgspec.Struct, frozen=True, rename="kebab"):
    """The approvals of a snapshot, by name."""

    approvals: tuple[SnapshotApproval, ...]


class ApproveSnapshotRequest(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """An approval, by whoever sends it."""

    detail: str | None = None


_SNAPSHOT = f"{OWN}/namespaces/{{namespace}}/tables/{{table}}/snapshots/{{snapshot}}"
_CHECKS, _APPROVALS = f"{_SNAPSHOT}/checks", f"{_SNAPSHOT}/approvals"
LIST_SNAPSHOT_CHECKS = Endpoint("list_snapshot_checks", "GET", _CHECKS, response=ListSnapshotChecksResponse)
REPORT_SNAPSHOT_CHECK = Endpoint(
    "report_snapshot_check", "POST", _CHECKS, ReportSnapshotCheckRequest, status=204, takes_key=True
)
LIST_SNAPSHOT_APPROVALS = Endpoint("list_snapshot_approvals", "GET", _APPROVALS, response=ListSnapshotApprovalsResponse)
APPROVE_SNAPSHOT = Endpoint("approve_snapshot", "POST", _APPROVALS, ApproveSnapshotRequest, status=204, takes_key=True)
WITHDRAW_APPROVAL = Endpoint("withdraw_approval", "DELETE", _APPROVALS, status=204, takes_key=True)

REVIEW_ENDPOINTS = endpoints_in(vars())
