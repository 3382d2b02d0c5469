"""Sequence number inheritance: the one place where numbers are left out, assigned and filled in.

New entries are written without numbers; the manifest list gives its number to the manifest that holds them; readers
fill it in. So a commit that lost the race rewrites one manifest list, never a manifest. Entries carried forward are
static: their numbers stand in the manifest and never change again.
"""

from collections.abc import Iterable, Iterator

import msgspec

from bergline.errors import FormatError
from bergline.format.manifest import DataFile, EntryStatus, ManifestEntry, ManifestFile


def added_entry(file: DataFile) -> ManifestEntry:
    """A new file's entry: no snapshot id and no numbers, so that every attempt can use it."""
    return ManifestEntry(EntryStatus.ADDED, file)


def existing_entry(entry: ManifestEntry) -> ManifestEntry:
    """A resolved entry carried forward into a rewritten manifest, its numbers static from now on."""
    return msgspec.structs.replace(_check_resolved(entry), status=EntryStatus.EXISTING)


def deleted_entry(entry: ManifestEntry, snapshot_id: int) -> ManifestEntry:
    """A resolved entry's tombstone, written by the snapshot that removes the file."""
    return msgspec.structs.replace(_check_resolved(entry), status=EntryStatus.DELETED, snapshot_id=snapshot_id)


def assign_numbers(manifests: Iterable[ManifestFile], snapshot_id: int, sequence_number: int) -> list[ManifestFile]:
    """The rows of a manifest list: new manifests get the commit's number, carried-forward ones keep theirs."""
    return [_assigned(m, snapshot_id, sequence_number) for m in manifests]


def inherit(entries: Iterable[ManifestEntry], manifest: ManifestFile) -> Iterator[ManifestEntry]:
    """Entries as readers see them: what is null comes from the manifest's row in the manifest list."""
    if manifest.sequence_number is None:
        raise FormatError(f"expected a sequence number for the manifest, found none for {manifest.manifest_path}")
    for entry in entries:
        yield _inherited(entry, manifest, manifest.sequence_number)


def _inherited(entry: ManifestEntry, manifest: ManifestFile, number: int) -> ManifestEntry:
    # spec: sequence-number-inheritance. A list number of 0 is a v1 manifest, where every entry has 0.
    may_inherit = entry.status is EntryStatus.ADDED or number == 0
    if not may_inherit and (entry.sequence_number is None or entry.file_sequence_number is None):
        raise FormatError(
            f"expected static sequence numbers on the carried-forward entry of {entry.data_file.file_path}, "
            f"found null in {manifest.manifest_path}"
        )
    return ManifestEntry(
        status=entry.status,
        data_file=entry.data_file
        if entry.data_file.spec_id == manifest.partition_spec_id
        else msgspec.structs.replace(entry.data_file, spec_id=manifest.partition_spec_id),
        snapshot_id=manifest.added_snapshot_id if entry.snapshot_id is None else entry.snapshot_id,
        sequence_number=number if entry.sequence_number is None else entry.sequence_number,
        file_sequence_number=number if entry.file_sequence_number is None else entry.file_sequence_number,
    )


def _assigned(manifest: ManifestFile, snapshot_id: int, sequence_number: int) -> ManifestFile:
    if manifest.sequence_number is not None:
        return manifest
    if manifest.added_snapshot_id != snapshot_id:
        raise FormatError(
            f"expected a number on the manifest of snapshot {manifest.added_snapshot_id}, "
            f"found none for {manifest.manifest_path} while committing {snapshot_id}"
        )
    # a manifest with static older entries keeps their smallest number as its minimum
    minimum = sequence_number if manifest.min_sequence_number is None else manifest.min_sequence_number
    return msgspec.structs.replace(
        manifest, sequence_number=sequence_number, min_sequence_number=min(minimum, sequence_number)
    )


def _check_resolved(entry: ManifestEntry) -> ManifestEntry:
    if entry.snapshot_id is None or entry.sequence_number is None or entry.file_sequence_number is None:
        raise FormatError(
            f"expected resolved numbers on a carried-forward entry, found null for {entry.data_file.file_path}"
        )
    return entry
