"""How refs move: forward, back, anywhere, and by what other branches have."""

import datetime as dt
from collections.abc import Callable

from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.refs import MAIN, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.commits.operation import Change, MetadataOperation, Operation
from bergline.table.references.cherry_pick import CherryPick
from bergline.table.references.diff import RefDiff, diff_refs
from bergline.table.references.merge import Merge, MergeResult
from bergline.table.references.merge_plan import MergeRequest
from bergline.table.references.ref_changes import existing_ref, fast_forward, move_branch
from bergline.table.references.staged import find_staged
from bergline.table.scans.version import SnapshotChoice, epoch_ms, readable_ms, snapshot_at


class MovingRefs:
    """The part of `table.refs` that moves branches; every method is one commit, checked again on every attempt."""

    def __init__(
        self, metadata: Callable[[], TableMetadata], run: Callable[[Operation], TableMetadata], io: FileIO
    ) -> None:
        self._metadata = metadata
        self._run = run
        self._io = io

    def fast_forward(self, branch: str, *, to: str) -> MergeResult:
        """Move a branch forward to a ref that descends from it; one that does not exist is made there."""
        return self._move(branch, lambda base: fast_forward(base, branch, to))

    def rollback(self, branch: str = MAIN, *, to: SnapshotChoice) -> MergeResult:
        """Move a branch back to a snapshot of its history, by id, by ref, or the last one before a moment.

        ConflictError if others commit to the branch meanwhile: nothing goes that was not there to be seen.
        """
        return self._leave(branch, lambda base: rollback_target(base, branch, to))

    def set_current(self, branch: str = MAIN, *, to: SnapshotChoice) -> MergeResult:
        """Move a branch to any snapshot: by id, by ref, or what `main` was at a moment."""
        return self._leave(branch, lambda base: snapshot_at(base, to))

    def cherry_pick(self, snapshot: SnapshotChoice, *, onto: str = MAIN) -> MergeResult:
        """Bring one snapshot, by its id or the ref that names it, to a branch.

        The branch moves to a snapshot that was made on its head. Else an append is done again on top of it, and
        replaced partitions too, if nobody added to them since; RefusedError for all others, and for what the branch
        has had already.
        """
        return self._pick(lambda base: base.snapshot(snapshot_at(base, snapshot)), onto)

    def publish(self, wap_id: str, *, into: str = MAIN) -> MergeResult:
        """Cherry-pick the snapshot that was staged under a WAP id; a second time is refused."""
        return self._pick(lambda base: find_staged(base, wap_id, into), into)

    def staged(self, wap_id: str) -> Snapshot:
        """The snapshot that was staged under a WAP id, to be read before it is published."""
        return find_staged(self._metadata(), wap_id)

    def merge(self, branch: str, *, into: str, squash: bool = False) -> MergeResult:
        """Bring what a branch has into another: move it forward, or do each snapshot again on top of it.

        ConflictError if both changed the same files. Where history has expired, `squash` takes the difference of the
        two ends as one snapshot.
        """
        return self._merge(MergeRequest(branch, into, "onto", squash))

    def rebase(self, branch: str, *, onto: str, squash: bool = False) -> MergeResult:
        """Move a branch on top of another ref: its own snapshots are done again there."""
        return self._merge(MergeRequest(branch, onto, "picked", squash))

    def diff(self, from_ref: str, to_ref: str) -> RefDiff:
        """How a ref differs from another as last loaded, from metadata alone; `table.changes` gives the rows."""
        return diff_refs(self._io, self._metadata(), from_ref, to_ref)

    def _leave(self, branch: str, target: Callable[[TableMetadata], int]) -> MergeResult:
        """Move a branch to where its last snapshots may no longer be in its history."""
        return self._move(
            branch,
            lambda base: move_branch(base, branch, target(base)),
            leaves=lambda base: left_behind(base, branch, target(base)),
        )

    def _move(
        self,
        branch: str,
        change: Callable[[TableMetadata], Change],
        leaves: Callable[[TableMetadata], object] = lambda _: None,
    ) -> MergeResult:
        previous: int | None = None

        def attempt(base: TableMetadata) -> Change:
            nonlocal previous
            moved = change(base)
            previous = base.refs[branch].snapshot_id if branch in base.refs else None
            return moved

        after = self._run(MetadataOperation(attempt, overwrites=leaves))
        return MergeResult(previous, after.ref(branch).snapshot_id)

    def _pick(self, find: Callable[[TableMetadata], Snapshot], branch: str) -> MergeResult:
        operation = CherryPick(self._io, find, branch=branch)
        self._run(operation)
        return operation.result

    def _merge(self, request: MergeRequest) -> MergeResult:
        operation = Merge(self._io, request)
        self._run(operation)
        return operation.result


def rollback_target(base: TableMetadata, branch: str, to: SnapshotChoice) -> int:
    """The snapshot that a branch goes back to: for a moment, the last one of its history before it."""
    head = existing_ref(base, branch, SnapshotRefType.BRANCH).snapshot_id
    if isinstance(to, dt.datetime):
        return _last_before(base, branch, head, epoch_ms(to))
    target = snapshot_at(base, to)
    if not base.is_ancestor(target, of=head):
        raise RefusedError(
            f"cannot roll back `{branch}` to snapshot {target}: it is not in the history of `{branch}`",
            hints=[f'`refs.set_current("{branch}", to={target})` goes anywhere'],
        )
    return target


def left_behind(base: TableMetadata, branch: str, target: int) -> frozenset[int]:
    """The snapshots that a branch has and will not have once it is at the target."""
    ref = base.refs.get(branch)
    if ref is None:
        return frozenset()
    stay = {s.snapshot_id for s in base.ancestors(target)}
    return frozenset([s.snapshot_id for s in base.ancestors(ref.snapshot_id) if s.snapshot_id not in stay])


def _last_before(base: TableMetadata, branch: str, head: int, moment_ms: int) -> int:
    history = list(base.ancestors(head))
    before = [s for s in history if s.timestamp_ms < moment_ms]
    if not before:
        raise NotFoundError(
            f"no snapshot of `{branch}` before {readable_ms(moment_ms)}",
            kind="snapshot",
            name=str(moment_ms),
            hints=[f"its history begins at {readable_ms(min(s.timestamp_ms for s in history))}"],
        )
    return max(before, key=lambda s: s.timestamp_ms).snapshot_id
