"""Metadata tables: the official columns, and rows that agree with the metadata."""

import datetime as dt
import struct
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from every_type import every_type_rows, every_type_schema
from rows import ORDERS, order_rows

from bergline import Lake, Table
from bergline.errors import FormatError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.manifest.avro import render_manifest_list
from bergline.format.manifest.manifest import DataFile, FieldSummary
from bergline.scan.manifests import load_manifest_list
from bergline.table.inspection.metadata_tables import METADATA_TABLES, metadata_table
from bergline.table.inspection.metadata_view import MetadataView

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


def paths(rows: pa.Table) -> list[str]:
    return sorted(rows.column("file_path").to_pylist())


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


def test_refs_show_retention(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev", min_snapshots_to_keep=3, max_snapshot_age_ms=4, max_ref_age_ms=5)
    head = orders.metadata.current_snapshot_id
    assert [tuple(row.values()) for row in orders.inspect("refs").to_pylist()] == [
        ("main", "BRANCH", head, None, None, None),
        ("dev", "BRANCH", head, 5, 3, 4),
    ]


def test_snapshots_show_parent_operation_and_summary(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first, second = orders.inspect("snapshots").to_pylist()
    assert (first["parent_id"], first["operation"]) == (None, "append")
    assert (second["parent_id"], second["operation"]) == (first["snapshot_id"], "overwrite")
    assert dict(second["summary"])["total-records"] == "1"
    assert "operation" not in dict(second["summary"])


def test_history_follows_main_only(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev").append(order_rows(3))
    rows = orders.inspect("history").to_pylist()
    assert [row["is_current_ancestor"] for row in rows] == [True, True]
    assert rows[1]["parent_id"] == rows[0]["snapshot_id"]


def test_the_metadata_log_ends_in_the_current_file(orders: Table) -> None:
    created = orders.metadata_location
    orders.append(order_rows(1)).set_properties({"owner": "us"})
    rows = orders.inspect("metadata_log_entries").to_pylist()
    assert [row["file"] for row in rows][::2] == [created, orders.metadata_location]
    assert [row["latest_sequence_number"] for row in rows] == [None, 1, 1]
    assert rows[-1]["latest_snapshot_id"] == orders.metadata.current_snapshot_id


def test_files_have_metrics_that_people_can_read(parts: Table) -> None:
    eu, us = sorted(parts.inspect("files").to_pylist(), key=lambda row: row["partition"]["region"])
    assert (eu["content"], eu["file_format"], eu["record_count"], eu["partition"]) == (
        0,
        "PARQUET",
        2,
        {"region": "eu"},
    )
    assert list(eu["readable_metrics"]) == ["amount", "id", "region"]
    of_id, of_amount = eu["readable_metrics"]["id"], us["readable_metrics"]["amount"]
    assert (of_id["lower_bound"], of_id["upper_bound"], of_id["nan_value_count"]) == (1, 2, None)
    assert (of_amount["lower_bound"], of_amount["value_count"], of_amount["nan_value_count"]) == (30.0, 1, 0)
    assert dict(eu["lower_bounds"])[1] == struct.pack("<q", 1)


def test_every_type_has_bounds_of_its_own_type(lake: Lake) -> None:
    table = lake.create_table("db.t", every_type_schema(), properties={"format-version": "3"})
    table.append(every_type_rows())
    files = table.inspect("files")
    files.validate(full=True)
    metrics = files.to_pylist()[0]["readable_metrics"]
    assert {"point.x", "list.element", "map.key", "deep.element.value.z"} <= metrics.keys()
    assert table.inspect("position_deletes").num_rows == 0
    rows = every_type_rows()
    for name in ("int", "date", "time", "timestamp_ns", "timestamptz", "decimal38", "uuid", "fixed", "binary"):
        field = files.schema.field("readable_metrics").type.field(name)
        assert field.type.field("lower_bound").type == rows.schema.field(name).type
    assert metrics["decimal9"]["upper_bound"] == max(v for v in rows["decimal9"].to_pylist() if v is not None)
    assert metrics["nothing"] == {
        "column_size": metrics["nothing"]["column_size"],
        "value_count": 4,
        "null_value_count": 4,
        **dict.fromkeys(("nan_value_count", "lower_bound", "upper_bound")),
    }


def test_removed_files_are_in_entries_and_older_snapshots_only(parts: Table) -> None:
    before = paths(parts.inspect("files"))
    parts.delete("region = 'eu'")
    entries = parts.inspect("entries").to_pylist()
    (removed,) = [e for e in entries if e["status"] == 2]
    assert removed["snapshot_id"] == parts.metadata.current_snapshot_id
    assert removed["sequence_number"] == removed["file_sequence_number"] == 1
    assert paths(parts.inspect("files")) == [p for p in before if "eu" not in p]
    assert set(paths(parts.inspect("all_files"))) == set(before)
    assert parts.inspect("all_entries").num_rows > len(entries)


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


def test_manifests_show_the_range_of_their_partitions(parts: Table) -> None:
    newest = parts.inspect("manifests").to_pylist()[0]
    assert newest["partition_summaries"] == [
        {"contains_null": False, "contains_nan": False, "lower_bound": "us", "upper_bound": "us"}
    ]
    assert (newest["added_data_files_count"], newest["added_delete_files_count"]) == (1, 0)
    references = parts.inspect("all_manifests").column("reference_snapshot_id").to_pylist()
    assert references == [s.snapshot_id for s in (parts.metadata.snapshots[0], *parts.metadata.snapshots[1:] * 2)]


def test_manifests_of_old_lists_are_counted(lake: Lake) -> None:
    """What v1 lists may leave out: counts, whether there are NaN, and the ranges altogether."""
    schema = pa.schema([("x", pa.float64()), ("id", pa.int64())])
    table = lake.create_table("db.t", schema, partition_by=["x", "id"], properties={"format-version": "1"})
    table.append(pa.table({"x": [1.5, None], "id": [1, 2]}))
    known, summary = _rewritten_list(table, (FieldSummary(True), FieldSummary(False)))
    assert [known[f"{c}_data_files_count"] for c in ("added", "existing", "deleted")] == [2, 0, 0]
    assert [s["contains_nan"] for s in known["partition_summaries"]] == [None, None]
    assert [s["contains_nan"] for s in summary["partition_summaries"]] == [True, False]
    assert summary["added_data_files_count"] is None
    known, summary = _rewritten_list(table.append(pa.table({"x": [2.5], "id": [1]})), None)
    assert (known["partition_summaries"], summary["partition_summaries"]) == ([], None)


def test_position_deletes_of_files_and_of_vectors(lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"]).append(order_rows(1, 2, 3))
    (first,) = paths(table.inspect("files"))
    add_deletes(table, position_deletes(table, {first: [0, 2]}))
    rows = table.inspect("position_deletes").to_pylist()
    assert [(r["file_path"], r["pos"], r["row"], r["partition"]) for r in rows] == [
        (first, pos, None, {"region": "eu"}) for pos in (0, 2)
    ]
    table.upgrade_format(3)
    (second,) = (p.file.file_path for p in table.append(order_rows(4, 5)).scan("id = 4").plan().files)
    (vector,) = deletion_vectors(table, {second: [1]})
    add_deletes(table, vector)
    assert sorted(table.inspect("position_deletes").column("content_offset").to_pylist(), key=str) == [4, None, None]
    (row,) = [r for r in table.inspect("position_deletes").to_pylist() if r["file_path"] == second]
    assert (row["pos"], row["spec_id"], row["delete_file_path"]) == (1, 0, vector.file_path)
    assert row["content_size_in_bytes"] == vector.content_size_in_bytes
    (file,) = [r for r in table.inspect("delete_files").to_pylist() if r["file_format"] == "PUFFIN"]
    assert (file["referenced_data_file"], file["content_offset"]) == (second, vector.content_offset)


def test_split_offsets_beyond_the_file_are_left_out(orders: Table) -> None:
    orders.append_files([_file(orders, "a", ()), _file(orders, "b", (), split_offsets=(4, 1000))])
    assert orders.inspect("files").column("split_offsets").to_pylist() == [[4], None]


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


def test_a_bound_that_is_no_value_names_its_file(orders: Table) -> None:
    orders.append_files([_file(orders, "a", (), lower_bounds={1: b"abc"})])
    with pytest.raises(FormatError, match=r"`lower_bounds` of column 1 for .*/a.parquet"):
        orders.inspect("files")


def _file(table: Table, name: str, partition: tuple[Any, ...], **fields: Any) -> DataFile:
    known = {"record_count": 1, "file_size_in_bytes": 100, "split_offsets": (4,)} | fields
    path = f"{table.location}/data/{name}.parquet"
    table.io.create(path, b"encrypted")  # nobody can count the rows
    return DataFile(file_path=path, file_format="PARQUET", partition=partition, key_metadata=b"key", **known)


def _rewritten_list(table: Table, partitions: tuple[FieldSummary, ...] | None) -> list[dict[str, Any]]:
    """The first rows of `manifests` and `all_manifests`, after the head has got a list as old writers wrote them."""
    head = table.current_snapshot
    assert head is not None
    left_out = dict.fromkeys(f"{c}_{of}_count" for c in ("added", "existing", "deleted") for of in ("files", "rows"))
    (manifest, *_) = load_manifest_list(table.io, head)
    old = msgspec.structs.replace(manifest, partitions=partitions, **left_out)
    location = f"{table.location}/metadata/old-{head.snapshot_id}.avro"
    table.io.create(location, render_manifest_list([old], head.snapshot_id, None, 0, format_version=1))
    snapshot = msgspec.structs.replace(head, manifest_list=location)
    metadata = msgspec.structs.replace(table.metadata, snapshots=(snapshot,))
    view = MetadataView(table.io, metadata, table.metadata_location, snapshot)
    return [metadata_table(view, name).to_pylist()[0] for name in ("manifests", "all_manifests")]
