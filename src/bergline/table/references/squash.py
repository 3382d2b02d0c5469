"""Squash: everything that a line of history has changed, as one change, even if snapshots in between have expired."""

import msgspec

from bergline.errors import RefusedError
from bergline.format.manifest.manifest import FileContent, partition_key
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.scan.shared_keys import may_share_keys
from bergline.table.references.common_ancestor import Divergence, all_names, divergence_at, names_of, parts_of
from bergline.table.references.snapshot_change import (
    ChangedFile,
    SnapshotChange,
    load_change,
    load_difference,
    replaces_partitions,
)


def squash_divergence(io: FileIO, base: TableMetadata, picked: int, onto: int) -> Divergence | None:
    """Where two lines of history diverged, if the picked one has gaps but this is still certain.

    The picked one comes from the last snapshot of the other that has left traces in it, or from a later one that has
    left none; and what is missing of it may have taken over any of the later ones. So these must be newer than all that
    is missing.
    """
    line = {s.snapshot_id: s for s in base.ancestors(onto)}
    manifests = load_manifest_list(io, base.snapshot(picked))
    # manifests and entries keep the id of the snapshot that wrote them, even after it has expired: that is the evidence
    traces = {m.added_snapshot_id for m in manifests}
    traces |= {e.snapshot_id or 0 for e in live_entries(io, manifests, base)}
    ancestor = next((line[i] for i in line if i in traces), None)
    if ancestor is None:
        return None
    divergence = divergence_at(base, picked, onto, ancestor)
    missing = _last_missing(base, divergence)
    return divergence if all(s.sequence_number > missing for s in divergence.others) else None


def load_squashed(io: FileIO, base: TableMetadata, divergence: Divergence, refusal: str) -> SnapshotChange | None:
    """The difference of the two ends, without what the other line already has; None if nothing is left."""
    present, done = divergence.present(), divergence.leading_present()
    left = divergence.picked[done:]
    if not left:
        return None
    for snapshot in left:
        if snapshot.snapshot_id in present:
            raise RefusedError(f"{refusal} by squashing: snapshot {snapshot.snapshot_id} is there already")
    if not done and left[0].parent_snapshot_id != divergence.ancestor_id:
        _check_nothing_missing_is_there(base, divergence, refusal)
    before = divergence.picked[done - 1] if done else divergence.ancestor
    change = load_difference(io, base, before, left[-1])
    _check_order(base, change, refusal)
    replaced = (load_change(io, base, s).replaced for s in left if replaces_partitions(s))
    return msgspec.structs.replace(change, replaced=frozenset().union(*replaced))


def _last_missing(base: TableMetadata, divergence: Divergence) -> int:
    """The highest sequence number that an expired snapshot of the picked line can have had."""
    used = {s.sequence_number for s in base.snapshots}
    number = divergence.picked[0].sequence_number - 1
    # the number of a snapshot that still exists cannot be that of an expired one
    while number in used:
        number -= 1
    return max(number, 0)  # in format version 1 all are 0


def _check_nothing_missing_is_there(base: TableMetadata, divergence: Divergence, refusal: str) -> None:
    """What the other line replayed may be what has expired of this one, unless it is newer or known to be here."""
    missing, here = _last_missing(base, divergence), all_names(divergence.picked)
    for snapshot in divergence.others:
        parts = parts_of(snapshot)
        repeated = parts or (names_of(snapshot) - {snapshot.snapshot_id})
        unknown = parts - here if parts else repeated if here.isdisjoint(repeated) else ()
        for name in sorted(unknown):
            known = base.snapshots_by_id.get(name)
            if known is None or known.sequence_number <= missing:
                raise RefusedError(
                    f"{refusal} by squashing: snapshot {snapshot.snapshot_id} replays snapshot {name}, which "
                    "may be among those that have expired",
                    hints=["append the rows that `changes` returns, or keep snapshots for longer than branches"],
                )


def _check_order(base: TableMetadata, change: SnapshotChange, refusal: str) -> None:
    """Refuse equality deletes of rows added by the same line: in one snapshot they would not delete them."""
    # pinned files keep their sequence number in the squash. All others get the number of the one new snapshot, and an
    # equality delete applies only to data with a lower number than its own.
    new_data = [f for f in change.added if f.is_data and not f.pinned]
    for delete in change.added_deletes:
        if delete.file.content is not FileContent.EQUALITY_DELETES or delete.pinned:
            continue
        for data in new_data:
            if data.number < delete.number and _may_delete(base, delete, data):
                raise RefusedError(
                    f"{refusal} by squashing: {delete.file.file_path} deletes rows of {data.file.file_path} by "
                    "equality, and would not in one snapshot",
                    hints=["compact the branch first"],
                )


def _may_delete(base: TableMetadata, delete: ChangedFile, data: ChangedFile) -> bool:
    everywhere = base.specs_by_id[delete.file.spec_id].is_unpartitioned
    near = everywhere or partition_key(delete.file) == partition_key(data.file)
    return near and may_share_keys(data.file, delete.file, base)
