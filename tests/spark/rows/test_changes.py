"""Change frames: what becomes of rows that are deleted, updated, inserted and kept, and what an error leaves."""

import re
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from bergline import Lake, Table
from bergline.errors import InvalidInputError, StorageError
from bergline.spark.reads import planning
from bergline.spark.rows.changes import DELETED, INSERTED, KEPT, UPDATED, RowLevelCommit, change_columns
from bergline.spark.writes.target import WriteTarget
from bergline.table.scans.planning_mode import DATA_MODE
from bergline.table.scans.scan import TableScan
from support.fixtures.rows import ORDERS, order_rows
from support.fixtures.twin_tables import KINDS, all_rows
from support.fixtures.ways_of_changing import WAYS, change_rows_by

pytestmark = pytest.mark.spark
MARKED = 4
MODES = ("write.delete.mode", "write.update.mode", "write.merge.mode")


@pytest.fixture(autouse=True, params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    change_rows_by(request.param, monkeypatch)


def places(table: Table) -> dict[int, tuple[Any, ...]]:
    """Where each order is, and in format version 3 its row id."""
    columns = ["id", "_file", "_pos", *(["_row_id"] if table.metadata.format_version > 2 else [])]
    return {row["id"]: tuple(row.values())[1:] for row in table.scan(columns=columns).to_arrow().to_pylist()}


def frame(spark: SparkSession, table: Table, *changes: tuple[Any, ...]) -> DataFrame:
    lineage = ", r bigint" if table.metadata.format_version > 2 else ""
    types = f"a int, f string, p bigint{lineage}, id bigint, amount double, region string"
    rows = spark.createDataFrame(changes, types)
    return rows.toDF(*change_columns(table.metadata)).repartition(2)


def commit(table: Table, changes: DataFrame, **options: Any) -> Any:
    scan = table.scan()
    return RowLevelCommit(table, scan, WriteTarget(), "merge").run(changes, **options)


@pytest.mark.kinds(2)
@pytest.mark.parametrize(("version", "mode"), [("2", "copy-on-write"), ("3", "copy-on-write"), ("3", "merge-on-read")])
def test_every_action_is_carried_out(spark: SparkSession, lake: Lake, version: str, mode: str) -> None:
    properties = {"format-version": version, "write.merge.mode": mode, "write.merge.distribution-mode": "hash"}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    table.append(order_rows(1, 2, 3, 4)).append(order_rows(5, region="us"))
    at, none = places(table), (None,) * (4 if version == "3" else 3)
    changes = frame(
        spark,
        table,
        (DELETED, *at[1], None, None, None),
        (UPDATED | MARKED, *at[2], 2, 0.5, "us"),
        (INSERTED, *none[1:], 9, 9.0, "eu"),
        (KEPT, *at[3], None, None, None),
    )
    counts = commit(
        table, changes, twice="expected one", summary=lambda c: {"n": str(sum(c.values()))}, copied_rows="c"
    )
    assert counts == {DELETED: 1, UPDATED | MARKED: 1, INSERTED: 1, KEPT: 1}
    found = table.refresh().scan().to_arrow().to_pylist()
    assert sorted((r["id"], r["amount"], r["region"]) for r in found) == [
        (2, 0.5, "us"),
        (3, 30.0, "eu"),
        (4, 40.0, "eu"),
        (5, 50.0, "us"),
        (9, 9.0, "eu"),
    ]
    assert table.current_snapshot is not None
    summary = table.current_snapshot.summary
    assert (summary["n"], summary["c"]) == ("4", "2" if mode == "copy-on-write" else "0")
    if version == "3":
        after = places(table)
        assert [after[i][2] for i in (2, 3, 4, 5)] == [at[i][2] for i in (2, 3, 4, 5)]
        assert after[9][2] > max(place[2] for place in at.values())


def test_a_row_that_comes_twice_is_one_error_and_leaves_nothing(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2))
    at = places(table)
    before = table.metadata_location, sorted(table.io.list(table.location))
    changes = frame(spark, table, (UPDATED, *at[1], 1, 0.0, "eu"), (KEPT, *at[1], None, None, None))
    path, position, *_ = at[1]
    with pytest.raises(InvalidInputError, match=f"^twice: row {position} of {re.escape(path)}$"):
        commit(table, changes, twice=lambda path, position: InvalidInputError(f"twice: row {position} of {path}"))
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before
    stray = frame(spark, table, (UPDATED, "file:///elsewhere.parquet", 1, 1, 0.0, "eu"))
    with pytest.raises(InvalidInputError, match=r"expected positions in data files of snapshot .*elsewhere"):
        commit(table, stray)
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before
    with pytest.raises(InvalidInputError, match="`id`"):
        commit(table, frame(spark, table, (INSERTED, None, None, None, 0.0, "eu")))
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before


def never_here(scan: TableScan) -> None:
    raise AssertionError(f"the driver lists the files of {scan.metadata.location}")


@pytest.mark.kinds(2)
@pytest.mark.parametrize("kind", ["v2 copy, equality deletes", "v3 vectors over positions"])
def test_a_driver_looks_up_only_the_files_that_change(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    table = KINDS[kind](lake, "db.t")
    table.set_properties({name: table.properties.get("write.delete.mode", "copy-on-write") for name in MODES})
    before = {row[0]: row for row in all_rows(table)}
    with monkeypatch.context() as patched:
        patched.setattr(planning, "MOST_IN_DRIVER", 2)
        patched.setattr(planning, "_FEWEST_IN_RUN", 2)
        patched.setattr(TableScan, "plan", never_here)
        table.set_properties({DATA_MODE: "distributed"})
        spark.sql("DELETE FROM db.t WHERE id + 0 IN (2, 9, 21)")
        spark.sql("UPDATE db.t SET amount = 0.5 WHERE id + 0 IN (3, 22)")
        spark.sql(
            "MERGE INTO db.t USING (SELECT * FROM VALUES (4, 1.5), (77, 2.5) AS v(id, amount)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET amount = s.amount "
            "WHEN NOT MATCHED THEN INSERT (id, amount) VALUES (s.id, s.amount)"
        )
    changed = {3: 0.5, 22: 0.5, 4: 1.5, 77: 2.5}
    after = {row[0]: row for row in all_rows(table.refresh())}
    assert {n: row for n, row in after.items() if n not in changed} == {
        n: row for n, row in before.items() if n not in {*changed, 2, 9, 21}
    }
    assert {n: after[n][1] for n in changed} == changed


def test_files_of_changes_that_tasks_cannot_place_are_removed(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise StorageError("cannot read a manifest")

    monkeypatch.setattr(planning, "MOST_IN_DRIVER", 2)
    table = KINDS["v2 copy, equality deletes"](lake, "db.t").set_properties({DATA_MODE: "distributed"})
    before = sorted(table.io.list(table.location))
    monkeypatch.setattr(planning, "_with_files", fails)
    with pytest.raises(StorageError, match="cannot read a manifest"):
        spark.sql("UPDATE db.t SET amount = 0.5 WHERE id + 0 IN (3, 22)")
    assert sorted(table.io.list(table.location)) == before
