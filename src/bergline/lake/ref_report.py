"""Reports of what happened to a ref in one table and in several."""

from typing import Literal

import msgspec

from bergline.arguments import counted
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveSnapshotRef, SetSnapshotRef
from bergline.markup import html_block, html_table
from bergline.table.commits.operation import Change, CommitStamp, Landed, Operation
from bergline.table.references.publish import Publish

RefOutcome = Literal["created", "replaced", "dropped", "fast-forwarded", "merged", "unchanged"]


class TableRefChange(msgspec.Struct, frozen=True):
    """Where a ref of one table was and is: snapshot ids, or None where it did not or does not exist."""

    table: str
    what: RefOutcome
    previous: int | None
    head: int | None
    replayed: dict[int, int] = {}
    """After a merge: the new snapshots, by the id of the branch's snapshot that each replays."""

    def __str__(self) -> str:
        ends = [str(end) for end in (self.previous, self.head) if end is not None]
        replayed = f", {counted(len(self.replayed), 'snapshot')} replayed" if self.replayed else ""
        return f"{self.table}: {self.what} {' → '.join(dict.fromkeys(ends))}{replayed}"


class RefReport(msgspec.Struct, frozen=True):
    """What happened to a ref in every table of one commit, in the order of the tables."""

    did: str
    ref: str
    tables: tuple[TableRefChange, ...]

    def __str__(self) -> str:
        return "\n  ".join([f"{self.did}, {counted(len(self.tables), 'table')}:", *map(str, self.tables)])

    def _repr_html_(self) -> str:
        """For notebooks: a row for each table."""
        rows = [(t.table, t.what, t.previous, t.head, len(t.replayed) or None) for t in self.tables]
        return html_block(self.did, "", html_table(("table", "", "from", "to", "snapshots replayed"), rows))


class WatchedRef:
    """An operation that records what its last attempt does to one ref."""

    def __init__(self, operation: Operation, ref: str) -> None:
        self._operation = operation
        self._ref = ref
        self._previous: int | None = None
        self._updates: list[SetSnapshotRef | RemoveSnapshotRef] = []

    @property
    def needs_validation(self) -> bool:
        """As the operation says."""
        return self._operation.needs_validation

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The operation's change."""
        change = self._operation.attempt(base, stamp)
        head = base.head(self._ref)
        self._previous = None if head is None else head.snapshot_id
        self._updates = [
            u for u in change.updates if isinstance(u, SetSnapshotRef | RemoveSnapshotRef) and u.ref_name == self._ref
        ]
        return change

    def settled(self, landed: Landed | None) -> None:
        """Tell the operation."""
        self._operation.settled(landed)

    def outcome(self, table: str) -> TableRefChange:
        """What happened to the ref, once it is committed."""
        if not self._updates:
            return TableRefChange(table, "unchanged", self._previous, self._previous)
        last = self._updates[-1]
        if isinstance(last, RemoveSnapshotRef):
            return TableRefChange(table, "dropped", self._previous, None)
        replayed = self._operation.result.replayed if isinstance(self._operation, Publish) else {}
        return TableRefChange(table, self._what(replayed), self._previous, last.snapshot_id, replayed)

    def _what(self, replayed: dict[int, int]) -> RefOutcome:
        if replayed:
            return "merged"
        if self._previous is None:
            return "created"
        return "fast-forwarded" if isinstance(self._operation, Publish) else "replaced"
