"""Snapshots that clients say they replay: their files must be those that the other branch added and removed.

Who writes to a branch that moves only by publishing could name any source otherwise. Only manifests that a snapshot
does not share with the one before it are read, of the new snapshots and of the branch that they come from.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from bergline.catalog.protection.ref_moves import RefMove
from bergline.errors import FormatError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.manifests.removal import FileKey
from bergline.table.references.snapshot_change import differing_entries

_UNREADABLE = (FormatError, InvalidInputError, NotFoundError, RefusedError, UnsupportedError)
_MOST_STEPS = 1000


def replays_same_files(io: FileIO, base: TableMetadata, result: TableMetadata, move: RefMove) -> bool:
    """Whether each new snapshot adds and removes only files that its source's branch did; not if one cannot be read."""
    had = set() if move.before is None else {s.snapshot_id for s in base.ancestors(move.before.snapshot_id)}
    try:
        return all(_is_replay(io, result, new, _steps(base, source, had)) for new, source in move.replays)
    except _UNREADABLE:
        return False


def _is_replay(io: FileIO, result: TableMetadata, new: int, steps: Iterable[tuple[Snapshot | None, Snapshot]]) -> bool:
    """Whether what a snapshot adds and removes is among what was added and removed in some steps."""
    snapshot = result.snapshot(new)
    parent = None if snapshot.parent_snapshot_id is None else result.snapshot(snapshot.parent_snapshot_id)
    removed, added = _difference(io, result, parent, snapshot)
    for before, after in steps:
        if not removed and not added:
            break
        gone, come = _difference(io, result, before, after)
        removed, added = removed - gone, added - come
    return not removed and not added


def _steps(base: TableMetadata, source: int, had: set[int]) -> Iterator[tuple[Snapshot | None, Snapshot]]:
    """The snapshots of the branch that the target has not, newest first, each with the one before it."""
    line: list[Snapshot] = []
    start: Snapshot | None = None
    for snapshot in base.ancestors(source):
        if snapshot.snapshot_id in had:
            start = snapshot
            break
        line.append(snapshot)
    if len(line) > _MOST_STEPS:
        yield start, line[0]
        return
    for after, before in pairwise([*line, start]):
        assert after is not None  # noqa: S101  (only the last may be none)
        yield before, after


def _difference(
    io: FileIO, metadata: TableMetadata, before: Snapshot | None, after: Snapshot
) -> tuple[frozenset[FileKey], frozenset[FileKey]]:
    old, new = differing_entries(io, metadata, before, after)
    return frozenset(old.keys() - new.keys()), frozenset(new.keys() - old.keys())
