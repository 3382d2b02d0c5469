"""Squash: what a line of history has changed in all, as one change, also where snapshots in between have expired."""

from bergline.errors import RefusedError
from bergline.format.manifest import FileContent, partition_key
from bergline.format.metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.scan.shared_keys import may_share_keys
from bergline.table.common_ancestor import Divergence, divergence_at
from bergline.table.snapshot_change import ChangedFile, SnapshotChange, load_difference


def squash_divergence(io: FileIO, base: TableMetadata, picked: int, onto: int) -> Divergence | None:
    """Two lines of history, of which the picked one has holes: they parted after the last that left traces in both.

    If they parted later still, at snapshots of which nothing is left in the picked one, what these did counts as done
    by the other line alone: then more is refused, never less.
    """
    line = {s.snapshot_id: s for s in base.ancestors(onto)}
    manifests = load_manifest_list(io, base.snapshot(picked))
    traces = {m.added_snapshot_id for m in manifests} | {e.snapshot_id for e in live_entries(io, manifests, base)}
    ancestor = next((s for snapshot_id, s in line.items() if snapshot_id in traces), None)
    return None if ancestor is None else divergence_at(base, picked, onto, ancestor)


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
