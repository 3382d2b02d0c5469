"""Tables with merged branches in Java and PyIceberg: the same rows, and incremental reads over what was merged."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from bergline import Lake, Table
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import ORDERS, ids, order_rows
from support.servers.peers import OfficialRuntime

pytestmark = pytest.mark.official
Official = Callable[[str], list[tuple[Any, ...]]]

INCREMENTAL = """
frame = spark.read.format("iceberg")
for key, value in options.items():
    frame = frame.option(key, value)
result = sorted(row[0] for row in frame.load(table).select("id").collect())
"""


def diverged(lake: Lake, version: str, mode: str) -> Table:
    """`main` and `staging` with changes of every kind since they parted, to different files."""
    properties = {"format-version": version, "write.delete.mode": mode}
    table = lake.create_table("db.merged", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(1, 2, 3)).append(order_rows(4, 5, 6, region="us")).append(order_rows(7, 8, region="jp"))
    table.refs.create_branch("staging")
    table.append(order_rows(10, 11), branch="staging")
    table.append(order_rows(12), branch="staging")
    table.delete("id = 2", branch="staging")
    table.delete("id = 10", branch="staging")
    table.overwrite(order_rows(30), "id = 3", branch="staging")
    add_deletes(table, equality_deletes(table, pa.table({"id": [1, 99]}), [1], ("eu",)), branch="staging")
    table.append(order_rows(13), branch="staging")
    table.compact("region = 'eu'", branch="staging")
    table.append(order_rows(20, region="us")).delete("id = 5")
    return table


@pytest.mark.kinds(2)
@pytest.mark.parametrize(("version", "mode"), [("2", "copy-on-write"), ("2", "merge-on-read"), ("3", "merge-on-read")])
def test_java_and_pyiceberg_read_merged_branches(
    lake: Lake, official: Official, pyiceberg: Any, version: str, mode: str
) -> None:
    table = diverged(lake, version, mode)
    expected = [4, 6, 7, 8, 11, 12, 13, 20, 30]
    table.refs.merge("staging", into="main")
    assert ids(table.scan().to_arrow()) == expected
    assert sorted(official("SELECT id FROM db.merged")) == [(n,) for n in expected]
    assert ids(pyiceberg.load_table("db.merged").scan().to_arrow()) == expected
    if version == "3":
        ours = {(r["id"], r["_row_id"]) for r in table.scan(columns=["id", "_row_id"]).to_arrow().to_pylist()}
        assert set(official("SELECT id, _row_id FROM db.merged")) == ours


@pytest.mark.kinds(2)
@pytest.mark.parametrize(("version", "mode"), [("2", "copy-on-write"), ("2", "merge-on-read"), ("3", "merge-on-read")])
def test_every_merged_snapshot_reads_the_same_here_and_in_java(
    lake: Lake, official: Official, version: str, mode: str
) -> None:
    table = diverged(lake, version, mode)
    result = table.refs.merge("staging", into="main")
    for snapshot in result.replayed.values():
        rows = official(f"SELECT id FROM db.merged VERSION AS OF {snapshot}")
        assert sorted(n for (n,) in rows) == ids(table.scan(snapshot_id=snapshot).to_arrow())


@pytest.mark.kinds(1)
@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_an_incremental_read_gives_what_was_merged(
    lake: Lake, official: Official, official_runtime: OfficialRuntime, version: str
) -> None:
    table = lake.create_table("db.merged", ORDERS, properties={"format-version": version}).append(order_rows(1))
    table.refs.create_branch("staging")
    table.append(order_rows(2), branch="staging").append(order_rows(3), branch="staging").append(order_rows(4))
    before = table.refs["main"].snapshot_id
    result = table.refs.merge("staging", into="main")
    first, second = result.replayed.values()
    name = official("SELECT current_catalog()")[0][0] + ".db.merged"

    def incremental(start: int, end: int) -> Any:
        options = {"start-snapshot-id": str(start), "end-snapshot-id": str(end)}
        return official_runtime.python(INCREMENTAL, table=name, options=options)

    assert incremental(before, second) == [2, 3]
    assert incremental(first, second) == [3]
    parts = table.metadata.snapshots[0].snapshot_id
    assert incremental(parts, second) == [2, 3, 4]
    table.append(order_rows(5), branch="staging")
    after = table.refs.merge("staging", into="main").head
    assert incremental(second, after or 0) == [5]


@pytest.mark.kinds(1)
@pytest.mark.parametrize("version", ["2", "3"])
def test_java_goes_on_writing_where_branches_were_merged(lake: Lake, official: Official, version: str) -> None:
    table = diverged(lake, version, "merge-on-read")
    table.refs.merge("staging", into="main")
    official("INSERT INTO db.merged VALUES (50, 500.0, 'eu')")
    official("DELETE FROM db.merged WHERE id IN (11, 20)")
    official("CALL system.rewrite_data_files(table => 'db.merged', options => map('rewrite-all', 'true'))")
    expected = [4, 6, 7, 8, 12, 13, 30, 50]
    assert ids(table.refresh().scan().to_arrow()) == expected
    assert sorted(official("SELECT id FROM db.merged")) == [(n,) for n in expected]
    table.append(order_rows(60), branch="staging")
    assert len(table.refs.merge("staging", into="main").replayed) == 1
    assert ids(table.scan().to_arrow()) == [*expected, 60]


def test_what_java_wrote_to_two_branches_is_merged(lake: Lake, official: Official) -> None:
    table = lake.create_table("db.merged", ORDERS, partition_by=["region"])
    official("INSERT INTO db.merged VALUES (1, 1.0, 'eu'), (2, 2.0, 'eu'), (3, 3.0, 'us'), (4, 4.0, 'us')")
    official("ALTER TABLE db.merged CREATE BRANCH staging")
    official("INSERT INTO db.merged.branch_staging VALUES (5, 5.0, 'eu')")
    official("DELETE FROM db.merged.branch_staging WHERE id = 1")
    official("UPDATE db.merged.branch_staging SET amount = 20.0 WHERE id = 2")
    official("INSERT INTO db.merged VALUES (6, 6.0, 'us')")
    official("DELETE FROM db.merged WHERE id = 3")
    table.refresh().refs.merge("staging", into="main")
    expected = [(2, 20.0), (4, 4.0), (5, 5.0), (6, 6.0)]
    assert sorted(official("SELECT id, amount FROM db.merged")) == expected
    assert sorted((r["id"], r["amount"]) for r in table.scan().to_arrow().to_pylist()) == expected
