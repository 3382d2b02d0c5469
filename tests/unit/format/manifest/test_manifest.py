"""Entries and manifests as values."""

import pytest

from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestEntry, ManifestFile

FILE = DataFile("f", "PARQUET", (), 1, 1)


@pytest.mark.parametrize(
    ("status", "live"), [(EntryStatus.ADDED, True), (EntryStatus.EXISTING, True), (EntryStatus.DELETED, False)]
)
def test_deleted_entries_are_not_live(status: EntryStatus, live: bool) -> None:
    assert ManifestEntry(status, FILE).is_live is live


@pytest.mark.parametrize(
    ("added", "existing", "expected"),
    [(1, 0, True), (0, 1, True), (0, 0, False), (None, 0, True), (0, None, True), (None, None, True)],
)
def test_unknown_counts_may_be_live_files(added: int | None, existing: int | None, expected: bool) -> None:
    manifest = ManifestFile("m", 1, 0, ManifestContent.DATA, 5, added_files_count=added, existing_files_count=existing)
    assert manifest.has_live_files is expected
