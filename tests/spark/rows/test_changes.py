"""Change frames: what becomes of rows that are deleted, updated, inserted and kept, and what an error leaves."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from rows import ORDERS, order_rows

from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.spark.rows.changes import DELETED, INSERTED, KEPT, UPDATED, RowLevelCommit, change_columns
from bergline.spark.writes.target import WriteTarget

pytestmark = pytest.mark.spark
MARKED = 4


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
    with pytest.raises(InvalidInputError, match="expected one source row, found several for the row at position 0 of"):
        commit(table, changes, twice="expected one source row")
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before
    stray = frame(spark, table, (UPDATED, "file:///elsewhere.parquet", 1, 1, 0.0, "eu"))
    with pytest.raises(InvalidInputError, match=r"expected positions in data files of snapshot .*elsewhere"):
        commit(table, stray)
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before
    with pytest.raises(InvalidInputError, match="`id`"):
        commit(table, frame(spark, table, (INSERTED, None, None, None, 0.0, "eu")))
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before
