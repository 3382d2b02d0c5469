"""Whether the deletes of data files are those that were applied when their rows were read."""

from collections.abc import Sequence

from bergline.format.manifest import DataFile, FileContent, ManifestContent, partition_key
from bergline.format.metadata import TableMetadata
from bergline.format.snapshot import Snapshot
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.scan.plan import PlannedFile
from bergline.table.changes.removal import file_key
from bergline.table.commits.validate import conflict


def check_same_deletes(
    io: FileIO,
    base: TableMetadata,
    parent: Snapshot,
    read: Sequence[PlannedFile],
    *,
    sequence_number: int | None,
    branch: str,
) -> None:
    """ConflictError if rows of a file were deleted since, or deleted rows came back; looks at no history.

    Rows that keep a sequence number are still deleted by equality deletes with a higher one: those make no difference.
    """
    manifests = load_manifest_list(io, parent)
    entries = [
        entry
        for entry in live_entries(io, (m for m in manifests if m.content is ManifestContent.DELETES), base)
        if entry.data_file.content is FileContent.POSITION_DELETES
        or sequence_number is None
        or (entry.sequence_number or 0) <= sequence_number
    ]
    added_by = {file_key(e.data_file): e.snapshot_id for e in entries}
    index = DeleteIndex(entries, base)
    for planned in read:
        file = planned.file
        before = {file_key(d) for d in planned.deletes}
        now = {file_key(d): d for d in index.deletes_for(file.file_path, partition_key(file), planned.sequence_number)}
        if now.keys() != before:
            new = next((d for key, d in now.items() if key not in before), None)
            winner = base.snapshots_by_id.get(added_by[file_key(new)] or 0, parent) if new else parent
            raise conflict(branch, winner, _did(file, new))


def _did(file: DataFile, new: DataFile | None) -> str:
    if new is None:
        return f"brought back rows of {file.file_path}, which this one replaces"
    return f"deleted rows of {file.file_path}, which this one replaces, by {new.file_path}"
