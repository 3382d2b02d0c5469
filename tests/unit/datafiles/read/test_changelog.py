"""The rows of data files that snapshots deleted or added, by every kind of delete."""

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.table.scans.changelog_scan import ChangelogRange
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows


def last_changes(table: Table, row_filter: str = "true") -> list[tuple[str, int]]:
    """What the last snapshot did to which order."""
    snapshot = table.current_snapshot
    assert snapshot is not None
    scan = table.scan_changes(ChangelogRange(start_snapshot_id=snapshot.parent_snapshot_id)).where(row_filter)
    rows = scan.to_arrow()
    assert set(rows.column("_change_ordinal").to_pylist()) <= {0}
    assert set(rows.column("_commit_snapshot_id").to_pylist()) <= {snapshot.snapshot_id}
    return sorted(zip(rows.column("_change_type").to_pylist(), rows.column("id").to_pylist(), strict=True))


@pytest.fixture
def orders(lake: Lake) -> Table:
    """Orders 1 to 3 in one file with a row group each."""
    properties = {"format-version": "2", "write.parquet.row-group-size-bytes": "1"}
    return lake.create_table("db.one_file", ORDERS, properties=properties).append(order_rows(1, 2, 3))


def path_of(table: Table) -> str:
    (planned,) = table.scan().plan().files
    return planned.file.file_path


def test_position_deletes_give_exactly_the_rows_that_went(orders: Table) -> None:
    path = path_of(orders)
    add_deletes(orders, position_deletes(orders, {path: [0]}))
    assert last_changes(orders) == [("DELETE", 1)]
    add_deletes(orders, position_deletes(orders, {path: [0, 2]}))
    assert last_changes(orders) == [("DELETE", 3)]


def test_deletion_vectors_give_what_the_one_before_did_not_have(lake: Lake) -> None:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.vectors", ORDERS, properties=properties).append(order_rows(1, 2, 3))
    add_deletes(table, *deletion_vectors(table, {path_of(table): [0]}))
    assert last_changes(table) == [("DELETE", 1)]
    table.delete("id = 3")
    assert last_changes(table) == [("DELETE", 3)]


def test_equality_deletes_give_the_rows_that_were_still_there(orders: Table) -> None:
    path = path_of(orders)
    add_deletes(orders, position_deletes(orders, {path: [0]}))
    key = pa.table({"id": pa.array([1, 3], pa.int64())})
    add_deletes(orders, equality_deletes(orders, key, [1]))
    assert last_changes(orders) == [("DELETE", 3)]
    add_deletes(orders, equality_deletes(orders, key, [1]))
    assert last_changes(orders) == []


def test_rows_that_were_deleted_before_are_not_deleted_with_their_file(orders: Table) -> None:
    add_deletes(orders, position_deletes(orders, {path_of(orders): [0]}))
    orders.delete("id > 0")
    assert last_changes(orders) == [("DELETE", 2), ("DELETE", 3)]


def test_rows_come_back_when_a_delete_file_is_removed(orders: Table) -> None:
    delete = position_deletes(orders, {path_of(orders): [1]})
    add_deletes(orders, delete)
    orders.row_delta(remove=[delete], isolation="none")
    assert last_changes(orders) == [("INSERT", 2)]


def test_a_filter_is_on_the_rows(orders: Table) -> None:
    assert last_changes(orders, "id > 1 AND region = 'eu'") == [("INSERT", 2), ("INSERT", 3)]
    add_deletes(orders, position_deletes(orders, {path_of(orders): [0, 1]}))
    assert last_changes(orders, "id > 1") == [("DELETE", 2)]


def test_columns_that_were_added_since_have_their_defaults(lake: Lake) -> None:
    table = lake.create_table("db.wider", ORDERS, properties={"format-version": "3"}).append(order_rows(1))
    with table.update_schema() as schema:
        schema.add_column("note", "string", default="none")
    (row,) = table.scan_changes(ChangelogRange()).to_arrow().to_pylist()
    assert (row["note"], row["_change_type"]) == ("none", "INSERT")
