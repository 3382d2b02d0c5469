"""Every file that a table's metadata references."""

from bergline import Lake, Table
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.referenced_files import (
    ReferencedFiles,
    ReferenceState,
    referenced_files,
    referenced_in_metadata,
)
from support.fixtures.rows import order_rows


def test_data_manifests_lists_and_metadata_are_referenced(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    loaded = lake.catalog.load_table(orders.name)
    found = set(referenced_files(orders.io, loaded))
    assert set(referenced_in_metadata(loaded)) < found
    assert {loaded.metadata_location, *(s.manifest_list for s in loaded.metadata.snapshots)} <= found
    assert {
        p.file.file_path for s in loaded.metadata.snapshots for p in orders.scan(snapshot_id=s.snapshot_id).plan().files
    } <= found
    assert not any("stray" in location for location in found)


def test_manifests_that_were_read_before_are_not_read_again(lake: Lake, orders: Table) -> None:
    read: set[str] = set()
    first = set(referenced_files(orders.append(order_rows(1)).io, lake.catalog.load_table(orders.name), read))
    again = set(referenced_files(orders.io, lake.catalog.load_table(orders.name), read))
    assert {f for f in first if f.endswith(".parquet")}
    assert not {f for f in again if f.endswith(".parquet")}


def test_states_add_up_and_doubtful_spellings_are_known(lake: Lake, orders: Table) -> None:
    named = ReferencedFiles(orders.io, PathRules({}, {}))
    named.include(lake.catalog.load_table(orders.append(order_rows(1)).name))
    old = orders.scan().plan().files[0].file.file_path
    named.include(lake.catalog.load_table(orders.append(order_rows(2)).name))
    assert named.find(old) is ReferenceState.REFERENCED
    assert named.find(old.replace("file:", "s3:").replace("file://", "s3://bucket")) is not ReferenceState.REFERENCED
    assert named.find(f"{orders.location}/data/stray.parquet") is ReferenceState.UNREFERENCED
