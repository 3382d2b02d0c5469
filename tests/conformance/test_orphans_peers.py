"""The official runtime and bergline find the same orphan files on the same tables."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bergline import Lake, Table
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile
from bergline.io.locations import local_path, normalized
from bergline.table.commits.retry import Timing
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]

STRAYS = (
    "data/stray.parquet",
    "data/region=eu/a b.parquet",
    "data/region=a+b%2Fc%25/100%.parquet",
    "data/ünï/日本.parquet",
    "data/a+b#c.parquet",
    "metadata/stray.avro",
    "metadata/00099-old.metadata.json",
    "elsewhere/deep/er/1",
    "data/_hidden",
    "_tmp/1",
    "data/.staging/1",
    "data/_k=1/1",
)


LATER = time.time() + 10 * 86_400


def table_of_both(lake: Lake, official: Official, version: str) -> Table:
    """A table with a history by two engines, whose every file is old."""
    properties = {"format-version": version, "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5, region="a b/c%"))
    table.refs.create_branch("dev")
    table.append(order_rows(6), branch="dev")
    table.delete("id = 2")
    official("INSERT INTO db.t VALUES (7, 1.0, 'eu'), (8, 1.0, 'x y')")
    official("ALTER TABLE db.t CREATE TAG pin")
    official("DELETE FROM db.t WHERE id = 7")
    table.refresh().overwrite(order_rows(9))
    head = table.metadata.snapshots[-1].snapshot_id
    for name, data in (("metadata/s.stats", b"12345"), ("metadata/p.parquet", b"1234"), *((n, b"x") for n in STRAYS)):
        table.io.create(f"{table.location}/{name}", data)
    table.set_statistics(StatisticsFile(head, f"{table.location}/metadata/s.stats", 5, 1, ()))
    table.set_statistics(PartitionStatisticsFile(head, f"{table.location}/metadata/p.parquet", 4))
    for path in Path(local_path(table.location)).rglob("*"):
        os.utime(path, (1e9, 1e9))
    # to the official runtime they are as old as that; to us as old as their names there, so we look in ten days
    return Lake(lake.catalog, "lake", timing=Timing(clock_ms=lambda: int(LATER * 1000))).load_table("db.t")


def test_both_name_the_same_files_and_ours_are_all_that_there_are(lake: Lake, official: Official) -> None:
    table = table_of_both(lake, official, "2")
    table.io.create(f"{table.location}/data/young", b"")
    os.utime(local_path(f"{table.location}/data/young"), (LATER, LATER))
    call = "CALL system.remove_orphan_files(table => 'db.t', dry_run => true"
    data = f"{table.location}/data"
    for place, argument in ((None, ""), (data, f", location => '{data}'")):
        theirs = sorted(normalized(row[0]) for row in official(f"{call}{argument})"))
        assert [f.location for f in table.plan_orphans(location=place).files] == theirs
        assert len(theirs) == (5 if place else 8)
    rows = {ref: ids(table.scan(ref=ref).to_arrow()) for ref in table.metadata.refs}
    assert len(table.sweep_orphans(table.plan_orphans()).deleted) == 8
    assert {ref: ids(table.scan(ref=ref).to_arrow()) for ref in rows} == rows
    assert sorted(official("SELECT id FROM db.t VERSION AS OF 'pin'")) == [(n,) for n in rows["pin"]]


def test_what_the_official_runtime_removes_is_what_we_planned(lake: Lake, official: Official) -> None:
    table = table_of_both(lake, official, "3")
    ours = [f.location for f in table.plan_orphans().files]
    assert sorted(normalized(row[0]) for row in official("CALL system.remove_orphan_files(table => 'db.t')")) == ours
    assert len(ours) == 8
    assert table.plan_orphans().files == ()
    assert ids(table.scan().to_arrow()) == [9]
