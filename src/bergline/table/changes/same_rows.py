"""Whether files that take the place of others can hold the same rows, as far as metadata can tell."""

from collections.abc import Iterable, Sequence

from bergline.errors import InvalidInputError
from bergline.format.manifest import DataFile, FileContent, ManifestContent, partition_key
from bergline.format.metadata import TableMetadata
from bergline.format.snapshot import Snapshot
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifests import live_entries, load_manifest_list
from bergline.table.changes.removal import FileKey, PartitionLookup, file_key


def check_same_rows(
    io: FileIO, base: TableMetadata, read: Snapshot, added: Iterable[DataFile], removed: Iterable[DataFile]
) -> None:
    """Refuse more rows than there were, and fewer than deletes can have left; `read` is the snapshot they came from."""
    gone = [f for f in removed if f.content is FileContent.DATA]
    most = sum(f.record_count for f in gone)
    found = sum(f.record_count for f in added if f.content is FileContent.DATA)
    least = _least(io, base, read, gone) if found < most else most
    if not least <= found <= most:
        left = f"{least} to {most}" if least < most else str(most)
        raise InvalidInputError(
            f"expected {left} rows, as in the files that are replaced, found {found} in those that take their place",
            hints=["`overwrite_files` and `row_delta` change rows"],
        )


def _least(io: FileIO, base: TableMetadata, read: Snapshot, gone: Sequence[DataFile]) -> int:
    """How many rows of the files no delete can be about; one by equality may be about all of them."""
    manifests = load_manifest_list(io, read)
    index = DeleteIndex(live_entries(io, (m for m in manifests if m.content is ManifestContent.DELETES), base), base)
    if not index:
        return sum(f.record_count for f in gone)
    paths, lookup = {f.file_path for f in gone}, PartitionLookup(((f.spec_id, f.partition) for f in gone), base)
    data = (m for m in manifests if m.content is ManifestContent.DATA and lookup.may_pick(m))
    rows = 0
    by_position: dict[FileKey, int] = {}
    for entry in live_entries(io, data, base):
        file = entry.data_file
        if file.file_path in paths:
            deletes = index.deletes_for(file.file_path, partition_key(file), entry.sequence_number or 0)
            if not any(d.content is FileContent.EQUALITY_DELETES for d in deletes):
                rows += file.record_count
                by_position |= {file_key(d): d.record_count for d in deletes}
    return max(0, rows - sum(by_position.values()))
