"""Squash: what a line of history has changed in all, as one change, also where snapshots in between have expired."""

from bergline.errors import RefusedError
from bergline.format.manifest import FileContent, partition_key
from bergline.format.metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.scan.shared_keys import may_share_keys
from bergline.table.references.common_ancestor import Divergence, divergence_at
from bergline.table.references.snapshot_change import ChangedFile, SnapshotChange, load_difference


def squash_divergence(io: FileIO, base: TableMetadata, picked: int, onto: int) -> Divergence | None:
    """Two lines of history, of which the picked one has holes: where they parted, if that is certain.

    The picked one comes from the last snapshot of the other that has left traces in it, or from a later one that has
    left none: from none that is newer than what the picked line did by itself.
    """
    line = {s.snapshot_id: s for s in base.ancestors(onto)}
    manifests = load_manifest_list(io, base.snapshot(picked))
    traces = {(m.added_snapshot_id, m.sequence_number or 0) for m in manifests}
    traces |= {(e.snapshot_id or 0, e.file_sequence_number or 0) for e in live_entries(io, manifests, base)}
    ancestor = next((line[i] for i in line if any(i == traced for traced, _ in traces)), None)
    if ancestor is None:
        return None
    oldest_known = list(base.ancestors(picked))[-1]
    own = [number for i, number in traces if i not in line and number > ancestor.sequence_number]
    first_own = min([oldest_known.sequence_number, *own])
    divergence = divergence_at(base, picked, onto, ancestor)
    return divergence if all(s.sequence_number > first_own for s in divergence.others) else None


def load_squashed(io: FileIO, base: TableMetadata, divergence: Divergence, refusal: str) -> SnapshotChange | None:
    """The difference of the two ends, without what the other line has already; None if that is all."""
    present, done = divergence.present(), divergence.leading_present()
    left = divergence.picked[done:]
    if not left:
        return None
    for snapshot in left:
        if snapshot.snapshot_id in present:
            raise RefusedError(f"{refusal} by squashing: snapshot {snapshot.snapshot_id} is there already")
    before = divergence.picked[done - 1] if done else divergence.ancestor
    change = load_difference(io, base, before, left[-1])
    _check_order(base, change, refusal)
    return change


def _check_order(base: TableMetadata, change: SnapshotChange, refusal: str) -> None:
    """Equality deletes do not delete rows of their own snapshot: those that did must not become one with them."""
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
