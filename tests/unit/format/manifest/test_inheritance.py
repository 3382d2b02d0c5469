"""Sequence numbers left out, assigned and filled in."""

import msgspec
import polars as pl
import pytest

from bergline.errors import FormatError
from bergline.format.manifest.avro import render_manifest
from bergline.format.manifest.columns import read_manifest_columns
from bergline.format.manifest.inheritance import (
    added_entry,
    assign_numbers,
    assign_row_ids,
    deleted_entry,
    existing_entry,
    inherit,
    inherit_columns,
)
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.partition.spec import UNPARTITIONED, parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import BINARY, INT, LONG, IcebergType, NestedField

FILE = DataFile("memory:/f", "PARQUET", (), 1, 1)
RESOLVED = ManifestEntry(EntryStatus.ADDED, FILE, 7, 3, 3)


def manifest(number: int | None = 5, minimum: int | None = None, snapshot_id: int = 9) -> ManifestFile:
    return ManifestFile(
        "memory:/m",
        1,
        2,
        ManifestContent.DATA,
        snapshot_id,
        sequence_number=number,
        min_sequence_number=minimum,
    )


def test_added_entry_is_written_without_numbers() -> None:
    assert added_entry(FILE) == ManifestEntry(EntryStatus.ADDED, FILE, None, None, None)


def test_added_entry_takes_everything_from_the_list() -> None:
    (entry,) = inherit([added_entry(FILE)], manifest())
    assert (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number) == (9, 5, 5)
    assert entry.data_file.spec_id == 2


def test_explicit_numbers_stay() -> None:
    (entry,) = inherit([ManifestEntry(EntryStatus.ADDED, FILE, 4, 2, None)], manifest())
    assert (entry.snapshot_id, entry.sequence_number, entry.file_sequence_number) == (4, 2, 5)


@pytest.mark.parametrize("status", [EntryStatus.EXISTING, EntryStatus.DELETED])
def test_carried_forward_entry_may_not_inherit(status: EntryStatus) -> None:
    with pytest.raises(FormatError, match="static sequence numbers on the carried-forward entry of memory:/f"):
        list(inherit([ManifestEntry(status, FILE, 4, None, None)], manifest()))


@pytest.mark.parametrize("status", list(EntryStatus))
def test_list_number_of_zero_means_zero_for_all(status: EntryStatus) -> None:
    (entry,) = inherit([ManifestEntry(status, FILE, 4, None, None)], manifest(0))
    assert (entry.sequence_number, entry.file_sequence_number) == (0, 0)


def test_manifest_without_number_cannot_be_inherited_from() -> None:
    with pytest.raises(FormatError, match="found none for memory:/m"):
        list(inherit([added_entry(FILE)], manifest(None)))


def test_existing_entry_keeps_its_numbers() -> None:
    assert existing_entry(RESOLVED) == ManifestEntry(EntryStatus.EXISTING, FILE, 7, 3, 3)


def test_deleted_entry_names_the_snapshot_that_removes() -> None:
    assert deleted_entry(RESOLVED, 11) == ManifestEntry(EntryStatus.DELETED, FILE, 11, 3, 3)


@pytest.mark.parametrize("missing", ["snapshot_id", "sequence_number", "file_sequence_number"])
def test_unresolved_entry_cannot_be_carried_forward(missing: str) -> None:
    entry = msgspec.structs.replace(RESOLVED, **{missing: None})
    with pytest.raises(FormatError, match="resolved numbers"):
        existing_entry(entry)
    with pytest.raises(FormatError, match="resolved numbers"):
        deleted_entry(entry, 11)


def test_new_manifests_get_the_number_of_the_commit_and_old_ones_keep_theirs() -> None:
    old = manifest(2, 1, snapshot_id=3)
    assigned = assign_numbers([manifest(None), manifest(None, 3), old], 9, 6)
    assert [(m.sequence_number, m.min_sequence_number) for m in assigned] == [(6, 6), (6, 3), (2, 1)]


def test_unnumbered_manifest_of_another_snapshot_is_refused() -> None:
    with pytest.raises(FormatError, match="snapshot 3, found none for memory:/m while committing 9"):
        assign_numbers([manifest(None, snapshot_id=3)], 9, 6)


def counted(path: str, added: int, existing: int, first_row_id: int | None = None) -> ManifestFile:
    return ManifestFile(
        path,
        1,
        0,
        ManifestContent.DELETES if path == "D" else ManifestContent.DATA,
        9,
        5,
        5,
        added_rows_count=added,
        existing_rows_count=existing,
        first_row_id=first_row_id,
    )


def test_row_ids_go_to_manifests_without_them_in_order() -> None:
    manifests = [counted("A", 7, 7, 100), counted("B", 40, 10), counted("C", 0, 30), counted("D", 9, 9)]
    assigned, taken = assign_row_ids(manifests, 500)
    assert [m.first_row_id for m in assigned] == [100, 500, 550, None]
    assert taken == 80
    files = [
        msgspec.structs.replace(FILE, record_count=n, first_row_id=i) for n, i in [(10, 70), (15, None), (25, None)]
    ]
    statuses = [EntryStatus.EXISTING, EntryStatus.ADDED, EntryStatus.ADDED]
    entries = [ManifestEntry(s, f, 9, 5, 5) for s, f in zip(statuses, files, strict=True)]
    assert [e.data_file.first_row_id for e in inherit(entries, assigned[1])] == [70, 500, 515]


def test_row_id_that_a_writer_put_on_deletes_is_dropped() -> None:
    (assigned,), taken = assign_row_ids([counted("D", 9, 9, 7)], 500)
    assert (assigned.first_row_id, taken) == (None, 0)
    (entry,) = inherit([RESOLVED], counted("D", 9, 9, 7))
    assert entry.data_file.first_row_id is None


def test_manifest_without_row_counts_gets_no_row_ids() -> None:
    with pytest.raises(FormatError, match="expected row counts to assign row ids, found none for memory:/m"):
        assign_row_ids([manifest()], 0)


def frame(type_: IcebergType, value: object) -> pl.DataFrame:
    schema = Schema(fields=(NestedField(1, "c", False, type_),), schema_id=0)
    entries = [ManifestEntry(EntryStatus.ADDED, msgspec.structs.replace(FILE, partition=(value,)))]
    return read_manifest_columns(render_manifest(entries, schema, parse_partition_by(["c"], schema)), "m")


def test_columns_of_widened_partition_types_are_joined() -> None:
    joined = inherit_columns([frame(INT, 1), frame(LONG, 2**40)], [manifest(), manifest()])
    assert joined["1000"].to_list() == [1, 2**40]


def test_columns_of_partition_types_that_do_not_fit_are_refused() -> None:
    with pytest.raises(FormatError, match="partition values of one type in all manifests of a spec"):
        inherit_columns([frame(INT, 1), frame(BINARY, b"x")], [manifest(), manifest()])


def test_columns_with_row_ids_beyond_64_bits_are_refused() -> None:
    file = msgspec.structs.replace(FILE, record_count=2**62)
    schema = Schema(fields=(NestedField(1, "c", False, INT),), schema_id=0)
    entries = [ManifestEntry(EntryStatus.ADDED, file)] * 3
    row = msgspec.structs.replace(manifest(), first_row_id=0)
    columns = read_manifest_columns(render_manifest(entries, schema, UNPARTITIONED), "m")
    for act in (lambda: list(inherit(entries, row)), lambda: inherit_columns([columns], [row])):
        with pytest.raises(FormatError, match="row ids of 64 bits"):
            act()
