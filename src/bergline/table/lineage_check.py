"""Whether rows that a transaction added and then wrote again, with the ids that they had, would get other ids now."""

from collections.abc import Collection

from bergline.format.manifest import EntryStatus, ManifestContent
from bergline.format.metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_entries, load_manifest_list


def lineage_misfit(io: FileIO, staged: TableMetadata, now: TableMetadata, snapshot_ids: Collection[int]) -> str | None:
    """What no longer fits, in words; the snapshots are the transaction's, `staged` on the base that it began with."""
    ours = [s for s in now.snapshots if s.snapshot_id in snapshot_ids]
    if now.format_version < ROW_LINEAGE_VERSION or all(
        before is not None and (before.first_row_id, before.sequence_number) == (s.first_row_id, s.sequence_number)
        for s in ours
        for before in [staged.snapshots_by_id.get(s.snapshot_id)]
    ):
        return None
    numbers = {s.sequence_number for s in ours}
    for snapshot in ours:
        for manifest in load_manifest_list(io, snapshot):
            if manifest.added_snapshot_id != snapshot.snapshot_id or manifest.content is not ManifestContent.DATA:
                continue
            if manifest.deleted_files_count and any(
                e.status is EntryStatus.DELETED and e.sequence_number in numbers
                for e in load_entries(io, manifest, now)
            ):
                return "rows that were added in it and then written again would have other ids"
    return None
