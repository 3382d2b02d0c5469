"""What a snapshot changed, or how two snapshots differ: files added and removed, with their sequence numbers."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from bergline.format.manifest.manifest import DataFile, EntryStatus, FileContent, ManifestEntry, partition_key
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import live_entries, load_entries, load_manifest_list
from bergline.table.manifests.removal import FileKey, file_key
from bergline.table.references.summary import REPLACED, REPLACED_AMONG_OTHERS


class ChangedFile(msgspec.Struct, frozen=True):
    """A file and its data sequence number."""

    file: DataFile
    number: int
    pinned: bool = False
    """Whether the number was assigned explicitly, because the rows are older than the snapshot that added the file."""

    @property
    def is_data(self) -> bool:
        """Whether it holds rows."""
        return self.file.content is FileContent.DATA


class SnapshotChange(msgspec.Struct, frozen=True):
    """Files that were added and removed."""

    source: Snapshot
    """The snapshot, or the last of several."""
    operation: SnapshotOperation
    added: tuple[ChangedFile, ...] = ()
    removed: tuple[ChangedFile, ...] = ()
    replaced: frozenset[tuple[Any, ...]] = frozenset()
    """The partitions (see `partition_key`) whose rows were all replaced."""

    @property
    def is_nothing(self) -> bool:
        """Whether only manifests were rewritten."""
        return not self.added and not self.removed and self.operation is SnapshotOperation.REPLACE

    @property
    def added_data(self) -> tuple[DataFile, ...]:
        """The added data files."""
        return tuple(f.file for f in self.added if f.is_data)

    @property
    def removed_data(self) -> tuple[DataFile, ...]:
        """The removed data files."""
        return tuple(f.file for f in self.removed if f.is_data)

    @property
    def added_deletes(self) -> tuple[ChangedFile, ...]:
        """The added delete files."""
        return tuple(f for f in self.added if not f.is_data)

    @property
    def removed_deletes(self) -> tuple[ChangedFile, ...]:
        """The removed delete files."""
        return tuple(f for f in self.removed if not f.is_data)


def load_change(io: FileIO, base: TableMetadata, snapshot: Snapshot) -> SnapshotChange:
    """What a snapshot itself did, from the manifests that it wrote."""
    entries = [
        entry
        for manifest in load_manifest_list(io, snapshot)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        for entry in load_entries(io, manifest, base)
        if entry.snapshot_id == snapshot.snapshot_id
    ]
    added = (e for e in entries if e.status is EntryStatus.ADDED)
    removed = (e for e in entries if e.status is EntryStatus.DELETED)
    data = (e.data_file for e in entries if e.data_file.content is FileContent.DATA)
    return SnapshotChange(
        snapshot,
        _operation(snapshot),
        tuple(_changed(e, pinned=e.sequence_number != snapshot.sequence_number) for e in added),
        tuple(_changed(e) for e in removed),
        frozenset(partition_key(f) for f in data) if replaces_partitions(snapshot) else frozenset(),
    )


def replaces_partitions(snapshot: Snapshot) -> bool:
    """Whether all rows of a partition were replaced, by this snapshot or one that it replays."""
    return "true" in (snapshot.summary.get(key, "").lower() for key in (REPLACED, REPLACED_AMONG_OTHERS))


def load_difference(io: FileIO, base: TableMetadata, before: Snapshot | None, after: Snapshot) -> SnapshotChange:
    """How two snapshots differ, as one change; sequence numbers up to the first's count as assigned explicitly."""
    old, new = differing_entries(io, base, before, after)
    since = 0 if before is None else before.sequence_number
    # format version 1 has no sequence numbers: a low one says nothing there a file that was removed and added again has
    # another number: deletes that were about it are no longer
    first, last = ({(k, e.sequence_number): e for k, e in entries.items()} for entries in (old, new))
    new_entries = (e for k, e in last.items() if k not in first)
    added = tuple(_changed(e, pinned=0 < since >= (e.sequence_number or 0)) for e in new_entries)
    removed = tuple(_changed(e) for k, e in first.items() if k not in last)
    adds_data, adds_deletes = (any(f.is_data is kind for f in added) for kind in (True, False))
    if not removed and not adds_deletes:
        operation = SnapshotOperation.APPEND
    else:
        operation = SnapshotOperation.OVERWRITE if adds_data else SnapshotOperation.DELETE
    return SnapshotChange(after, operation, added, removed)


def differing_entries(
    io: FileIO, base: TableMetadata, before: Snapshot | None, after: Snapshot | None
) -> tuple[dict[FileKey, ManifestEntry], dict[FileKey, ManifestEntry]]:
    """The live entries of two snapshots, without those in manifests that both have."""
    lists = [load_manifest_list(io, s) if s else [] for s in (before, after)]
    old, new = ({m.manifest_path for m in manifests} for manifests in lists)
    return (
        _by_key(live_entries(io, (m for m in lists[0] if m.manifest_path not in new), base)),
        _by_key(live_entries(io, (m for m in lists[1] if m.manifest_path not in old), base)),
    )


def _by_key(entries: Iterable[ManifestEntry]) -> dict[FileKey, ManifestEntry]:
    return {file_key(e.data_file): e for e in entries}


def _changed(entry: ManifestEntry, *, pinned: bool = False) -> ChangedFile:
    return ChangedFile(entry.data_file, entry.sequence_number or 0, pinned)


def _operation(snapshot: Snapshot) -> SnapshotOperation:
    """Its operation; an unknown one counts as the most general, overwrite."""
    known: Iterator[SnapshotOperation] = (o for o in SnapshotOperation if o == snapshot.operation)
    return next(known, SnapshotOperation.OVERWRITE)
