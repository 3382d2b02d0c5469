"""Rules about refs, checks and approvals behind a bergline server."""

from collections.abc import Mapping
from typing import Any

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.kept_rules import CheckState, KeptRule, SnapshotApproval, SnapshotCheck
from bergline.catalog.protection.ref_rule import RefRule, render_rule
from bergline.catalog.protection.table_rules import UnreadableRule, read_rule
from bergline.catalog.rest.client.error_responses import CallSubject
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settle import happened
from bergline.catalog.rest.protocol.endpoints import (
    APPROVE_SNAPSHOT,
    LIST_NAMESPACE_REF_RULES,
    LIST_REF_RULES,
    LIST_SNAPSHOT_APPROVALS,
    LIST_SNAPSHOT_CHECKS,
    REMOVE_NAMESPACE_REF_RULE,
    REMOVE_REF_RULE,
    REPORT_SNAPSHOT_CHECK,
    SET_NAMESPACE_REF_RULE,
    SET_REF_RULE,
    WITHDRAW_APPROVAL,
    Endpoint,
)
from bergline.catalog.rest.protocol.governance_rules import (
    ApproveSnapshotRequest,
    ListRefRulesResponse,
    ListSnapshotApprovalsResponse,
    ListSnapshotChecksResponse,
    RefRuleBody,
    ReportSnapshotCheckRequest,
    SetRefRuleRequest,
)
from bergline.errors import UnsupportedError


class RestRefRules:
    """The rules of a server's catalog and its namespaces."""

    def __init__(self, session: RestSession) -> None:
        _check_keeps_rules(session)
        self._session = session

    def rules(self, namespace: Namespace | None = None) -> tuple[KeptRule, ...]:
        about = _about_rules(namespace or ())
        endpoint = LIST_NAMESPACE_REF_RULES if namespace else LIST_REF_RULES
        response = self._session.calls.call(endpoint, about, names=self._names(namespace or ()))
        found = self._session.calls.parsed(response, ListRefRulesResponse, about).rules
        return tuple(_kept(body) for body in found if namespace != () or not body.namespace)

    def set_rule(self, namespace: Namespace, rule: RefRule) -> None:
        endpoint = SET_NAMESPACE_REF_RULE if namespace else SET_REF_RULE
        body = SetRefRuleRequest(rule.pattern, render_rule(rule))
        self._change(endpoint, namespace, "set", body=body)

    def remove_rule(self, namespace: Namespace, pattern: str) -> None:
        endpoint = REMOVE_NAMESPACE_REF_RULE if namespace else REMOVE_REF_RULE
        self._change(endpoint, namespace, "removed", query={"pattern": pattern})

    def _change(self, endpoint: Endpoint, namespace: Namespace, what: str, **sent: Any) -> None:
        about = _about_rules(namespace)
        _send(self._session, endpoint, about, f"a rule was {what}", names=self._names(namespace), **sent)

    def _names(self, namespace: Namespace) -> dict[str, str]:
        return self._session.namespace_path(namespace) if namespace else {}


class RestSnapshotReviews:
    """Checks and approvals of snapshots on a server, which knows who sends them."""

    def __init__(self, session: RestSession) -> None:
        _check_keeps_rules(session)
        self._session = session

    def checks(self, table: TableName, snapshot_id: int) -> tuple[SnapshotCheck, ...]:
        about, names = _about_snapshot(table, snapshot_id), self._names(table, snapshot_id)
        response = self._session.calls.call(LIST_SNAPSHOT_CHECKS, about, names=names)
        found = self._session.calls.parsed(response, ListSnapshotChecksResponse, about).checks
        return tuple(SnapshotCheck(**msgspec.structs.asdict(body)) for body in found)

    def report_check(
        self, table: TableName, snapshot_id: int, name: str, state: CheckState, detail: str | None = None
    ) -> None:
        body = ReportSnapshotCheckRequest(name, state, detail)
        self._change(REPORT_SNAPSHOT_CHECK, table, snapshot_id, body)

    def approvals(self, table: TableName, snapshot_id: int) -> tuple[SnapshotApproval, ...]:
        about, names = _about_snapshot(table, snapshot_id), self._names(table, snapshot_id)
        response = self._session.calls.call(LIST_SNAPSHOT_APPROVALS, about, names=names)
        found = self._session.calls.parsed(response, ListSnapshotApprovalsResponse, about).approvals
        return tuple(SnapshotApproval(**msgspec.structs.asdict(body)) for body in found)

    def approve(self, table: TableName, snapshot_id: int, detail: str | None = None) -> None:
        self._change(APPROVE_SNAPSHOT, table, snapshot_id, ApproveSnapshotRequest(detail))

    def withdraw(self, table: TableName, snapshot_id: int) -> None:
        self._change(WITHDRAW_APPROVAL, table, snapshot_id, None)

    def _change(self, endpoint: Endpoint, table: TableName, snapshot_id: int, body: object) -> None:
        about, names = _about_snapshot(table, snapshot_id), self._names(table, snapshot_id)
        _send(self._session, endpoint, about, f"{about} was reviewed", names=names, body=body)

    def _names(self, table: TableName, snapshot_id: int) -> dict[str, str]:
        return {**self._session.table_path(table), "snapshot": str(snapshot_id)}


def _send(
    session: RestSession, endpoint: Endpoint, about: CallSubject, what: str, *, names: Mapping[str, str], **sent: Any
) -> None:
    """Make a change that the server makes once, however often it is sent with its key."""

    def send() -> None:
        session.calls.change(endpoint, about, names=names, **sent)

    happened(send, lambda: False, what=what, name=about.name, waits=())


def _check_keeps_rules(session: RestSession) -> None:
    if not session.calls.has(LIST_REF_RULES):
        raise UnsupportedError(
            "expected a server that keeps rules about refs, found another",
            hints=["`bergline serve` does; elsewhere a table has its own: `table.refs.protect`"],
        )


def _about_rules(namespace: Namespace) -> CallSubject:
    return CallSubject("namespace", ".".join(namespace)) if namespace else CallSubject("the catalog's rules", "")


def _about_snapshot(table: TableName, snapshot_id: int) -> CallSubject:
    return CallSubject(f"snapshot {snapshot_id} of table", str(table))


def _kept(body: RefRuleBody) -> KeptRule:
    rule = UnreadableRule(body.pattern, body.problem) if body.problem else read_rule(body.pattern, body.rule)
    return KeptRule(body.namespace, rule, body.principal, body.at_ms)
