"""The metadata tables of files and entries."""

import struct
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.errors import FormatError
from bergline.format.manifest.manifest import DataFile
from support.fixtures.every_type import every_type_rows, every_type_schema
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: one file each of `eu` and `us`."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def paths(rows: pa.Table) -> list[str]:
    return sorted(rows.column("file_path").to_pylist())


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


def test_split_offsets_beyond_the_file_are_left_out(orders: Table) -> None:
    orders.append_files([_file(orders, "a", ()), _file(orders, "b", (), split_offsets=(4, 1000))])
    assert orders.inspect("files").column("split_offsets").to_pylist() == [[4], None]


def test_a_bound_that_is_no_value_names_its_file(orders: Table) -> None:
    orders.append_files([_file(orders, "a", (), lower_bounds={1: b"abc"})])
    with pytest.raises(FormatError, match=r"`lower_bounds` of column 1 for .*/a.parquet"):
        orders.inspect("files")


def _file(table: Table, name: str, partition: tuple[Any, ...], **fields: Any) -> DataFile:
    known = {"record_count": 1, "file_size_in_bytes": 100, "split_offsets": (4,)} | fields
    path = f"{table.location}/data/{name}.parquet"
    table.io.create(path, b"encrypted")  # nobody can count the rows
    return DataFile(file_path=path, file_format="PARQUET", partition=partition, key_metadata=b"key", **known)
