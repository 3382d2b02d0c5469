"""Metadata tables: the official columns, and rows that agree with the metadata."""

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long


FILE_COLUMNS = (
    "content file_path file_format spec_id partition record_count file_size_in_bytes column_sizes value_counts "
    "null_value_counts nan_value_counts lower_bounds upper_bounds key_metadata split_offsets equality_ids "
    "sort_order_id first_row_id referenced_data_file content_offset content_size_in_bytes"
)


MANIFEST_COLUMNS = (
    "content path length partition_spec_id added_snapshot_id added_data_files_count existing_data_files_count "
    "deleted_data_files_count added_delete_files_count existing_delete_files_count deleted_delete_files_count "
    "partition_summaries"
)


COLUMNS = {
    "refs": "name type snapshot_id max_reference_age_in_ms min_snapshots_to_keep max_snapshot_age_in_ms",
    "snapshots": "committed_at snapshot_id parent_id operation manifest_list summary",
    "history": "made_current_at snapshot_id parent_id is_current_ancestor",
    "metadata_log_entries": "timestamp file latest_snapshot_id latest_schema_id latest_sequence_number",
    **dict.fromkeys(("files", "data_files", "delete_files"), f"{FILE_COLUMNS} readable_metrics"),
    **dict.fromkeys(("all_files", "all_data_files", "all_delete_files"), f"{FILE_COLUMNS} readable_metrics"),
    **dict.fromkeys(
        ("entries", "all_entries"),
        "status snapshot_id sequence_number file_sequence_number data_file readable_metrics",
    ),
    "manifests": MANIFEST_COLUMNS,
    "all_manifests": f"{MANIFEST_COLUMNS} reference_snapshot_id key_metadata",
    "partitions": (
        "partition spec_id record_count file_count total_data_file_size_in_bytes position_delete_record_count "
        "position_delete_file_count equality_delete_record_count equality_delete_file_count last_updated_at "
        "last_updated_snapshot_id"
    ),
    "position_deletes": "file_path pos row partition spec_id delete_file_path",
}


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: one file each of `eu` and `us`."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_columns_are_the_official_ones_and_the_same_without_rows(name: str, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    empty = table.inspect(name)
    assert empty.column_names == COLUMNS[name].split()
    assert empty.num_rows == (name == "metadata_log_entries")
    table.append(order_rows(1))
    assert table.inspect(name.upper()).schema == empty.schema


def test_unpartitioned_tables_have_no_partition_column(orders: Table) -> None:
    orders.append(order_rows(1))
    for name, columns in COLUMNS.items():
        expected = [c for c in columns.split() if c != "partition" and (name, c) != ("partitions", "spec_id")]
        assert orders.inspect(name).column_names == expected
    assert "partition" not in orders.inspect("entries").schema.field("data_file").type.names
    assert orders.inspect("partitions").num_rows == 1


def test_versions_choose_the_snapshot_and_never_the_columns(parts: Table) -> None:
    parts.refs.create_tag("v1")
    moment = dt.datetime.fromtimestamp(parts.metadata.last_updated_ms / 1000, dt.UTC)
    with parts.update_schema() as schema:
        schema.add_column("note", "string")
    parts.append(order_rows(4).append_column("note", pa.array(["x"])), branch="dev")
    parts.delete("region = 'us'")
    counts = {ref: parts.inspect("files", ref=ref).num_rows for ref in ("v1", "dev", "main")}
    assert counts == {"v1": 2, "dev": 3, "main": 1}
    first = parts.metadata.snapshots[0].snapshot_id
    assert [r["file_count"] for r in parts.inspect("partitions", snapshot_id=first).to_pylist()] == [1]
    assert parts.inspect("manifests", as_of=moment).num_rows == 2
    assert "note" in parts.inspect("files", ref="v1").schema.field("readable_metrics").type.names
    assert parts.inspect("refs", ref="v1").num_rows == 3


def test_a_transaction_shows_its_own_files(orders: Table) -> None:
    with orders.transaction() as block:
        block.append(order_rows(1))
        assert block.inspect("files").num_rows == 1
        assert orders.inspect("files").num_rows == 0
    assert orders.inspect("files").num_rows == 1


def test_unknown_metadata_table_lists_near_names(orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no metadata table `snapshot`") as caught:
        orders.inspect("snapshot")
    assert "snapshots" in caught.value.near


@pytest.mark.parametrize("name", [n for n in METADATA_TABLES if n.startswith("all_")])
def test_tables_about_all_snapshots_take_no_version(name: str, orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(UnsupportedError, match=f"expected no version for `{name}`"):
        orders.inspect(name, ref="main")


@pytest.mark.parametrize("name", ["refs", "files", "all_files"])
@pytest.mark.parametrize("version", [{"ref": "nope"}, {"snapshot_id": 1}, {"as_of_ms": 1}])
def test_versions_that_do_not_exist_are_refused(name: str, version: dict[str, Any], orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(NotFoundError):
        orders.inspect(name, **version)
    with pytest.raises(InvalidInputError, match="expected one of ref"):
        orders.inspect(name, ref="main", snapshot_id=1)
