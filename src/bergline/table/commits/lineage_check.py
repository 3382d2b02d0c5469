"""Whether rows that a transaction added and then wrote again, with the ids that they had, would get other ids now."""

from collections.abc import Collection, Sequence

from bergline.format.manifest import EntryStatus, ManifestContent
from bergline.format.metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.snapshot import Snapshot
from bergline.format.updates import AddSnapshot
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.operation import Change


def lineage_misfit(io: FileIO, staged: TableMetadata, now: TableMetadata, changes: Sequence[Change]) -> str | None:
    """What no longer fits, in words: files were written on `staged`, and the changes make `now` of another base."""
    added = {u.snapshot.snapshot_id: u.snapshot for c in changes for u in c.updates if isinstance(u, AddSnapshot)}
    if now.format_version < ROW_LINEAGE_VERSION or not any(c.rewritten for c in changes):
        return None
    moved = {s.sequence_number for s in added.values() if _ids(s) != _ids(staged.snapshots_by_id.get(s.snapshot_id))}
    for change in changes:
        for update in change.updates if change.rewritten else ():
            if isinstance(update, AddSnapshot) and _removes(io, update.snapshot, now, change.rewritten, moved):
                return "rows that were added in it and then written again would have other ids"
    return None


def _ids(snapshot: Snapshot | None) -> tuple[int | None, int] | None:
    return None if snapshot is None else (snapshot.first_row_id, snapshot.sequence_number)


def _removes(
    io: FileIO, snapshot: Snapshot, now: TableMetadata, paths: Collection[str], numbers: Collection[int]
) -> bool:
    """Whether a snapshot removes one of these data files, added under one of these numbers."""
    return any(
        e.status is EntryStatus.DELETED and e.data_file.file_path in paths and e.sequence_number in numbers
        for manifest in load_manifest_list(io, snapshot)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        and manifest.content is ManifestContent.DATA
        and manifest.deleted_files_count
        for e in load_entries(io, manifest, now)
    )
