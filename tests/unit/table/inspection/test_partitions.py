"""The metadata table partitions: files and deletes added up."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.format.manifest.manifest import DataFile
from support.fixtures.add_deletes import add_deletes, equality_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: one file each of `eu` and `us`."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def test_partitions_add_up_files_and_deletes(parts: Table) -> None:
    file = parts.append(order_rows(5, 6)).scan("id = 1").plan().files[0].file
    add_deletes(parts, position_deletes(parts, {file.file_path: [0]}))
    add_deletes(parts, equality_deletes(parts, pa.table({"id": pa.array([5, 6], pa.int64())}), [1], ("eu",)))
    eu, us = sorted(parts.inspect("partitions").to_pylist(), key=lambda row: row["partition"]["region"])
    assert (eu["record_count"], eu["file_count"], us["record_count"], us["file_count"]) == (4, 2, 1, 1)
    assert (eu["position_delete_record_count"], eu["position_delete_file_count"]) == (1, 1)
    assert (eu["equality_delete_record_count"], eu["equality_delete_file_count"]) == (2, 1)
    assert eu["last_updated_snapshot_id"] == parts.metadata.current_snapshot_id
    assert us["last_updated_snapshot_id"] == parts.metadata.snapshots[1].snapshot_id


def test_partitions_of_expired_snapshots_keep_their_spec(parts: Table) -> None:
    with parts.update_spec() as spec:
        spec.add_field("bucket(2, id)")
    parts.append(order_rows(7)).set_properties({"a": "b"})
    parts.append(order_rows(8)).expire(older_than=dt.datetime(2100, 1, 1, tzinfo=dt.UTC), retain_last=1)
    rows = parts.inspect("partitions").to_pylist()
    assert {(r["partition"]["id_bucket_2"] is None, r["spec_id"]) for r in rows} == {(True, 0), (False, 1)}
    assert sum(r["last_updated_at"] is None for r in rows) >= 2


def test_a_null_partition_is_not_a_missing_field(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    table.append(order_rows(1).set_column(2, "region", pa.array([None], pa.string())))
    with table.update_spec() as spec:
        spec.remove_field("region")
    table.append(order_rows(2))
    rows = table.inspect("partitions").to_pylist()
    assert [(r["partition"], r["file_count"]) for r in rows] == [({"region": None}, 1)] * 2


@pytest.mark.parametrize("value", [float("nan"), 0.0])
def test_floats_that_look_the_same_are_one_partition_and_zeros_are_two(value: float, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("x", pa.float64())]), partition_by=["x"])
    table.append_files([_file(table, f"{n}", (v,)) for n, v in enumerate([value, value, -value])])
    counts = sorted(r["file_count"] for r in table.inspect("partitions").to_pylist())
    assert counts == ([1, 2] if value == 0 else [3])


def test_the_partition_column_has_the_fields_of_all_specs(parts: Table) -> None:
    with parts.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("bucket(4, id)")
    parts.append(order_rows(9))
    partitions = [row["partition"] for row in parts.inspect("files").to_pylist()]
    assert all(list(p) == ["region", "id_bucket_4"] for p in partitions)
    assert sorted(p["region"] or "" for p in partitions) == ["", "eu", "us"]
    assert sorted(row["spec_id"] for row in parts.inspect("all_files").to_pylist()) == [0, 0, 1]


def _file(table: Table, name: str, partition: tuple[Any, ...], **fields: Any) -> DataFile:
    known = {"record_count": 1, "file_size_in_bytes": 100, "split_offsets": (4,)} | fields
    path = f"{table.location}/data/{name}.parquet"
    table.io.create(path, b"encrypted")  # nobody can count the rows
    return DataFile(file_path=path, file_format="PARQUET", partition=partition, key_metadata=b"key", **known)
