"""Staged writes: snapshots without a ref, identified by a WAP id (write, audit, publish) until published."""

from collections.abc import Sequence

import msgspec

from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot
from bergline.table.commits.operation import Change, CommitStamp, Landed, Operation
from bergline.table.references.common_ancestor import known_by
from bergline.table.references.summary import PUBLISHED_WAP_ID, WAP_ID, check_wap_id


class Staged:
    """A write whose snapshot is added to the table without moving any ref."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    @property
    def needs_validation(self) -> bool:
        """Whether the write can become wrong."""
        return self._operation.needs_validation

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The snapshot alone; a branch that does not exist is not created.

        Its parent must still exist: once that has expired, so may have its files.
        """
        change = self._operation.attempt(base, stamp)
        added = tuple(u for u in change.updates if isinstance(u, AddSnapshot))
        return msgspec.structs.replace(change, updates=added, can_rebase=False)

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs."""
        self._operation.settled(landed)


def staged(operation: Operation, wap_id: str | None) -> Operation:
    """The write itself, or staged if there is a WAP id."""
    return operation if wap_id is None else Staged(operation)


def find_staged(base: TableMetadata, wap_id: str, branch: str | None = None) -> Snapshot:
    """The one snapshot that was staged under a WAP id; if for a branch, one that the branch does not have yet."""
    check_wap_id(wap_id)
    found = [s for s in base.snapshots if s.summary.get(WAP_ID) == wap_id]
    if not found:
        known = {i for s in base.snapshots if (i := s.summary.get(WAP_ID))}
        raise NotFoundError(f"no snapshot staged under WAP id `{wap_id}`", kind="snapshot", name=wap_id, known=known)
    if len(found) > 1:
        if branch is not None and (head := base.head(branch)) is not None:
            check_not_published(found[-1], list(base.ancestors(head.snapshot_id)), branch)
        ids = ", ".join(str(s.snapshot_id) for s in found)
        raise RefusedError(
            f"expected one snapshot staged under WAP id `{wap_id}`, found several: {ids}",
            hints=["`refs.cherry_pick` takes one of them by its id"],
        )
    return found[0]


def check_not_published(picked: Snapshot, history: Sequence[Snapshot], branch: str) -> None:
    """Refuse a snapshot whose WAP id is already in the history of a branch."""
    wap_id = picked.summary.get(WAP_ID)
    for snapshot in history if wap_id else ():
        if wap_id in (snapshot.summary.get(WAP_ID), snapshot.summary.get(PUBLISHED_WAP_ID)):
            hints = []
            if not known_by((picked,), history):  # other rows, staged later under the same id
                hints = ["stage the rows under an id of their own", merge_hint(picked, branch)]
            raise RefusedError(
                f"cannot publish WAP id `{wap_id}` to `{branch}`: "
                f"it was published already, as snapshot {snapshot.snapshot_id}",
                hints=hints,
            )


def merge_hint(snapshot: Snapshot, branch: str) -> str:
    """How to bring a snapshot that cannot be picked to a branch anyway."""
    return (
        f'`refs.create_branch("pick", at={snapshot.snapshot_id})` and `refs.merge("pick", into="{branch}")` '
        f"bring snapshot {snapshot.snapshot_id} with its history, whatever it did"
    )
