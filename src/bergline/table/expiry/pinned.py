"""What one branch or tag alone keeps alive."""

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.expiry.reachable import unneeded_files


def own_snapshots(metadata: TableMetadata, ref: str) -> list[int]:
    """The snapshots that are in the history of this ref and of no other."""
    kept = {
        snapshot.snapshot_id
        for name, other in metadata.refs.items()
        if name != ref
        for snapshot in metadata.ancestors(other.snapshot_id)
    }
    history = metadata.ancestors(metadata.ref(ref).snapshot_id)
    return [snapshot.snapshot_id for snapshot in history if snapshot.snapshot_id not in kept]


def pinned_bytes(io: FileIO, metadata: TableMetadata, ref: str) -> int:
    """The size of the files that only those snapshots need, without manifest lists, whose size no metadata has."""
    return sum(file.size or 0 for file in unneeded_files(io, metadata, own_snapshots(metadata, ref)))
