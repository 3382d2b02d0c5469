"""The events of a change, written in its transaction: from what the request asked for, and the tables before and after.

A commit is one event, followed by one for each ref that it creates, moves or drops.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.caller import Caller, ChangedTable
from bergline.catalog.protection.ref_change import BYPASSED
from bergline.catalog.rest.protocol import endpoints
from bergline.catalog.rest.protocol.endpoints import Endpoint
from bergline.format.metadata.refs import SnapshotRef
from bergline.format.metadata.snapshot import SnapshotOperation
from bergline.format.metadata.table_metadata import snapshots_gained
from bergline.governance.events.model import Event, namespace_subject, table_subject, view_subject

MovedTables = Sequence[tuple[TableName, str | None]]

_MOST_REFS: Final = 100
"""The most refs in the event of a commit, and the most ref events of one request."""
_MOST_WALKED: Final = 1000
_LONGEST_NAME: Final = 1000
_NAMED = re.compile(r"(?P<verb>create|drop|undrop|register|unregister|rename|commit)_(?P<kind>table|view)")
NAMESPACE_EVENTS: Final[Mapping[str, str]] = {
    endpoints.CREATE_NAMESPACE.name: "namespace.create",
    endpoints.UPDATE_NAMESPACE.name: "namespace.update",
    endpoints.DROP_NAMESPACE.name: "namespace.drop",
}


class EventContext(msgspec.Struct, frozen=True):
    """What the events of a request have in common: the catalog, the endpoint, who sent it, and when."""

    catalog: str
    endpoint: Endpoint
    principal: str
    at_ms: int

    def event(self, kind: str, subject: str, data: dict[str, Any], table_uuid: str | None = None) -> Event:
        """An event of this change."""
        return Event(self.catalog, kind, subject, self.principal, self.at_ms, data, table_uuid)


def namespace_event(made: EventContext, namespace: Namespace) -> Event:
    """The event of a change to a namespace."""
    kind = NAMESPACE_EVENTS[made.endpoint.name]
    return made.event(kind, namespace_subject(namespace), {"namespace": ".".join(namespace)})


def change_events(made: EventContext, moved: MovedTables, caller: Caller) -> list[Event]:
    """The events of a change to tables or views."""
    if made.endpoint in (endpoints.RENAME_TABLE, endpoints.RENAME_VIEW):
        return _renamed(made, moved, caller)
    events, refs = [], []
    for name, location in moved:
        seen = caller.changes.get(name)
        work = _work(seen)
        kind = _kind(made.endpoint, seen, work)
        if kind.startswith("view."):
            events.append(made.event(kind, view_subject(name), {"view": str(name), "metadata-location": location}))
            continue
        changes = list(itertools.islice(_ref_changes(seen), _MOST_REFS))
        data = {"table": str(name), "metadata-location": location} | _described(seen, changes) | work
        events.append(made.event(kind, table_subject(name), _without_empty(data), _uuid(seen)))
        if seen is not None and seen.before is not None and seen.after is not None:
            about = {"table": str(name)}
            refs += [made.event(f"ref.{c.kind}", table_subject(name), about | c.data(), _uuid(seen)) for c in changes]
    return [*events, *refs[:_MOST_REFS], *_rule_events(made, caller)]


def _uuid(seen: ChangedTable | None) -> str | None:
    metadata = None if seen is None else seen.after or seen.before
    return None if metadata is None else metadata.table_uuid


def _without_empty(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value not in (None, [])}


class _RefChange(msgspec.Struct, frozen=True):
    ref: str
    kind: str
    before: SnapshotRef | None
    after: SnapshotRef | None
    forward: bool | None = None
    """Whether its old head is in the history of the new one; None if that is not known."""

    def data(self) -> dict[str, Any]:
        ref = self.after or self.before
        found: dict[str, Any] = {
            "ref": self.ref[:_LONGEST_NAME],
            "ref-type": "branch" if ref is not None and ref.is_branch else "tag",
            "change": self.kind,
            "from-snapshot-id": _text(None if self.before is None else self.before.snapshot_id),
            "to-snapshot-id": _text(None if self.after is None else self.after.snapshot_id),
            "forward": self.forward,
        }
        return _without_empty(found)


def _described(seen: ChangedTable | None, changes: Iterable[_RefChange]) -> dict[str, Any]:
    """The event data of a table after a commit: its current snapshot and its refs."""
    metadata = None if seen is None else seen.after or seen.before
    if seen is None or metadata is None:
        return {}
    return {"snapshot-id": _text(metadata.current_snapshot_id), "refs": [change.data() for change in changes]}


def _rule_events(made: EventContext, caller: Caller) -> Iterator[Event]:
    for name, notes in caller.notes.items():
        for note in notes:
            kind = "rule.bypass" if note.operation == BYPASSED else "rule.change"
            data = {"table": str(name), "rule": note.rule[:_LONGEST_NAME]}
            yield made.event(kind, table_subject(name), data, _uuid(caller.changes.get(name)))


def _renamed(made: EventContext, moved: MovedTables, caller: Caller) -> list[Event]:
    """An event for the old name and one for the new."""
    kind = _kind(made.endpoint, None, {})
    (old, _), (new, _) = moved
    uuid = _uuid(caller.changes.get(old))
    subject = table_subject if kind.startswith("table.") else view_subject
    return [made.event(kind, subject(name), {"from": str(old), "to": str(new)}, uuid) for name in (old, new)]


def _kind(endpoint: Endpoint, seen: ChangedTable | None, work: Mapping[str, Any]) -> str:
    """The kind of change that an endpoint makes, by its name; all others commit to tables."""
    named = _NAMED.fullmatch(endpoint.name)
    if named is None or endpoint is endpoints.COMMIT_TABLE:
        is_new = seen is not None and seen.before is None
        return "table.create" if is_new else "table.maintenance" if work.get("maintenance") else "table.commit"
    return f"{named['kind']}.{named['verb']}"


def _work(seen: ChangedTable | None) -> dict[str, Any]:
    """What the new snapshots of a commit did, and which kind of maintenance it was, if any.

    It is `compaction` if all of them rewrite files, `expiry` if snapshots were removed and none added.
    """
    if seen is None or seen.before is None or seen.after is None or seen.after.snapshots is seen.before.snapshots:
        return {}
    known, gained = seen.before.snapshots_by_id, snapshots_gained(seen.before, seen.after)
    new = [s for s in seen.after.snapshots if s.snapshot_id not in known] if gained is None else gained
    operations = sorted({s.operation for s in new})
    if operations == [SnapshotOperation.REPLACE]:
        return {"operations": operations, "maintenance": "compaction"}
    if not operations and len(seen.after.snapshots) < len(seen.before.snapshots):
        return {"maintenance": "expiry"}
    return {"operations": operations}


def _ref_changes(seen: ChangedTable | None) -> Iterator[_RefChange]:
    """The refs that have changed, by name."""
    before = {} if seen is None or seen.before is None else seen.before.refs
    after = {} if seen is None or seen.after is None else seen.after.refs
    for name in sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name)):
        old, new = before.get(name), after.get(name)
        if old is None:
            yield _RefChange(name, "create", None, new)
        elif new is None:
            yield _RefChange(name, "drop", old, None)
        elif old.snapshot_id == new.snapshot_id:
            yield _RefChange(name, "retain", old, new)
        else:
            yield _RefChange(name, "move", old, new, _is_forward(seen, old.snapshot_id, new.snapshot_id))


def _is_forward(seen: ChangedTable | None, old: int, new: int) -> bool | None:
    """Whether the old head is an ancestor of the new one; None if it is too far back to tell."""
    if seen is None or seen.after is None:
        return None
    for steps, snapshot in enumerate(seen.after.ancestors(new)):
        if snapshot.snapshot_id == old:
            return True
        if steps == _MOST_WALKED:
            return None
    return False


def _text(snapshot_id: int | None) -> str | None:
    """An id as text: not every JSON reader can hold 64-bit numbers."""
    return None if snapshot_id is None else str(snapshot_id)
