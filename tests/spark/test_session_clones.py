"""Sessions that Spark clones from an attached one know its lakes: those of `foreachBatch`, above all."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from rows import ORDERS, ids, order_rows

import bergline
import bergline.spark
from bergline import Lake, Table

pytestmark = pytest.mark.spark


def clone(spark: SparkSession) -> SparkSession:
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def run_stream(spark: SparkSession, directory: Path, each: Any) -> None:
    (directory / "in").mkdir()
    (directory / "in" / "one.json").write_text('{"id": 1, "amount": 2.5, "region": "eu"}\n')
    arriving = spark.readStream.schema("id BIGINT, amount DOUBLE, region STRING").json(str(directory / "in"))
    writer = arriving.writeStream.foreachBatch(each).option("checkpointLocation", str(directory / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()


def test_stream_writes_its_batches_to_lake_tables(
    spark: SparkSession, orders: Table, lake: Lake, tmp_path: Path
) -> None:
    spark.sql("USE db")
    counted = []

    def each(batch: DataFrame, number: int) -> None:
        session = batch.sparkSession
        batch.createOrReplaceTempView("arrived")
        session.sql("INSERT INTO db.orders SELECT * FROM arrived")
        session.sql("INSERT INTO orders SELECT id + 1, amount, region FROM arrived")
        batch.selectExpr("id + 2 AS id", "amount", "region").writeTo("db.orders").append()
        batch.write.mode("append").saveAsTable("db.batches")
        batch.write.insertInto("db.batches")
        counted.append((number, session.table("db.orders").count(), session.catalog.currentDatabase()))

    run_stream(spark, tmp_path, each)
    assert counted == [(0, 3, "db")]
    assert ids(orders.refresh().scan().to_arrow()) == [1, 2, 3]
    assert ids(lake.load_table("db.batches").scan().to_arrow()) == [1, 1]


def test_clone_has_the_lakes_of_its_session_until_that_is_detached(
    spark: SparkSession, orders: Table, tmp_path: Path
) -> None:
    orders.append(order_rows(1))
    other = clone(spark)
    assert other.table("db.orders").count() == 1
    assert clone(other).table("lake.db.orders").count() == 1
    other.sql("USE db")
    assert other.table("orders").count() == 1
    assert spark.catalog.currentDatabase() == "default"
    with bergline.connect(f"sqlite:///{tmp_path}/second/catalog.db", create=True) as second:
        second.create_namespace("db")
        second.create_table("db.orders", ORDERS).append(order_rows(1, 2))
        bergline.spark.attach(spark, second, name="second", default=False)
        assert other.table("second.db.orders").count() == 2
    bergline.spark.detach(spark)
    for session in (spark, other, clone(spark)):
        with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
            session.table("db.orders").count()


def test_clone_is_detached_alone_and_may_have_lakes_of_its_own(
    spark: SparkSession, orders: Table, tmp_path: Path
) -> None:
    first, second, unused = clone(spark), clone(spark), clone(spark)
    bergline.spark.detach(unused)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        unused.table("db.orders").count()
    assert first.table("db.orders").count() == second.table("db.orders").count() == 0
    bergline.spark.detach(first)
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        first.table("db.orders").count()
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        clone(first).table("db.orders").count()
    with bergline.connect(f"sqlite:///{tmp_path}/second/catalog.db", create=True) as own:
        own.create_namespace("own")
        own.create_table("own.orders", ORDERS)
        bergline.spark.attach(second, own, name="own", default=False)
        assert second.table("own.own.orders").count() == second.table("db.orders").count() == 0
        with pytest.raises(AnalysisException):
            spark.table("own.own.orders").count()
        bergline.spark.detach(second)
    assert spark.table("db.orders").count() == 0


def test_sessions_that_are_no_clones_know_no_lakes(spark: SparkSession, orders: Table) -> None:
    for session in (spark.newSession(), clone(spark.newSession())):
        for _ in range(2):
            with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
                session.table("db.orders").count()
    assert SparkSession.active().table("db.orders").count() == 0
    assert spark.range(1).sparkSession.table("db.orders").count() == 0
