"""The pointer and the metadata file: missing, damaged, or in contradiction with itself."""

from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import change_metadata, check, checked_finding, new_table, open_lake, path_of


def test_missing_metadata_file_is_found_with_the_newest_that_can_be_registered(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
        before = table.metadata.metadata_log[-1].metadata_file
    path_of(table.metadata_location).unlink()
    finding = checked_finding(tmp_path, "metadata-missing")
    assert path_of(before).name in finding.mend
    with open_lake(tmp_path) as lake:  # what it says does mend the table
        lake.drop_table("db.orders")
        lake.register_table("db.orders", before)
    assert check(tmp_path).findings == ()


@pytest.mark.parametrize("content", [b"", b"{", b'{"format-version": 2}', b"\x00" * 10])
def test_metadata_that_cannot_be_parsed_is_found(tmp_path: Path, content: bytes) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    path_of(table.metadata_location).write_bytes(content)
    assert "register" in checked_finding(tmp_path, "metadata-unreadable").mend


def test_metadata_of_a_later_version_is_a_warning(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_metadata(table, lambda document: document.update({"format-version": 9}))
    assert checked_finding(tmp_path, "metadata-unsupported").severity == "warning"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"current-snapshot-id": 1}, "`main` to be the current snapshot 1"),
        ({"last-sequence-number": 1}, "sequence numbers up to 1"),
        ({"current-schema-id": 7}, "current-schema-id"),
        ({"default-spec-id": 7}, "default-spec-id"),
        ({"default-sort-order-id": 7}, "default-sort-order-id"),
        ({"last-updated-ms": 1}, "times in order"),
    ],
)
def test_contradiction_is_found_and_the_rest_is_checked_too(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_metadata(table, lambda document: document.update(change))
    found = check(tmp_path)
    messages = [f.message for f in found.findings if f.code == "metadata-contradicts-itself"]
    assert any(message in text for text in messages)
    assert (found.snapshots, found.files) == (2, 4)


def test_retention_that_means_nothing_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_metadata(table, lambda document: document["refs"]["main"].update({"min-snapshots-to-keep": 0}))
    finding = checked_finding(tmp_path, "metadata-unreadable")
    assert "min-snapshots-to-keep above 0" in finding.message
    assert "register" in finding.mend
