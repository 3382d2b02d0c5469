"""Merge and rebase: replaying the snapshots of one line of history on top of another, in one commit."""

from collections.abc import Iterator

import msgspec

from bergline.arguments import counted
from bergline.errors import RefusedError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.requirements import AssertRefSnapshotId, same_table
from bergline.format.metadata.snapshot import SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import set_ref
from bergline.io.fileio import FileIO
from bergline.table.commits.combine import combine_changes
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.references.common_ancestor import Divergence, first_ids
from bergline.table.references.merge_conflicts import MergeConflicts
from bergline.table.references.merge_plan import MergeRequest, plan_merge
from bergline.table.references.ref_changes import hold_snapshot
from bergline.table.references.replay import Replay, ReplayBase
from bergline.table.references.snapshot_change import SnapshotChange, load_change
from bergline.table.references.squash import load_squashed
from bergline.table.references.summary import SQUASHED, SQUASHED_SINCE


class MergeResult(msgspec.Struct, frozen=True):
    """Where the ref was and is, and the new snapshots by those that they replay: none if it only moved."""

    previous: int | None
    head: int | None
    replayed: dict[int, int] = {}

    def __str__(self) -> str:
        if self.previous == self.head:
            return f"unchanged at snapshot {self.head}"
        replayed = f", {counted(len(self.replayed), 'snapshot')} replayed" if self.replayed else ""
        moved = "created at" if self.previous is None else f"moved from snapshot {self.previous} to"
        return f"{moved} snapshot {self.head}{replayed}"


class Merge:
    """Computed anew on every base; a replayed snapshot has the same id and manifests in all attempts."""

    def __init__(self, io: FileIO, request: MergeRequest) -> None:
        self._io = io
        self._request = request
        self._replays: dict[tuple[int, int | None], Replay] = {}
        self._outdated: list[Replay] = []
        self.needs_validation = False
        self.result = MergeResult(None, None)

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """All snapshots replayed on this base, or a ref that only moves."""
        plan = plan_merge(self._io, base, self._request)
        ref = base.refs.get(self._request.moved)
        previous = ref.snapshot_id if ref else None
        changes: list[Change] = []
        used: list[Replay] = []
        now = base
        if plan.divergence is not None:
            changes.append(Change((), (*same_table(base), *self._ends(base))))
        if plan.start is not None:
            changes.append(self._move(base, ref, plan.start))
            now = _after(base, changes[-1], stamp)
        if plan.divergence is not None:
            changes += self._replay(base, now, plan.divergence, stamp, used)
        replayed = {r.change.source.snapshot_id: r.snapshot_id for r in used}
        head = used[-1].snapshot_id if used else plan.start or previous
        self.result = MergeResult(previous, head, replayed)
        self.needs_validation = any(r.change.operation is not SnapshotOperation.APPEND for r in used)
        return combine_changes(changes)

    def is_done(self, base: TableMetadata, divergence: Divergence) -> bool:
        """Whether the other line already has everything, so that nothing is left to replay."""
        return next(self._to_replay(base, divergence), None) is None

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs; the data files existed before."""
        for replay in (*self._replays.values(), *self._outdated):
            replay.settled(landed)

    def _move(self, base: TableMetadata, ref: SnapshotRef | None, snapshot_id: int) -> Change:
        moved = SnapshotRef(snapshot_id, SnapshotRefType.BRANCH)
        if ref is not None:
            moved = msgspec.structs.replace(ref, snapshot_id=snapshot_id)
        held = AssertRefSnapshotId(self._request.moved, ref.snapshot_id if ref else None)
        return Change((set_ref(self._request.moved, moved),), (*same_table(base), held))

    def _ends(self, base: TableMetadata) -> Iterator[AssertRefSnapshotId]:
        """Requirements that both lines still end where they did: files of both are used, and only refs protect them."""
        yield from (AssertRefSnapshotId(n, base.ref(n).snapshot_id) for n in (self._request.picked, self._request.onto))

    def _replay(
        self,
        base: TableMetadata,
        now: TableMetadata,
        divergence: Divergence,
        stamp: CommitStamp,
        used: list[Replay],
    ) -> Iterator[Change]:
        """Replay one change after the other, each on the result of those before it."""
        head = base.snapshot(base.ref(self._request.onto).snapshot_id)
        if (partly := divergence.partly_present()) is not None:
            raise RefusedError(
                f"{self._request.refusal}: snapshot {partly.snapshot_id} was squashed from several, "
                f"of which `{self._request.onto}` already has some, but not all"
            )
        replay_base = ReplayBase(
            MergeConflicts(self._io, base, head, since=divergence.ancestor_id, branch=self._request.onto),
            divergence.ancestor_number,
            numbers=divergence.numbers_there(),
        )
        for count, replay in self._to_replay(base, divergence):
            replay_base = msgspec.structs.replace(replay_base, known=divergence.known_before(count))
            change = replay.attempt_on(now, stamp, replay_base)
            now = _after(now, change, stamp)
            held = hold_snapshot(replay.change.source.snapshot_id)
            yield msgspec.structs.replace(change, updates=(*held, *change.updates))
            used.append(replay)
            replay_base = replay_base.after(replay.change, now.snapshot(replay.snapshot_id).sequence_number)

    def _to_replay(self, base: TableMetadata, divergence: Divergence) -> Iterator[tuple[int, Replay]]:
        """The changes to replay, each with the number of picked snapshots that it builds on."""
        if self._request.squash:
            squashed = load_squashed(self._io, base, divergence, self._request.refusal)
            if squashed is not None:
                done = divergence.leading_present()
                start = divergence.picked[done - 1].snapshot_id if done else divergence.ancestor_id or 0
                yield done, self._known(squashed, start, _of_squash(divergence, done))
            return
        present = divergence.present()
        for count, snapshot in enumerate(divergence.picked):
            if snapshot.snapshot_id in present:
                continue
            known = self._replays.get((snapshot.snapshot_id, None))
            is_same = known is not None and known.change.source == snapshot
            change = known.change if known is not None and is_same else load_change(self._io, base, snapshot)
            if not change.is_nothing:
                yield count, self._known(change)

    def _known(
        self, change: SnapshotChange, start: int | None = None, squashed: dict[str, str] | None = None
    ) -> Replay:
        """The replay of a change, created once: attempts share what it writes.

        A snapshot of the same transaction that is drafted again on another base has other content under its old id.
        """
        key = change.source.snapshot_id, start
        known = self._replays.get(key)
        if known is not None and known.change.source == change.source:
            return known
        if known is not None:
            self._outdated.append(known)
        replay = self._replays[key] = Replay(
            self._io,
            change,
            request=self._request,
            squashed=squashed,
            snapshot_id=None if known is None else known.snapshot_id,
        )
        return replay


def _of_squash(divergence: Divergence, done: int) -> dict[str, str]:
    """The summary entries about the squashed snapshots."""
    ancestor = divergence.ancestor_id
    parts = sorted(first_ids(divergence.picked[done:]))
    return {SQUASHED_SINCE: "" if ancestor is None else str(ancestor), SQUASHED: ",".join(map(str, parts))}


def _after(base: TableMetadata, change: Change, stamp: CommitStamp) -> TableMetadata:
    return apply_updates(base, change.updates, base_location=None, now_ms=stamp.now_ms)
