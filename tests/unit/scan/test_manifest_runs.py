"""Scans planned by runs of manifests."""

import pickle

import msgspec
import pytest

from bergline import Lake, Table
from bergline.errors import UnsupportedError
from bergline.format.manifest.manifest import ManifestContent, ManifestFile
from bergline.scan.manifest_runs import files_in, freeze_scan, runs_of
from bergline.scan.manifests import load_manifest_list
from support.fixtures.rows import ORDERS, order_rows


def manifest(number: int, files: int | None) -> ManifestFile:
    existing = None if files is None else 0
    counts = {"added_files_count": files, "existing_files_count": existing}
    return ManifestFile(f"memory:/{number}", 4000, 0, ManifestContent.DATA, 1, **counts)


def test_runs_have_about_as_many_files_as_asked_for_in_order() -> None:
    manifests = [manifest(n, files) for n, files in enumerate([3, 3, 10, 1, 1, 4])]
    runs = [[files_in(m) for m in run] for run in runs_of(manifests, 6)]
    assert runs == [[3, 3], [10], [1, 1, 4]]
    assert [m for run in runs_of(manifests, 1) for m in run] == manifests
    assert list(runs_of([], 6)) == []


def test_files_of_a_manifest_that_no_list_counts_are_guessed_by_its_size() -> None:
    assert files_in(manifest(1, None)) == 100


@pytest.fixture
def table(lake: Lake) -> Table:
    """Two partitions, an append for each."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    for region in ("eu", "us"):
        rows = order_rows(1, 2)
        table.append(rows.set_column(2, "region", [[region] * 2]))
    return table


def test_a_frozen_scan_has_the_manifests_that_may_match_and_no_history(table: Table) -> None:
    scan = table.scan("region = 'eu'")
    frozen, manifests = freeze_scan(scan.io, scan.metadata, scan.outline())
    assert [files_in(m) for m in manifests] == [1]
    assert frozen.deletes == ()
    assert not frozen.metadata.snapshots
    assert not frozen.metadata.refs
    whole = len(pickle.dumps(scan.metadata))
    assert len(pickle.dumps(frozen)) < whole
    assert frozen.plan(scan.io, manifests) == scan.plan().files


def test_a_table_without_snapshots_has_no_manifests_to_plan(lake: Lake) -> None:
    scan = lake.create_table("db.empty", ORDERS).scan()
    assert freeze_scan(scan.io, scan.metadata, scan.outline())[1] == []


def test_delete_files_that_cannot_be_read_are_refused_where_they_apply(table: Table) -> None:
    table.set_properties({"write.delete.mode": "merge-on-read"})
    table.append(order_rows(3, 4, 5)).delete("id = 4")
    scan = table.scan()
    frozen, manifests = freeze_scan(scan.io, scan.metadata, scan.outline())
    assert frozen.deletes
    deletes = [d for planned in frozen.plan(scan.io, manifests) for d in planned.deletes]
    assert deletes
    (listed,) = (m for m in load_manifest_list(scan.io, table.current_snapshot) if m.content is ManifestContent.DELETES)
    locked = msgspec.structs.replace(frozen, deletes=(msgspec.structs.replace(listed, key_metadata=b"k"),))
    with pytest.raises(UnsupportedError, match="encrypted manifest"):
        locked.plan(scan.io, manifests)
