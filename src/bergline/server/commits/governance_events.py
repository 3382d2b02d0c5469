"""The events of changes that move no table by themselves: of pull requests, lake branches, reviews and rules."""

from typing import Any, Final

import msgspec

from bergline.catalog.rest.protocol.names import decode_name
from bergline.governance.events.change_events import EventContext
from bergline.governance.events.model import Event, namespace_subject, table_subject
from bergline.governance.lake_branches.model import LAKE_BRANCH, LakeBranch
from bergline.governance.lake_branches.protocol import DROP_LAKE_BRANCH
from bergline.governance.pull_requests.model import PullRequestRecord
from bergline.governance.reviews import protocol as reviews
from bergline.governance.rules import protocol as rules
from bergline.server.http.request import Request

_PULL_REQUEST: Final = "_pull_request"
_OF_SNAPSHOTS: Final = {
    reviews.REPORT_SNAPSHOT_CHECK.name: "check.report",
    reviews.APPROVE_SNAPSHOT.name: "approval.give",
    reviews.WITHDRAW_APPROVAL.name: "approval.withdraw",
}
_OF_RULES: Final = {
    rules.SET_REF_RULE.name: "rule.set",
    rules.REMOVE_REF_RULE.name: "rule.remove",
    rules.SET_NAMESPACE_REF_RULE.name: "rule.set",
    rules.REMOVE_NAMESPACE_REF_RULE.name: "rule.remove",
}


def governance_events(made: EventContext, request: Request, record: msgspec.Struct | None) -> list[Event]:
    """The events of a request about governance; none of any other."""
    name = request.endpoint.name
    if isinstance(record, PullRequestRecord):
        return [_of_pull_request(made, name.removesuffix(_PULL_REQUEST), record)]
    if isinstance(record, LakeBranch):
        return [made.event(f"{LAKE_BRANCH}.create", f"{LAKE_BRANCH}/{record.name}", msgspec.to_builtins(record))]
    if name == DROP_LAKE_BRANCH.name:
        dropped = decode_name(request.names["branch"])
        return [made.event(f"{LAKE_BRANCH}.drop", f"{LAKE_BRANCH}/{dropped}", {"name": dropped})]
    if name in _OF_SNAPSHOTS:
        about = _told(request, ("name", "state"))
        data = {"table": str(request.table), "snapshot-id": decode_name(request.names["snapshot"])} | about
        return [made.event(_OF_SNAPSHOTS[name], table_subject(request.table), data)]
    if name in _OF_RULES:
        subject = namespace_subject(request.namespace) if "namespace" in request.names else "catalog"
        pattern = request.query.get("pattern")
        about = _told(request, ("pattern", "rule")) if pattern is None else {"pattern": pattern}
        return [made.event(_OF_RULES[name], subject, about)]
    return []


def _of_pull_request(made: EventContext, verb: str, record: PullRequestRecord) -> Event:
    data = {
        "number": record.number,
        "title": record.title,
        "state": record.state.value,
        "branch": record.branch,
        "target": record.target,
        "tables": [str(table.name) for table in record.tables],
    }
    return made.event(f"pull-request.{verb}", f"pull-request/{record.number}", data)


def _told(request: Request, names: tuple[str, ...]) -> dict[str, Any]:
    """What the body of a request says, if it has one."""
    if request.endpoint.body is None:
        return {}
    body = request.read()
    return {name: getattr(body, name) for name in names if getattr(body, name, None) is not None}
