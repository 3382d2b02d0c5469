"""Rollback: a branch goes back to a snapshot of its own history."""

import datetime as dt

from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata import TableMetadata
from bergline.format.refs import SnapshotRefType
from bergline.table.references.ref_changes import existing_ref
from bergline.table.version import Place, epoch_ms, readable_ms, snapshot_at


def rollback_target(base: TableMetadata, branch: str, to: Place) -> int:
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
