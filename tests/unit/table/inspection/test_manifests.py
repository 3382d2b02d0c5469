"""The metadata tables of manifests."""

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from bergline import Lake, Table
from bergline.format.manifest.avro import render_manifest_list
from bergline.format.manifest.manifest import FieldSummary
from bergline.scan.manifests import load_manifest_list
from bergline.table.inspection.metadata_tables import metadata_table
from bergline.table.inspection.metadata_view import MetadataView
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.long


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: one file each of `eu` and `us`."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


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
