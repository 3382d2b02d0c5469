"""Manifest lists and manifests: each kind of damage is found in a table that had none."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from bergline import Table
from bergline.format.manifest.manifest import EntryStatus, FileContent, ManifestContent
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.damaged_tables import (
    change_entries,
    change_files,
    change_first,
    change_list,
    change_metadata,
    check,
    checked_finding,
    head,
    manifests_of,
    new_table,
    open_lake,
    path_of,
    rows,
)


def location_of_list(table: Table) -> Path:
    return path_of(head(table).manifest_list or "")


def location_of_manifest(table: Table) -> Path:
    return path_of(manifests_of(head(table))[0].manifest_path)


@pytest.mark.parametrize(("place", "what"), [(location_of_list, "manifest-list"), (location_of_manifest, "manifest")])
def test_missing_or_unreadable_file_is_found(tmp_path: Path, place: Callable[[Table], Path], what: str) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    path = place(table)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert checked_finding(tmp_path, f"{what}-unreadable").refs == ("main",)
    path.unlink()
    finding = checked_finding(tmp_path, f"{what}-missing")
    assert str(table.metadata.snapshots[0].snapshot_id) in finding.mend  # main can be rolled back to it


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"sequence_number": 9}, "sequence-number-too-high"),
        ({"sequence_number": 1}, "sequence-number-too-high"),  # below its min-sequence-number
        ({"min_sequence_number": 3}, "sequence-number-too-high"),
        ({"manifest_length": 9}, "manifest-size"),
        ({"added_files_count": 1}, "manifest-counts"),
        ({"added_rows_count": 9}, "manifest-counts"),
        ({"content": ManifestContent.DELETES}, "manifest-content"),
        ({"partition_spec_id": 5}, "spec-unknown"),
    ],
)
def test_list_that_says_otherwise_is_found(tmp_path: Path, fields: dict[str, int], code: str) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_first(table, head(table), **fields)
    found = {finding.code: finding for finding in check(tmp_path).findings}
    assert found[code].refs == ("main",)


def test_manifest_with_other_numbers_in_another_list_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_list(
        table,
        head(table),
        lambda found: [found[0], msgspec.structs.replace(found[1], sequence_number=2, min_sequence_number=1)],
    )
    checked_finding(tmp_path, "manifest-lists-disagree")


def test_manifest_that_is_listed_twice_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_list(table, head(table), lambda found: [*found, found[0]])
    codes = {finding.code for finding in check(tmp_path).findings}
    assert {"manifest-listed-twice", "summary-totals"} <= codes


def test_totals_of_a_summary_are_compared(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    change_metadata(table, lambda document: document["snapshots"][1]["summary"].update({"total-records": "7"}))
    finding = checked_finding(tmp_path, "summary-totals")
    assert (finding.severity, "says total-records 7, its manifest list 6" in finding.message) == ("warning", True)


def test_carried_forward_entry_without_sequence_number_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    manifest = manifests_of(head(table))[0]
    change_entries(
        table, manifest, lambda entries: [msgspec.structs.replace(e, status=EntryStatus.EXISTING) for e in entries]
    )
    checked_finding(tmp_path, "sequence-number-missing")


@pytest.mark.parametrize(("number", "code"), [(9, "sequence-number-too-high"), (1, "sequence-number-too-low")])
def test_sequence_number_of_an_entry_out_of_range_is_found(tmp_path: Path, number: int, code: str) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    manifest = manifests_of(head(table))[0]
    change_entries(
        table,
        manifest,
        lambda entries: [
            msgspec.structs.replace(e, sequence_number=number, file_sequence_number=number) for e in entries
        ],
    )
    checked_finding(tmp_path, code)


def test_wrong_content_and_sort_order_of_entries_are_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
    manifest = manifests_of(head(table))[0]
    change_files(table, manifest, sort_order_id=8)
    checked_finding(tmp_path, "sort-order-unknown")
    change_files(table, manifest, content=FileContent.POSITION_DELETES)
    checked_finding(tmp_path, "manifest-content")


def test_equality_deletes_of_unknown_columns_are_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake)
        add_deletes(table, equality_deletes(table, rows(0).slice(0, 1).select(["id"]), [1], ("north",)))
    (manifest,) = [m for m in manifests_of(head(table)) if m.content is ManifestContent.DELETES]
    change_files(table, manifest, equality_ids=(77,))
    checked_finding(tmp_path, "equality-ids")


def test_data_manifest_without_row_ids_is_found(tmp_path: Path) -> None:
    with open_lake(tmp_path) as lake:
        table = new_table(lake, version=3)
    change_first(table, head(table), first_row_id=None)
    checked_finding(tmp_path, "row-ids-missing")
