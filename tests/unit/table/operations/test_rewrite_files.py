"""Rewrite files: the same rows in other files, refused where somebody deleted some of them meanwhile."""

from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError, InvalidInputError, UnsupportedError
from bergline.format.manifest.manifest import DataFile, EntryStatus
from bergline.scan.manifests import load_entries, load_manifest_list
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.competing_writers import LosingTable
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long

VERSIONS = ["1", "2", "3"]


def new_table(lake: Lake, version: str = "2") -> Table:
    return lake.create_table("db.t", ORDERS, properties={"format-version": version})


def found(table: Table) -> list[int]:
    return ids(table.scan().to_arrow())


def number(table: Table) -> int:
    assert table.current_snapshot is not None
    return table.current_snapshot.sequence_number


def data_files(table: Table) -> list[DataFile]:
    return [p.file for p in table.scan().plan().files]


def rewrite(table: Table, new: list[DataFile], **options: Any) -> Table:
    return table.rewrite_files(add=new, remove=data_files(table), **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_two_files_become_one_and_the_rows_stay(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1)).append(order_rows(2))
    rewrite(table, written_files(table, order_rows(1, 2)), sequence_number=number(table))
    assert found(table) == [1, 2]
    snapshot = table.current_snapshot
    assert snapshot is not None
    expected = {"operation": "replace", "added-data-files": "1", "deleted-data-files": "2", "total-records": "2"}
    assert expected.items() <= snapshot.summary.items()
    entries = [e for m in load_manifest_list(table.io, snapshot) for e in load_entries(table.io, m, table.metadata)]
    (added,) = [e for e in entries if e.status is EntryStatus.ADDED]
    expected_numbers = (0, 0) if version == "1" else (2, 3)
    assert (added.sequence_number, added.file_sequence_number) == expected_numbers


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: {"add": [], "remove": []}, "expected files to replace, found none"),
        (lambda t: {"add": data_files(t), "remove": []}, "expected files to replace, found none"),
        (lambda t: {"add": data_files(t), "remove": [_delete(t)]}, "expected data files only in the place of others"),
        (lambda t: {"add": [_delete(t)], "remove": data_files(t)}, "expected delete files only in the place of others"),
        (lambda t: {"add": [_equality(t)], "remove": [_delete(t)]}, "would delete rows that came after them"),
        (lambda t: {"add": ["x"], "remove": data_files(t)}, "expected a list of files"),
        (lambda t: {"add": [], "remove": data_files(t), "sequence_number": "1"}, "expected a whole number"),
    ],
)
def test_what_cannot_be_the_same_rows_is_refused(lake: Lake, make: Any, message: str) -> None:
    table = new_table(lake).append(order_rows(1))
    before = table.metadata_location
    with pytest.raises(InvalidInputError, match=message):
        table.rewrite_files(**make(table))
    assert table.refresh().metadata_location == before


def _delete(table: Table) -> DataFile:
    return position_deletes(table, {data_files(table)[0].file_path: [0]})


def _equality(table: Table, order: int = 1) -> DataFile:
    return equality_deletes(table, pa.table({"id": [order]}), [1])


@pytest.mark.parametrize("version", VERSIONS)
def test_a_file_that_others_removed_is_a_conflict_that_names_them(lake: Lake, version: str) -> None:
    table = new_table(lake, version).append(order_rows(1)).append(order_rows(2))
    new = written_files(table, order_rows(1, 2))
    rival = lake.load_table("db.t").overwrite(order_rows(3))
    assert rival.current_snapshot is not None
    with pytest.raises(ConflictError, match=f"snapshot {rival.current_snapshot.snapshot_id} .*overwrite on `main`"):
        rewrite(table, new)
    assert found(table.refresh()) == [3]


@pytest.mark.parametrize("pinned", [True, False])
@pytest.mark.parametrize("version", ["2", "3"])
def test_rows_deleted_by_position_meanwhile_are_a_conflict(lake: Lake, version: str, pinned: bool) -> None:
    table = new_table(lake, version).append(order_rows(1, 2))
    new, start = written_files(table, order_rows(1, 2)), number(table)
    wanted = {data_files(table)[0].file_path: [0]}
    deletes = deletion_vectors(table, wanted) if version == "3" else (position_deletes(table, wanted),)
    add_deletes(lake.load_table("db.t"), *deletes)
    with pytest.raises(ConflictError, match=r"deleted rows of .*, which this one replaces"):
        rewrite(table, new, sequence_number=start if pinned else None)
    assert found(table.refresh()) == [2]


def test_rows_deleted_by_equality_meanwhile_stay_deleted_where_the_number_is_kept(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2))
    new, start = written_files(table, order_rows(1, 2)), number(table)
    add_deletes(lake.load_table("db.t"), _equality(table))
    with pytest.raises(ConflictError, match="which this one replaces"):
        rewrite(table, new)
    new = written_files(table, order_rows(1, 2))
    rewrite(table, new, sequence_number=start)
    assert found(table) == [2]


def test_appends_are_no_conflict(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1))
    new = written_files(table, order_rows(1))
    lake.load_table("db.t").append(order_rows(5))
    rewrite(table, new)
    assert found(table) == [1, 5]


def test_vectors_go_with_their_data_files(lake: Lake) -> None:
    table = new_table(lake, "3").append(order_rows(1, 2)).append(order_rows(3))
    path = next(f.file_path for f in data_files(table) if f.record_count == 2)
    add_deletes(table, *deletion_vectors(table, {path: [0]}))
    table.refresh()
    rewrite(table, written_files(table, order_rows(2, 3)))
    assert found(table) == [2, 3]
    assert table.current_snapshot is not None
    assert table.current_snapshot.summary["removed-dvs"] == "1"
    assert table.current_snapshot.summary["total-delete-files"] == "0"


def test_rewritten_deletes_keep_what_they_delete(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2, 3))
    old = [_equality(table, 1), _equality(table, 2)]
    for one in old:
        add_deletes(table, one)
    kept = number(table)
    table.append(order_rows(1))
    both = equality_deletes(table, pa.table({"id": [1, 2]}), [1])
    table.rewrite_files(add=[both], remove=old, sequence_number=kept)
    assert found(table) == [1, 3]


def test_each_lost_attempt_writes_one_list_and_no_manifest(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2))
    appends = [lambda i=i: lake.load_table("db.t").append(order_rows(i)) for i in range(10, 16)]
    losing = LosingTable(lake, "db.t", *appends)
    rewrite(losing.table, written_files(table, order_rows(1, 2)), sequence_number=number(table))
    assert losing.lists == [1] * 7
    assert losing.manifests == [3, 0, 0, 0, 0, 0, 0]  # the new file, and the two manifests without the old ones
    assert found(losing.table) == [1, 2, 10, 11, 12, 13, 14, 15]


def test_delete_files_that_others_removed_are_a_conflict_that_names_them(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2))
    old = _equality(table, 1)
    add_deletes(table, old)
    kept, new = number(table), _equality(table, 1)
    rival = lake.load_table("db.t").row_delta(remove=[old])
    assert rival.current_snapshot is not None
    with pytest.raises(ConflictError, match=f"snapshot {rival.current_snapshot.snapshot_id} .* came first and removed"):
        table.rewrite_files(add=[new], remove=[old], sequence_number=kept)


@pytest.mark.parametrize("rows", [(), (1,), (1, 2, 3)])
def test_other_numbers_of_rows_are_refused(lake: Lake, rows: tuple[int, ...]) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2))
    with pytest.raises(InvalidInputError, match=f"expected 2 rows, .* found {len(rows)} in"):
        rewrite(table, written_files(table, order_rows(*rows)) if rows else [])
    assert found(table.refresh()) == [1, 2]


def test_a_file_cannot_take_its_own_place(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1)).append(order_rows(2))
    with pytest.raises(InvalidInputError, match="expected to add a file or to remove it, found both"):
        rewrite(table, data_files(table)[:1])
    assert found(table.refresh()) == [1, 2]


@pytest.mark.parametrize("version", ["2", "3"])
@pytest.mark.parametrize(("rows", "fits"), [(1, False), (2, True), (3, True), (4, False)])
def test_deletes_by_position_leave_a_range_of_rows(lake: Lake, version: str, rows: int, fits: bool) -> None:
    table = new_table(lake, version).append(order_rows(1, 2)).append(order_rows(3))
    wanted = {next(f.file_path for f in data_files(table) if f.record_count == 2): [0]}
    add_deletes(table, *(deletion_vectors(table, wanted) if version == "3" else (position_deletes(table, wanted),)))
    new = written_files(table.refresh(), order_rows(*range(rows)))
    if fits:
        rewrite(table, new)
        assert len(found(table)) == rows
    else:
        with pytest.raises(InvalidInputError, match=f"expected (2 to )?3 rows, .* found {rows} in"):
            rewrite(table, new)


@pytest.mark.parametrize(("rows", "fits"), [(0, True), (1, True), (2, True), (3, False)])
def test_deletes_by_equality_leave_any_lower_number(lake: Lake, rows: int, fits: bool) -> None:
    table = new_table(lake).append(order_rows(1, 2))
    add_deletes(table, _equality(table))
    new = written_files(table.refresh(), order_rows(*range(rows))) if rows else []
    if fits:
        rewrite(table, new)
        assert len(found(table)) == rows
    else:
        with pytest.raises(InvalidInputError, match=r"expected 2 rows, .* found 3 in"):
            rewrite(table, new)


def test_deletes_of_younger_or_other_files_excuse_nothing(lake: Lake) -> None:
    table = new_table(lake).append(order_rows(1, 2))
    add_deletes(table, _equality(table))
    table.refresh().append(order_rows(3, 4))
    young = [p.file for p in table.scan("id = 3").plan().files]
    with pytest.raises(InvalidInputError, match=r"expected 2 rows, .* found 1 in"):
        table.rewrite_files(add=written_files(table, order_rows(3)), remove=young)


@pytest.mark.parametrize("number", [-5, 2, 1000])
def test_rewritten_rows_keep_a_number_that_they_can_have_had(lake: Lake, number: int) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2))
    with pytest.raises(InvalidInputError, match=f"found {number}"):
        table.rewrite_files(
            add=written_files(table, order_rows(1, 2)), remove=data_files(table), sequence_number=number
        )
    with table.transaction() as transaction, pytest.raises(UnsupportedError, match="in a transaction"):
        transaction.rewrite_files(
            add=written_files(table, order_rows(1, 2)), remove=data_files(table), sequence_number=1
        )


def test_rows_that_move_to_another_spec_must_not_have_been_deleted_by_equality_in_their_partition(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"]).append(order_rows(1, 2))
    old, before = data_files(table), number(table)
    delete = equality_deletes(table, pa.table({"id": [1]}), [1], ("eu",))
    with table.update_spec() as update:
        update.remove_field("region")
    with table.refresh().update_spec() as update:
        update.add_field("truncate(1000, id)", name="thousands")
    late = lake.load_table("db.t")
    added = written_files(late, order_rows(1, 2))
    table.refresh().row_delta(deletes=[delete], isolation="none")
    with pytest.raises(ConflictError, match="deleted rows of"):
        late.rewrite_files(add=added, remove=old, sequence_number=before)
    assert found(table.refresh()) == [2]
