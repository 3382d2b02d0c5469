"""What a commit does to refs, read from the metadata before and after it, never from what a client says."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import takewhile
from typing import Final

import msgspec

from bergline.format.metadata.refs import SnapshotRef
from bergline.format.metadata.snapshot import SOURCE_SNAPSHOT_ID, STAGED_WAP_ID, Snapshot
from bergline.format.metadata.table_metadata import TableMetadata, snapshots_gained

_LONGEST_ID: Final = 19


class MoveKind(StrEnum):
    """What happened to a ref."""

    CREATED = "created"
    FORWARD = "moved forward"
    """Its head before is in the history of its head after."""
    ROLLED_BACK = "rolled back"
    """Its head after is in the history of its head before."""
    DIVERGED = "diverged"
    """The histories have ids in common, and snapshots of the one before are left behind, or others under their ids."""
    REPLACED = "replaced"
    """The histories have nothing in common."""
    DROPPED = "dropped"
    """Gone, or a ref of the other kind has its name, which was created."""
    RENAMED = "renamed"
    """Dropped, and another ref was created that is the same."""
    RETENTION = "retention changed"
    EXPIRED = "history expired"
    """Snapshots in its history were removed, or others came under their ids."""


class RefMove(msgspec.Struct, frozen=True):
    """One thing that a commit does to a ref; a ref that moves and changes its retention has two."""

    ref: str
    kind: MoveKind
    before: SnapshotRef | None
    after: SnapshotRef | None
    published: bool = False
    """Whether all that the ref gains was on another branch before, or staged, or replays what was."""
    new_name: str | None = None
    """Of a renamed ref; its own name if a ref of the other kind took it."""
    expired: tuple[int, ...] = ()
    gained: tuple[int, ...] = ()
    """The snapshots that its history gains, newest first; of a new ref, its head."""
    replays: tuple[tuple[int, int], ...] = ()
    """If published, the new snapshots among them, oldest first, each with the one that it says it replays."""

    @property
    def is_branch(self) -> bool:
        """Whether the ref is a branch, after the commit or else before it."""
        ref = self.after or self.before
        return ref is not None and ref.is_branch


def find_ref_moves(base: TableMetadata, result: TableMetadata | None) -> tuple[RefMove, ...]:
    """The moves from base to result, by name of the ref; without a result the table is dropped with all its refs."""
    if result is None:
        return tuple(RefMove(name, MoveKind.DROPPED, ref, None) for name, ref in sorted(base.refs.items()))
    return tuple(_Comparison(base, result).moves())


class _Comparison:
    """Metadata before and after a commit."""

    def __init__(self, base: TableMetadata, result: TableMetadata) -> None:
        self._base = base
        self._result = result
        self._gained = snapshots_gained(base, result)
        """The snapshots that came, if none went: then only they need to be looked at in the usual moves."""
        self._known = (
            result.snapshots_by_id if self._gained is not None else base.snapshots_by_id | result.snapshots_by_id
        )
        """A commit may add snapshots and expire others between them: the parents of both lead from head to head."""

    def moves(self) -> Iterator[RefMove]:
        before, after = self._base.refs, self._result.refs
        created = {name: ref for name, ref in after.items() if not _goes_on(before.get(name), ref)}
        for name in sorted(before.keys() | after.keys()):
            if name in before and (name not in after or name in created):
                yield self._gone(name, created)
            if (ref := created.get(name)) is not None:
                yield self._gaining(RefMove(name, MoveKind.CREATED, None, ref, gained=(ref.snapshot_id,)))
            elif name in after:
                yield from self._changes(name, before[name], after[name])

    def _gone(self, name: str, created: Mapping[str, SnapshotRef]) -> RefMove:
        ref = self._base.refs[name]
        new_name = next((other for other, new in created.items() if new == ref), None)
        if new_name is not None:
            return RefMove(name, MoveKind.RENAMED, ref, None, new_name=new_name)
        return RefMove(name, MoveKind.DROPPED, ref, None, new_name=name if name in created else None)

    def _changes(self, name: str, before: SnapshotRef, after: SnapshotRef) -> Iterator[RefMove]:
        gained = self._new_on(before, after)
        if gained is not None:
            if gained:
                yield self._gaining(RefMove(name, MoveKind.FORWARD, before, after, gained=gained))
            if before.retention != after.retention:
                yield RefMove(name, MoveKind.RETENTION, before, after)
            return
        history, line = tuple(self._base.ancestors(before.snapshot_id)), tuple(self._line(after.snapshot_id))
        kind = _kind(history, line)
        if kind is not None:
            had = {s.snapshot_id for s in history}
            gained = tuple(takewhile(lambda number: number not in had, (s.snapshot_id for s in line)))
            move = RefMove(name, kind, before, after, gained=gained)
            yield self._gaining(move) if kind is MoveKind.FORWARD else move
        if before.retention != after.retention:
            yield RefMove(name, MoveKind.RETENTION, before, after)
        stays = self._result.snapshots_by_id
        if before.is_branch and (expired := sorted(s.snapshot_id for s in history if stays.get(s.snapshot_id) != s)):
            yield RefMove(name, MoveKind.EXPIRED, before, after, expired=tuple(expired))

    def _new_on(self, before: SnapshotRef, after: SnapshotRef) -> tuple[int, ...] | None:
        """The snapshots since the previous head, newest first; None if the new head does not descend from it."""
        if self._gained is None or self._revives:
            return None
        gained: list[int] = []
        for snapshot in self._line(after.snapshot_id):
            if snapshot.snapshot_id == before.snapshot_id:
                return tuple(gained)
            gained.append(snapshot.snapshot_id)
        return None

    @cached_property
    def _revives(self) -> bool:
        """Whether a new snapshot has the id of one that expired, and would so extend a history that had ended."""
        new = {s.snapshot_id for s in self._gained or ()}
        return bool(new) and not new.isdisjoint(s.parent_snapshot_id for s in self._base.snapshots)

    def _gaining(self, move: RefMove) -> RefMove:
        """The move, marked as a publish if all that the ref gains was on another branch or replays what was."""
        replays = self._replays(move.ref)
        if replays is None:
            return move
        return msgspec.structs.replace(move, published=True, replays=tuple(reversed(replays)))

    def _replays(self, name: str) -> list[tuple[int, int]] | None:
        """The new snapshots that a ref gains, each with its source; None if one was on no other branch of the base."""
        own_ref, new_ref = self._base.refs.get(name), self._result.refs[name]
        head = new_ref.snapshot_id
        if self._base.snapshots_by_id.get(head) is None and self._source(self._known[head]) is None:
            return None  # as nearly all commits, which need no look at history
        own: set[int] = set()
        if own_ref is not None and _goes_on(own_ref, new_ref):
            own = {s.snapshot_id for s in self._base.ancestors(own_ref.snapshot_id)}
        elsewhere = self._reachable(r.snapshot_id for n, r in self._base.refs.items() if n != name and r.is_branch)
        replays: list[tuple[int, int]] = []
        for snapshot in self._line(head):
            if snapshot.snapshot_id in own:
                break
            is_known = self._base.snapshots_by_id.get(snapshot.snapshot_id) == snapshot  # not removed and added anew
            before = snapshot if is_known else self._source(snapshot)
            if before is None or before.snapshot_id in own:
                return None
            if before.snapshot_id not in elsewhere and not before.summary.get(STAGED_WAP_ID):
                return None
            if not is_known:
                replays.append((snapshot.snapshot_id, before.snapshot_id))
        return replays

    def _source(self, snapshot: Snapshot) -> Snapshot | None:
        """The snapshot of the base that a new one replays."""
        text = snapshot.summary.get(SOURCE_SNAPSHOT_ID, "")
        is_id = text.isascii() and text.isdecimal() and len(text) <= _LONGEST_ID
        return self._base.snapshots_by_id.get(int(text)) if is_id else None

    def _reachable(self, heads: Iterable[int]) -> set[int]:
        found: set[int] = set()
        for head in heads:
            for snapshot in self._base.ancestors(head):
                if snapshot.snapshot_id in found:
                    break
                found.add(snapshot.snapshot_id)
        return found

    def _line(self, head: int) -> Iterator[Snapshot]:
        """A snapshot and its parents, newest first."""
        seen: set[int] = set()
        following: int | None = head
        while following is not None and following not in seen and following in self._known:
            seen.add(following)
            snapshot = self._known[following]
            yield snapshot
            following = snapshot.parent_snapshot_id


def _goes_on(before: SnapshotRef | None, after: SnapshotRef) -> bool:
    """Whether a ref is the one that had its name before: a tag does not continue a branch."""
    return before is not None and before.snapshot_ref_type is after.snapshot_ref_type


def _kind(history: Sequence[Snapshot], line: Sequence[Snapshot]) -> MoveKind | None:
    """How a head moved, given its history before and the ancestors of the new head; None if it did not move.

    Snapshots are compared, not their ids, because another one can be added under the id of one that was removed.
    """
    if line[-len(history) :] == history:
        return None if len(line) == len(history) else MoveKind.FORWARD
    if {s.snapshot_id for s in history}.isdisjoint(s.snapshot_id for s in line):
        return MoveKind.REPLACED
    return MoveKind.ROLLED_BACK if history[-len(line) :] == line else MoveKind.DIVERGED
