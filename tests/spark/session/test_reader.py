"""`spark.read` on lake tables."""

import pytest
from pyspark.errors import (
    AnalysisException,
    IllegalArgumentException,
)
from pyspark.sql import DataFrame, SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import (
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("branch", "dev", [1, 2]),
        ("tag", "v1", [1]),
        ("versionAsOf", "v1", [1]),
        ("snapshot-id", "the id of v1", [1]),
        ("timestampAsOf", "2099-01-01", [1, 3]),
        ("as-of-timestamp", "the time of v1", [1]),
        ("as-of-timestamp", "4070908800000", [1, 3]),
    ],
)
def test_reader_options_choose_the_version(
    spark: SparkSession, orders: Table, key: str, value: str, expected: list[int]
) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.append(order_rows(2), branch="dev").append(order_rows(3))
    v1 = orders.metadata.snapshots[0]
    value = value.replace("the id of v1", str(v1.snapshot_id)).replace("the time of v1", str(v1.timestamp_ms))
    assert sorted(r.id for r in spark.read.option(key, value).table("db.orders").collect()) == expected
    assert sorted(r.id for r in spark.read.options(**{key: value}).table("db.orders").collect()) == expected


def test_reader_options_that_are_not_understood_are_refused(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    with pytest.raises(UnsupportedError, match="found `brnach`"):
        spark.read.option("brnach", "dev").table("db.orders")
    with pytest.raises(InvalidInputError, match="one version"):
        spark.read.option("branch", "dev").option("tag", "v1").table("db.orders")
    with pytest.raises(NotFoundError, match="no snapshot at or before 2001-01-01"):
        spark.read.option("timestampAsOf", "2001-01-01").table("db.orders")
    spark.range(2).createOrReplaceTempView("numbers")
    assert spark.read.option("anything", "goes").table("numbers").count() == 2


def ids(frame: DataFrame) -> list[int]:
    return sorted(r.id for r in frame.collect())


def test_load_reads_tables_versions_and_metadata_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    orders.append(order_rows(2), branch="dev").append(order_rows(3))
    first = orders.refs["v1"].snapshot_id
    reader = spark.read.format("iceberg")
    assert ids(reader.load("db.orders")) == [1, 3]
    assert ids(spark.read.load("lake.db.orders", format="iceberg", branch="dev")) == [1, 2]
    assert ids(spark.read.format("iceberg").option("path", "db.orders.tag_v1").load()) == [1]
    assert ids(spark.read.format("ICEBERG").option("versionAsOf", first).load("db.orders")) == [1]
    assert ids(spark.read.format("iceberg").option("snapshot-id", first).table("db.orders")) == [1]
    assert {r.name for r in reader.load("db.orders.refs").collect()} == {"main", "v1", "dev"}
    files = spark.read.format("iceberg").option("branch", "dev").load("db.orders.files")
    assert files.count() == 2
    with pytest.raises(AnalysisException, match=r"no table `nowhere\.orders`"):
        reader.load("nowhere.orders")
    with pytest.raises(UnsupportedError, match="found the path"):
        reader.load("/tmp/orders")  # noqa: S108
    with pytest.raises(UnsupportedError, match="a table has its own"):
        spark.read.format("iceberg").schema("id long").load("db.orders")
    with pytest.raises(InvalidInputError, match="found None"):
        reader.load()


def test_incremental_reads_give_what_appends_brought(spark: SparkSession, orders: Table) -> None:
    snapshots = []
    for n in (1, 2, 3):
        orders.append(order_rows(n))
        snapshots.append(orders.metadata.current_snapshot_id)
    orders.delete("id = 2")
    orders.append(order_rows(4))
    reader = spark.read.format("iceberg").option("start-snapshot-id", snapshots[0])
    assert ids(reader.load("db.orders")) == [2, 3, 4]
    assert ids(reader.load("db.orders").filter("id > 2")) == [3, 4]
    both = spark.read.option("start-snapshot-id", snapshots[0]).option("end-snapshot-id", snapshots[1])
    assert ids(both.table("db.orders")) == [2]
    assert orders.scan_appends(snapshots[2]).to_arrow().column("id").to_pylist() == [4]
    with pytest.raises(IllegalArgumentException, match="expected `start-snapshot-id`"):
        spark.read.option("end-snapshot-id", snapshots[1]).table("db.orders")
    with pytest.raises(InvalidInputError, match="to start from, found 5"):
        spark.read.option("start-snapshot-id", 5).table("db.orders")
    with pytest.raises(InvalidInputError, match="one version"):
        spark.read.option("start-snapshot-id", 5).option("branch", "main").table("db.orders")


def test_options_given_before_attach_count(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="audit")
    bergline.spark.detach(spark)
    reader = spark.read.option("BRANCH", "audit")
    bergline.spark.attach(spark, lake)
    assert reader.table("db.orders").count() == 2
