"""Counts of partitions: a Parquet file as the specification lays it out."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.metadata.table_metadata import PartitionStatisticsFile
from support.fixtures.rows import ORDERS, order_rows


def counts(table: Table, file: PartitionStatisticsFile | None) -> list[dict[str, Any]]:
    assert file is not None
    assert file in table.metadata.partition_statistics
    with table.io.open_input(file.statistics_path) as stream:
        found = pq.read_table(stream)
    ids = [int(found.schema.field(n).metadata[b"PARQUET:field_id"]) for n in range(found.num_columns)]
    assert ids == list(range(1, found.num_columns + 1))
    rows: list[dict[str, Any]] = found.to_pylist()
    return rows


@pytest.fixture
def regions(lake: Lake) -> Table:
    return lake.create_table("db.regions", ORDERS, partition_by=["region"], properties={"format-version": "3"})


def test_rows_and_files_are_counted_by_partition_nulls_first(regions: Table) -> None:
    regions.append(order_rows(1, 2, region="us")).append(order_rows(3, 4, 5, region="eu"))
    regions.append(order_rows(6).set_column(2, ORDERS.field(2), pa.nulls(1, pa.string())))
    regions.set_properties({"write.delete.mode": "merge-on-read"}).delete("id = 3")
    found = counts(regions, regions.compute_partition_statistics())
    assert [row["partition"]["region"] for row in found] == [None, "eu", "us"]
    assert [row["data_record_count"] for row in found] == [1, 3, 2]
    assert [(row["dv_count"], row["position_delete_record_count"]) for row in found] == [(0, 0), (1, 1), (0, 0)]
    assert {row["position_delete_file_count"] for row in found} == {0}
    assert {row["total_record_count"] for row in found} == {None}


def test_removed_files_count_as_updates_of_their_partition(regions: Table) -> None:
    regions.append(order_rows(1, 2, 3, 4))
    region = regions.scan().to_arrow()["region"][0].as_py()
    regions.delete(f"region = '{region}'")
    found = {row["partition"]["region"]: row for row in counts(regions, regions.compute_partition_statistics())}
    assert found[region]["data_record_count"] == found[region]["data_file_count"] == 0
    assert found[region]["last_updated_snapshot_id"] == regions.metadata.current_snapshot_id


def test_partitions_of_each_spec_are_counted(regions: Table) -> None:
    regions.append(order_rows(1, 2, 3, 4))
    with regions.update_spec() as spec:
        spec.add_field("bucket(4, id)")
    regions.append(order_rows(5, 6, 7, 8))
    found = counts(regions, regions.compute_partition_statistics())
    assert {row["spec_id"] for row in found} == {0, 1}
    assert sum(row["data_record_count"] for row in found) == 8
    assert all(set(row["partition"]) == {"region", "id_bucket_4"} for row in found)


def test_known_file_is_returned_and_a_snapshot_may_be_named(regions: Table) -> None:
    regions.append(order_rows(1, 2, 3, 4)).append(order_rows(5, 6, 7, 8))
    file = regions.compute_partition_statistics()
    before = regions.metadata_location
    assert regions.compute_partition_statistics() == file
    assert regions.metadata_location == before
    first = regions.metadata.snapshots[0].snapshot_id
    older = regions.compute_partition_statistics(snapshot_id=first)
    assert sum(row["data_record_count"] for row in counts(regions, older)) == 4


def test_tables_without_partitions_and_unknown_snapshots_are_refused(orders: Table, regions: Table) -> None:
    assert regions.compute_partition_statistics() is None
    orders.append(order_rows(1, 1))
    with pytest.raises(InvalidInputError, match="expected a partitioned table"):
        orders.compute_partition_statistics()
    with pytest.raises(NotFoundError, match="no snapshot with id 5"):
        orders.compute_partition_statistics(snapshot_id=5)
