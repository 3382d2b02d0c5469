"""Checks and approvals of snapshots behind a bergline server."""

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.governance.reviews import protocol
from bergline.governance.reviews.model import CheckState, SnapshotApproval, SnapshotCheck
from bergline.governance.rules.client import check_keeps_rules, send_once


class RestSnapshotReviews:
    """Checks and approvals of snapshots on a server, which knows who sends them."""

    def __init__(self, session: RestSession) -> None:
        check_keeps_rules(session)
        self._session = session

    def checks(self, table: TableName, snapshot_id: int) -> tuple[SnapshotCheck, ...]:
        about, names = _about_snapshot(table, snapshot_id), self._names(table, snapshot_id)
        response = self._session.calls.call(protocol.LIST_SNAPSHOT_CHECKS, about, names=names)
        return self._session.calls.parsed(response, protocol.ListSnapshotChecksResponse, about).checks

    def report_check(
        self, table: TableName, snapshot_id: int, name: str, state: CheckState, detail: str | None = None
    ) -> None:
        body = protocol.ReportSnapshotCheckRequest(name, state, detail)
        self._change(protocol.REPORT_SNAPSHOT_CHECK, table, snapshot_id, body)

    def approvals(self, table: TableName, snapshot_id: int) -> tuple[SnapshotApproval, ...]:
        about, names = _about_snapshot(table, snapshot_id), self._names(table, snapshot_id)
        response = self._session.calls.call(protocol.LIST_SNAPSHOT_APPROVALS, about, names=names)
        return self._session.calls.parsed(response, protocol.ListSnapshotApprovalsResponse, about).approvals

    def approve(self, table: TableName, snapshot_id: int, detail: str | None = None) -> None:
        self._change(protocol.APPROVE_SNAPSHOT, table, snapshot_id, protocol.ApproveSnapshotRequest(detail))

    def withdraw(self, table: TableName, snapshot_id: int) -> None:
        self._change(protocol.WITHDRAW_APPROVAL, table, snapshot_id, None)

    def _change(self, endpoint: Endpoint, table: TableName, snapshot_id: int, body: object) -> None:
        about, names = _about_snapshot(table, snapshot_id), self._names(table, snapshot_id)
        send_once(self._session, endpoint, about, f"{about} was reviewed", names=names, body=body)

    def _names(self, table: TableName, snapshot_id: int) -> dict[str, str]:
        return {**self._session.table_path(table), "snapshot": str(snapshot_id)}


def _about_snapshot(table: TableName, snapshot_id: int) -> CallSubject:
    return CallSubject(f"snapshot {snapshot_id} of table", str(table))
