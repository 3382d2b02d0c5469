"""Overwrites: removed files become DELETED, kept ones EXISTING, all with their old numbers."""

import math
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.manifest.manifest import EntryStatus
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.operation import CommitStamp
from bergline.table.manifests.removal import RemovedFiles
from bergline.table.operations.append import Append
from bergline.table.operations.overwrite import Overwrite
from support.fixtures.add_deletes import equality_deletes
from support.fixtures.data_files import written_files
from support.fixtures.rows import ORDERS, ids, order_rows


def test_overwrite_replaces_all_rows_of_the_branch(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev")
    orders.overwrite(order_rows(9), branch="dev")
    assert ids(orders.scan(ref="dev").to_arrow()) == [9]
    assert ids(orders.scan().to_arrow()) == [1]


def test_entries_of_a_rewritten_manifest_keep_their_numbers(lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    table.append(order_rows(0)).append(order_rows(1, region="us")).append(order_rows(2))
    files = written_files(table, order_rows(7, region="us"))
    table.replace_partitions(files)
    snapshot = table.current_snapshot
    assert snapshot is not None
    found = [
        (e.status, e.data_file.partition, e.sequence_number, e.file_sequence_number)
        for m in load_manifest_list(table.io, snapshot)
        for e in load_entries(table.io, m, table.metadata)
    ]
    assert found == [
        (EntryStatus.ADDED, ("us",), 4, 4),
        (EntryStatus.ADDED, ("eu",), 3, 3),
        (EntryStatus.DELETED, ("us",), 2, 2),
        (EntryStatus.ADDED, ("eu",), 1, 1),
    ]
    assert ids(table.scan().to_arrow()) == [0, 2, 7]
    expected = {"operation": "overwrite", "replace-partitions": "true", "deleted-data-files": "1", "total-records": "3"}
    assert expected.items() <= snapshot.summary.items()


def test_kept_file_in_a_rewritten_manifest_is_static(lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    both = written_files(table, order_rows(1)) + written_files(table, order_rows(2, region="us"))
    table.append_files(both).append(order_rows(3))
    table.replace_partitions(written_files(table, order_rows(4, region="us")))
    snapshot = table.current_snapshot
    assert snapshot is not None
    rewritten = load_manifest_list(table.io, snapshot)[-1]
    assert (rewritten.sequence_number, rewritten.min_sequence_number) == (3, 1)
    existing, deleted = load_entries(table.io, rewritten, table.metadata)
    assert (existing.status, existing.sequence_number, existing.snapshot_id) == (
        EntryStatus.EXISTING,
        1,
        table.metadata.snapshots[0].snapshot_id,
    )
    assert (deleted.status, deleted.sequence_number, deleted.snapshot_id) == (
        EntryStatus.DELETED,
        1,
        snapshot.snapshot_id,
    )


def test_overwrite_with_nothing_is_a_delete(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows())
    assert orders.scan().to_arrow().num_rows == 0
    assert orders.current_snapshot is not None
    assert orders.current_snapshot.operation == "delete"


def test_replace_partitions_with_nothing_does_nothing(orders: Table) -> None:
    orders.append(order_rows(1))
    before = orders.metadata_location
    orders.replace_partitions([])
    assert orders.refresh().metadata_location == before


def test_removed_entries_are_dropped_by_the_next_overwrite(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2)).overwrite(order_rows(3))
    snapshot = orders.current_snapshot
    assert snapshot is not None
    manifests = load_manifest_list(orders.io, snapshot)
    statuses = [e.status for m in manifests for e in load_entries(orders.io, m, orders.metadata)]
    assert statuses == [EntryStatus.ADDED, EntryStatus.DELETED]


def test_tag_refuses_overwrites(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    with pytest.raises(RefusedError, match="tags do not move"):
        orders.overwrite(order_rows(2), branch="v1")


def test_replace_partitions_knows_the_partition_of_nan(lake: Lake) -> None:
    schema = pa.schema([("p", pa.float64()), ("id", pa.int64())])
    table = lake.create_table("db.nan", schema, partition_by=["p"])
    table.append(pa.table({"p": [math.nan, 1.0, None], "id": [1, 2, 3]}))
    table.replace_partitions(written_files(table, pa.table({"p": [math.nan], "id": [4]})))
    table.replace_partitions(written_files(table, pa.table({"p": pa.array([None], pa.float64()), "id": [5]})))
    assert ids(table.scan().to_arrow()) == [2, 4, 5]


def test_files_of_a_spec_whose_column_was_dropped_can_be_overwritten(lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"]).append(order_rows(1))
    theirs = pyiceberg.load_table("db.parts")
    with theirs.update_spec() as spec:
        spec.remove_field("region")
    with theirs.update_schema() as schema:
        schema.delete_column("region")
    table.refresh().append(pa.table({"id": [2]}))
    assert ids(table.scan().to_arrow()) == [1, 2]
    table.overwrite(pa.table({"id": [3]}))
    assert ids(table.scan().to_arrow()) == [3]
    assert ids(pyiceberg.load_table("db.parts").scan().to_arrow()) == [3]


def attempted(table: Table) -> Overwrite:
    """An overwrite that removes order 3 from among others, after one attempt that was never committed."""
    kept, removed = written_files(table, order_rows(1, 2)), written_files(table, order_rows(3))
    table.append_files([*kept, *removed])
    overwrite = Overwrite(table.io, [], [RemovedFiles(tuple(removed))])
    overwrite.attempt(table.metadata, CommitStamp(0, 0))
    return overwrite


def test_row_ids_that_a_commit_in_between_gave_are_kept(orders: Table) -> None:
    overwrite = attempted(orders)
    orders.set_properties({"format-version": "3"}).append(order_rows(4))
    columns = ["id", "_row_id"]
    before = {r["id"]: r["_row_id"] for r in orders.scan(columns=columns).to_arrow().to_pylist()}
    orders.commit(overwrite)
    after = {r["id"]: r["_row_id"] for r in orders.scan(columns=columns).to_arrow().to_pylist()}
    assert None not in before.values()
    assert after == {i: before[i] for i in (1, 2, 4)}


@pytest.mark.parametrize("upgraded", ["2", "3"])
def test_overwrite_tried_before_an_upgrade_from_v1_writes_numbers_after_it(lake: Lake, upgraded: str) -> None:
    table = lake.create_table("db.old", ORDERS, properties={"format-version": "1"})
    overwrite = attempted(table)
    table.set_properties({"format-version": upgraded}).commit(overwrite)
    assert ids(table.scan().to_arrow()) == [1, 2]
    assert table.current_snapshot is not None
    (manifest,) = load_manifest_list(table.io, table.current_snapshot)
    entries = load_entries(table.io, manifest, table.metadata)
    assert [(e.status, e.sequence_number) for e in entries] == [(EntryStatus.EXISTING, 0), (EntryStatus.DELETED, 0)]


@pytest.mark.parametrize("upgraded", ["2", "3"])
def test_append_tried_before_an_upgrade_from_v1_is_numbered_after_it(lake: Lake, upgraded: str) -> None:
    table = lake.create_table("db.old", ORDERS, properties={"format-version": "1"})
    append = Append(table.io, written_files(table, order_rows(1)))
    append.attempt(table.metadata, CommitStamp(0, 0))
    table.set_properties({"format-version": upgraded}).commit(append)
    assert ids(table.scan().to_arrow()) == [1]
    (planned,) = table.scan().plan().files
    assert (planned.sequence_number, planned.file.first_row_id) == (1, 0 if upgraded == "3" else None)


@pytest.mark.parametrize("call", ["append_files", "overwrite_files", "replace_partitions"])
def test_delete_files_are_no_data_files(orders: Table, call: str) -> None:
    orders.append(order_rows(1, 2))
    delete = equality_deletes(orders, pa.table({"id": [1]}), [1])
    with pytest.raises(InvalidInputError, match="expected a data file, found the delete file"):
        getattr(orders, call)([delete])
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2]
