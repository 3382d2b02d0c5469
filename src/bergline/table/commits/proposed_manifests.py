"""The manifests that a writer made for its snapshot, with what they really hold."""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

import msgspec

from bergline.catalog.table_locations import is_outside
from bergline.errors import (
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnsupportedError,
)
from bergline.format.encoding.wire import decode_json
from bergline.format.manifest.avro import parse_manifest, parse_manifest_list, render_manifest
from bergline.format.manifest.entry_numbers import EntryNumbers, read_entry_numbers
from bergline.format.manifest.inheritance import added_entry
from bergline.format.manifest.manifest import EntryStatus, ManifestContent, ManifestFile
from bergline.format.manifest.summary import describe_manifest
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.scan.manifests import ManifestFiles

_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_ENTRIES: Final = 100_000
_MOST_MANIFESTS: Final = 100_000
"""What a list may inflate to: a file of kilobytes can hold millions."""
UNREADABLE: Final = (FormatError, InvalidInputError, NotFoundError, RefusedError, StorageError, UnsupportedError)
"""Errors that say that a file of a proposed snapshot is unreadable, as opposed to a storage that does not respond."""


class UnfitError(Exception):
    """Why a snapshot cannot be rebased: its writer has to compute it again."""


class SnapshotFiles(ManifestFiles, Protocol):
    """Where the files of proposed snapshots are read and written: a FileIO, or the files of a group of commits."""

    def create(self, location: str, data: bytes) -> None:
        """As `FileIO.create`; the file may be written later, if somebody waits for it."""
        ...

    def delete(self, locations: Iterable[str]) -> list[str]:
        """As `FileIO.delete`; files that are still being written are deleted after that."""
        ...


class ManifestFacts(msgspec.Struct, frozen=True):
    """Totals of the entries of a manifest, and how many of the entries would prevent a rebase."""

    added_files: int
    existing_files: int
    deleted_files: int
    added_rows: int
    existing_rows: int
    deleted_rows: int
    added_bytes: int
    added_deletes: int
    """Delete files that are new."""
    numbered: int
    """New files with a sequence number of their own."""
    unnumbered: int
    """Older files without one."""
    late: int
    """Files with a number that the snapshot was to have."""
    row_ids: int
    """New files with row ids."""
    elsewhere: int
    """New files of another snapshot."""


class ProposedManifest(msgspec.Struct, frozen=True):
    """A manifest of a snapshot that is not committed yet."""

    manifest: ManifestFile
    data: bytes
    spec: PartitionSpec
    holds: ManifestFacts

    @property
    def unnumbered(self) -> ManifestFile:
        """The manifest without the sequence number and row ids that the writer had assigned."""
        listed = self.manifest
        minimum = None if listed.min_sequence_number == listed.sequence_number else listed.min_sequence_number
        return msgspec.structs.replace(listed, sequence_number=None, min_sequence_number=minimum, first_row_id=None)

    def check_numbers(self, snapshot: Snapshot) -> None:
        """UnfitError unless its entries stay correct when the snapshot gets another sequence number."""
        path = self.manifest.manifest_path
        if self.holds.late or self.holds.unnumbered:
            raise UnfitError(f"numbers in {path} depend on its own")
        if self.holds.row_ids:
            raise UnfitError(f"row ids are in {path} already")
        if self.holds.elsewhere:
            raise UnfitError(f"files in {path} were added by another snapshot than {snapshot.snapshot_id}")

    def check_append(self, snapshot: Snapshot) -> None:
        """UnfitError if it does anything else than add data files and carry others forward."""
        self.check_numbers(snapshot)
        path = self.manifest.manifest_path
        if self.holds.deleted_files or self.holds.added_deletes:
            raise UnfitError(f"{path} removes rows or files")
        if self.holds.numbered:
            raise UnfitError(f"new files have a sequence number of their own in {path}")


def read_manifest_list(files: SnapshotFiles, metadata: TableMetadata, snapshot: Snapshot) -> list[ManifestFile]:
    """The manifest list of a new snapshot, unchecked; UnfitError if it must not or cannot be read."""
    location = snapshot.manifest_list
    if location is None or snapshot.key_id is not None:
        raise UnfitError("it has no manifest list that can be read")
    if is_outside(metadata, [location]):
        raise UnfitError(f"{location} is outside of the table's directories")
    return parse_manifest_list(files.read(location, _MOST_BYTES), location, _MOST_MANIFESTS)


def read_proposed_list(files: SnapshotFiles, metadata: TableMetadata, snapshot: Snapshot) -> list[ManifestFile]:
    """The manifests of a new snapshot, whose numbers agree with it; UnfitError if it cannot be put on another base."""
    listed = read_manifest_list(files, metadata, snapshot)
    if len({m.manifest_path for m in listed}) != len(listed):
        raise UnfitError("a manifest is in its list twice")
    own = [m for m in listed if m.added_snapshot_id == snapshot.snapshot_id]
    if any(m.sequence_number != snapshot.sequence_number for m in own):
        raise UnfitError("one of its manifests has another sequence number")
    size = sum(max(m.manifest_length, 0) for m in own)  # one below zero must not make room for another
    entries = sum(max(c or 0, 0) for m in own for c in _files(m))
    if size > _MOST_BYTES or entries > _MOST_ENTRIES:
        raise UnfitError(f"{entries:,} files in {size:,} bytes of manifests are too many to be read in a commit")
    return listed


def is_stray(metadata: TableMetadata, manifest: ManifestFile, snapshot: Snapshot) -> bool:
    """Whether a manifest is outside of the table's directories; the directory of its list was checked before."""
    directory, _, name = manifest.manifest_path.rpartition("/")
    beside = name not in ("", ".", "..") and directory == (snapshot.manifest_list or "").rpartition("/")[0]
    return not beside and is_outside(metadata, [manifest.manifest_path])


def read_proposed(
    files: SnapshotFiles, metadata: TableMetadata, manifest: ManifestFile, snapshot: Snapshot
) -> ProposedManifest:
    """Read a manifest of a new snapshot; UnfitError where it is not what the manifest list says."""
    path = manifest.manifest_path
    if is_stray(metadata, manifest, snapshot):
        raise UnfitError(f"{path} is outside of the table's directories")
    if manifest.key_metadata is not None:
        raise UnfitError(f"{path} is encrypted")
    data = files.read(path, manifest.manifest_length)
    header, entries = read_entry_numbers(data, path, _MOST_ENTRIES)
    facts = _facts(entries, snapshot)
    counts = facts.added_files, facts.existing_files, facts.deleted_files
    rows = facts.added_rows, facts.existing_rows, facts.deleted_rows
    if (len(data), counts, rows) != (manifest.manifest_length, _files(manifest), _rows(manifest)):
        raise UnfitError(f"{path} is not what the manifest list says")
    return ProposedManifest(manifest, data, _spec(metadata, manifest, header), facts)


def write_added(
    files: SnapshotFiles, metadata: TableMetadata, proposed: ProposedManifest, location: str, snapshot_id: int
) -> ManifestFile:
    """Write a new manifest with only the files that a manifest adds."""
    spec, path = proposed.spec, proposed.manifest.manifest_path
    schema = metadata.schema_for(spec)
    stored = parse_manifest(proposed.data, spec, schema, path)
    entries = [added_entry(e.data_file) for e in stored if e.status is EntryStatus.ADDED]
    data = render_manifest(entries, schema, spec, format_version=metadata.format_version)
    files.create(location, data)
    return describe_manifest(
        location,
        len(data),
        entries,
        spec=spec,
        schema=schema,
        content=ManifestContent.DATA,
        snapshot_id=snapshot_id,
    )


def _files(manifest: ManifestFile) -> tuple[int | None, int | None, int | None]:
    return manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count


def _rows(manifest: ManifestFile) -> tuple[int | None, int | None, int | None]:
    return manifest.added_rows_count, manifest.existing_rows_count, manifest.deleted_rows_count


def _facts(entries: Iterable[EntryNumbers], snapshot: Snapshot) -> ManifestFacts:
    files, rows = [0, 0, 0], [0, 0, 0]
    added_bytes = added_deletes = numbered = unnumbered = late = row_ids = elsewhere = 0
    for entry in entries:
        files[entry.status] += 1
        rows[entry.status] += entry.record_count
        own, of_file = entry.sequence_number, entry.file_sequence_number
        late += max(own or 0, of_file or 0) >= snapshot.sequence_number
        if entry.status != EntryStatus.ADDED:
            unnumbered += own is None or of_file is None
            continue
        late += of_file is not None
        added_bytes += entry.file_size_in_bytes
        added_deletes += bool(entry.content)
        numbered += own is not None
        row_ids += entry.first_row_id is not None
        elsewhere += entry.snapshot_id not in (None, snapshot.snapshot_id)
    return ManifestFacts(
        added_files=files[EntryStatus.ADDED],
        existing_files=files[EntryStatus.EXISTING],
        deleted_files=files[EntryStatus.DELETED],
        added_rows=rows[EntryStatus.ADDED],
        existing_rows=rows[EntryStatus.EXISTING],
        deleted_rows=rows[EntryStatus.DELETED],
        added_bytes=added_bytes,
        added_deletes=added_deletes,
        numbered=numbered,
        unnumbered=unnumbered,
        late=late,
        row_ids=row_ids,
        elsewhere=elsewhere,
    )


def _spec(metadata: TableMetadata, manifest: ManifestFile, header: Mapping[str, bytes]) -> PartitionSpec:
    """The partition spec of a manifest; UnfitError if the table has another one of that id, or none."""
    spec = metadata.specs_by_id.get(manifest.partition_spec_id)
    fields = decode_json(header.get("partition-spec", b"[]"), tuple[PartitionField, ...], manifest.manifest_path)
    if spec is None or fields != spec.fields:
        raise UnfitError(f"partition spec {manifest.partition_spec_id} of {manifest.manifest_path} is gone")
    return spec
