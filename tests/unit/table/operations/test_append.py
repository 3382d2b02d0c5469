"""Appends: entries without numbers, numbered by the list, resolved at read time."""

import io
from itertools import accumulate

import fastavro
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, RefusedError
from bergline.format.manifest.manifest import DataFile, EntryStatus
from bergline.format.partition.transforms import Bucket
from bergline.format.types.types import LONG
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.operations.append import Append
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.long


def entries_as_written(table: Table, location: str) -> list[dict[str, object]]:
    return list(fastavro.reader(io.BytesIO(table.io.read(location))))


def test_added_entries_hold_no_numbers_and_the_list_does(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    snapshot = orders.current_snapshot
    assert snapshot is not None
    manifests = load_manifest_list(orders.io, snapshot)
    assert [m.sequence_number for m in manifests] == [2, 1]
    for manifest in manifests:
        (raw,) = entries_as_written(orders, manifest.manifest_path)
        assert raw["status"] == EntryStatus.ADDED
        assert raw["snapshot_id"] is raw["sequence_number"] is raw["file_sequence_number"] is None
        (entry,) = load_entries(orders.io, manifest, orders.metadata)
        assert entry.sequence_number == entry.file_sequence_number == manifest.sequence_number
        assert entry.snapshot_id == manifest.added_snapshot_id


def test_manifest_stands_in_every_list_with_one_number(orders: Table) -> None:
    for number in range(4):
        orders.append(order_rows(number))
    numbers: dict[str, set[int | None]] = {}
    for snapshot in orders.metadata.snapshots:
        for manifest in load_manifest_list(orders.io, snapshot):
            numbers.setdefault(manifest.manifest_path, set()).add(manifest.sequence_number)
    assert sorted(map(sorted, numbers.values())) == [[1], [2], [3], [4]]


def test_summary_counts_and_totals_follow_the_parent(orders: Table) -> None:
    orders.append(order_rows(1, 2)).append(order_rows(3))
    snapshot = orders.current_snapshot
    assert snapshot is not None
    expected = {"operation": "append", "added-data-files": "1", "added-records": "1", "total-records": "3"}
    assert expected.items() <= snapshot.summary.items()
    assert snapshot.summary["total-data-files"] == "2"
    assert snapshot.summary["manifests-created"] == "1"
    assert snapshot.summary["manifests-kept"] == "1"


def test_first_write_to_a_new_branch_starts_at_main(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev")
    head = orders.metadata.head("dev")
    assert head is not None
    assert head.parent_snapshot_id == orders.metadata.refs["main"].snapshot_id
    assert head.summary["total-records"] == "2"
    assert ids(orders.scan(ref="dev").to_arrow()) == [1, 2]
    assert ids(orders.scan().to_arrow()) == [1]


def test_retention_survives_a_write(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev", min_snapshots_to_keep=3, max_snapshot_age_ms=7, max_ref_age_ms=9)
    orders.append(order_rows(2), branch="dev")
    ref = orders.refs["dev"]
    assert (ref.min_snapshots_to_keep, ref.max_snapshot_age_ms, ref.max_ref_age_ms) == (3, 7, 9)


def test_branch_commits_take_the_next_number_of_the_table(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="a").append(order_rows(3), branch="b")
    assert [s.sequence_number for s in orders.metadata.snapshots] == [1, 2, 3]
    assert len(orders.metadata.snapshot_log) == 1


def test_tag_refuses_writes_and_nothing_is_written(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    before = orders.io.list(orders.location)
    with pytest.raises(RefusedError, match="cannot write to `v1`: it is a tag, and tags do not move"):
        orders.append(order_rows(2), branch="v1")
    assert orders.io.list(orders.location) == before


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (pa.table({"id": ["x"]}), "expected `long`, found `string` in column `id`"),
        (pa.table({"amount": [1.0]}), "expected the required column `id`"),
        (pa.table({"id": [1], "colour": ["red"]}), "found `colour`"),
        (pa.table({"id": pa.array([1, None], pa.int64())}), "required column `id`, found 1 null$"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_nothing_is_written(orders: Table, rows: pa.Table, message: str) -> None:
    before = orders.io.list(orders.location)
    with pytest.raises(InvalidInputError, match=message):
        orders.append(rows)
    assert orders.io.list(orders.location) == before
    assert orders.refresh().current_snapshot is None


def test_append_without_rows_still_is_a_snapshot(orders: Table) -> None:
    orders.append(order_rows())
    assert orders.current_snapshot is not None
    assert orders.scan().to_arrow().num_rows == 0


def test_partitioned_append_writes_a_file_per_partition(lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region", "bucket(2, id)"])
    table.append(pa.concat_tables([order_rows(1, 2, 3, 4), order_rows(5, region="us/x y")]))
    files = [planned.file for planned in table.scan().plan().files]
    wanted = {("us/x y" if i == 5 else "eu", Bucket(2).apply(LONG, i)) for i in range(1, 6)}
    assert sorted(f.partition for f in files) == sorted(wanted)
    assert all("region=" in f.file_path for f in files)
    assert ids(table.scan().to_arrow()) == [1, 2, 3, 4, 5]
    assert len(table.scan("region = 'us/x y'").plan().files) == 1


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_manifests_begin_anew_at_the_target_size(lake: Lake, version: str) -> None:
    properties = {"format-version": version, "commit.manifest.target-size-bytes": "20000"}
    table = lake.create_table("db.many", ORDERS, properties=properties)
    files = [
        DataFile(f"memory:/{n}/{n * 7919 % 10_007}.parquet", "PARQUET", (), n % 3, n, value_counts={1: n, 2: n * 31})
        for n in range(8000)
    ]
    table.commit(Append(table.io, files, discard_on_failure=True))
    assert table.current_snapshot is not None
    manifests = load_manifest_list(table.io, table.current_snapshot)
    assert len(manifests) > 3
    assert all(20_000 <= m.manifest_length < 60_000 for m in manifests[:-1])
    assert sum(m.added_files_count or 0 for m in manifests) == len(files)
    entries = [e for m in manifests for e in load_entries(table.io, m, table.metadata)]
    assert [e.data_file.file_path for e in entries] == [f.file_path for f in files]
    if version == "3":
        starts = [0, *accumulate(f.record_count for f in files)]
        assert [e.data_file.first_row_id for e in entries] == starts[:-1]
        assert table.metadata.next_row_id == starts[-1]
