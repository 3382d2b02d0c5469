"""Streaming queries that write to lake tables."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.spark.streaming.sink import read_query_id
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.streams import run_query

pytestmark = pytest.mark.spark


class Arrivals:
    """Rows that arrive as JSON files, and a query that reads them."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self.directory = directory / "in"
        self.directory.mkdir()
        self.checkpoint = directory / "checkpoint"

    def add(self, *numbers: int, region: str = "eu") -> None:
        """One more file."""
        lines = [json.dumps({"id": n, "amount": n * 10.0, "region": region}) for n in numbers]
        (self.directory / f"{len(list(self.directory.iterdir()))}.json").write_text("\n".join(lines))

    def frame(self, **options: Any) -> Any:
        """The rows as a stream."""
        schema = "region STRING, id BIGINT, amount DOUBLE"
        return self._spark.readStream.schema(schema).options(**options).json(str(self.directory))

    def writer(self, frame: Any = None) -> DataStreamWriter:
        """A query of this checkpoint."""
        writer = (self.frame() if frame is None else frame).writeStream
        return writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)

    def forget_commit(self, number: int) -> None:
        """As if the query had been killed before it noted that a batch is done."""
        (self.checkpoint / "commits" / str(number)).unlink()
        (self.checkpoint / "commits" / f".{number}.crc").unlink(missing_ok=True)


@pytest.fixture
def arrivals(spark: SparkSession, tmp_path: Path) -> Arrivals:
    """Rows 1 and 2 have arrived."""
    made = Arrivals(spark, tmp_path)
    made.add(1, 2)
    return made


def rows(table: Table, **version: Any) -> list[int]:
    return ids(table.refresh().scan(**version).to_arrow())


STARTS: tuple[Callable[[DataStreamWriter], Any], ...] = (
    lambda w: w.toTable("db.orders"),
    lambda w: w.toTable("lake.db.orders", format="iceberg", outputMode="append"),
    lambda w: w.format("iceberg").start("db.orders"),
    lambda w: w.format("iceberg").option("path", "db.orders").start(),
    lambda w: w.start("db.orders", format="iceberg", queryName="named"),
)


def test_every_way_to_write(orders: Table, arrivals: Arrivals) -> None:
    for number, start in enumerate(STARTS):
        query = start(arrivals.writer())
        query.awaitTermination()
        snapshot = orders.refresh().metadata.snapshots[-1]
        assert snapshot.operation == "append"
        assert snapshot.summary["spark.sql.streaming.queryId"] == query.id
        assert snapshot.summary["spark.sql.streaming.epochId"] == str(number)
        assert snapshot.summary["engine-name"] == "spark"
        arrivals.add(number + 3)
    assert rows(orders) == [1, 2, 3, 4, 5, 6]


def test_each_batch_is_one_commit(orders: Table, arrivals: Arrivals) -> None:
    arrivals.add(3)
    arrivals.writer(arrivals.frame(maxFilesPerTrigger=1)).toTable("db.orders").awaitTermination()
    arrivals.add(4)
    query = arrivals.writer().toTable("db.orders")
    query.awaitTermination()
    assert rows(orders) == [1, 2, 3, 4]
    summaries = [s.summary for s in orders.metadata.snapshots]
    assert [s["spark.sql.streaming.epochId"] for s in summaries] == ["0", "1", "2"]
    assert {s["spark.sql.streaming.queryId"] for s in summaries} == {query.id}


def test_batch_that_was_committed_is_not_committed_again(orders: Table, arrivals: Arrivals) -> None:
    arrivals.writer().toTable("db.orders").awaitTermination()
    arrivals.forget_commit(0)
    orders.refresh().append(order_rows(9))
    arrivals.add(3)
    arrivals.writer().toTable("db.orders").awaitTermination()
    assert rows(orders) == [1, 2, 3, 9]
    assert [s.summary.get("spark.sql.streaming.epochId") for s in orders.metadata.snapshots] == ["0", None, "1"]


def test_complete_mode_replaces_all_rows_in_one_commit(lake: Lake, arrivals: Arrivals) -> None:
    counts = lake.create_table("db.counts", ORDERS).append(order_rows(7, region="old"))

    def run() -> None:
        totals = arrivals.frame().groupBy("region").agg(F.count("*").alias("id"), F.sum("amount").alias("amount"))
        arrivals.writer(totals).toTable("db.counts", outputMode="complete").awaitTermination()

    run()
    assert counts.refresh().scan().to_arrow().to_pylist() == [{"id": 2, "amount": 30.0, "region": "eu"}]
    arrivals.add(3, region="us")
    run()
    found = counts.refresh().scan().to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": 1, "amount": 30.0, "region": "us"}, {"id": 2, "amount": 30.0, "region": "eu"}]
    assert [s.operation for s in counts.metadata.snapshots] == ["append", "overwrite", "overwrite"]
    arrivals.forget_commit(1)
    run()
    assert len(counts.refresh().metadata.snapshots) == 3


def test_table_that_does_not_exist_is_created(lake: Lake, arrivals: Arrivals) -> None:
    arrivals.writer().toTable("db.fresh", partitionBy="region").awaitTermination()
    table = lake.load_table("db.fresh")
    assert [f.name for f in table.schema.fields] == ["region", "id", "amount"]
    assert [f.name for f in table.spec.fields] == ["region"]
    assert rows(table) == [1, 2]


@pytest.mark.parametrize("fanout", ["false", "true"])
def test_rows_go_to_their_partitions(lake: Lake, arrivals: Arrivals, fanout: str) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region", "bucket(2, id)"])
    arrivals.add(3, 4, region="us")
    arrivals.writer().option("fanout-enabled", fanout).toTable("db.parts").awaitTermination()
    files = [planned.file for planned in table.refresh().scan().plan().files]
    assert {file.partition[0] for file in files} == {"eu", "us"}
    assert rows(table) == [1, 2, 3, 4]


def test_branch_by_option_name_and_session(spark: SparkSession, orders: Table, arrivals: Arrivals) -> None:
    orders.append(order_rows(9))
    arrivals.writer().option("branch", "b").toTable("db.orders").awaitTermination()
    arrivals.add(3)
    arrivals.writer().toTable("db.orders.branch_b").awaitTermination()
    arrivals.add(4)
    spark.conf.set("spark.wap.branch", "b")
    arrivals.writer().toTable("db.orders").awaitTermination()
    assert rows(orders) == [9]
    assert rows(orders, ref="b") == [1, 2, 3, 4, 9]


def test_branch_that_is_dropped_meanwhile_is_not_created_again(
    orders: Table, arrivals: Arrivals, spark: SparkSession
) -> None:
    orders.append(order_rows(9))
    writer = arrivals.writer().option("branch", "b").trigger(processingTime="0 seconds")
    query = writer.toTable("db.orders")
    query.processAllAvailable()
    orders.refresh().refs.drop_branch("b")
    arrivals.add(3)
    with pytest.raises(StreamingQueryException, match="no branch `b`"):
        query.processAllAvailable()
    query.stop()


def test_options_of_writes(orders: Table, arrivals: Arrivals) -> None:
    writer = arrivals.writer().option("snapshot-property.run", "r1").option("compression-codec", "gzip")
    writer.toTable("db.orders").awaitTermination()
    assert orders.refresh().metadata.snapshots[0].summary["run"] == "r1"


def test_from_one_lake_table_to_another(spark: SparkSession, orders: Table, lake: Lake, arrivals: Arrivals) -> None:
    copy = lake.create_table("db.copy", ORDERS)
    orders.append(order_rows(1)).append(order_rows(2))

    def copied() -> StreamingQuery:
        return arrivals.writer(spark.readStream.table("db.orders")).toTable("db.copy")

    run_query(copied)
    orders.append(order_rows(3))
    run_query(copied)
    assert rows(copy) == [1, 2, 3]
    assert len(copy.metadata.snapshots) == 2


def test_columns_are_matched_by_name_in_each_batch(orders: Table, arrivals: Arrivals) -> None:
    arrivals.writer().toTable("db.orders").awaitTermination()
    with orders.refresh().update_schema() as update:
        update.add_column("note", "string")
    arrivals.add(3)
    arrivals.writer().toTable("db.orders").awaitTermination()
    assert rows(orders) == [1, 2, 3]
    assert orders.scan().to_arrow()["note"].null_count == 3


def test_setting_for_checkpoints_is_used(
    spark: SparkSession, orders: Table, arrivals: Arrivals, tmp_path: Path
) -> None:
    spark.conf.set("spark.sql.streaming.checkpointLocation", str(tmp_path / "all"))
    try:
        writer = arrivals.frame().writeStream.trigger(availableNow=True).queryName("copying")
        writer.toTable("db.orders").awaitTermination()
        arrivals.frame().writeStream.trigger(availableNow=True).queryName("copying").toTable("db.orders")
    finally:
        spark.conf.unset("spark.sql.streaming.checkpointLocation")
    assert (tmp_path / "all" / "copying" / "metadata").exists()
    assert rows(orders) == [1, 2]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda w: w.outputMode("update"), UnsupportedError, "expected the output mode append or complete"),
        (lambda w: w.format("json"), UnsupportedError, "expected the format `iceberg`"),
        (lambda w: w.option("nope", "1"), UnsupportedError, "expected one of the options branch"),
        (lambda w: w.option("isolation-level", "snapshot"), InvalidInputError, "expected options of appends"),
        (lambda w: w.partitionBy("region"), InvalidInputError, "expected the partitions of `db.orders`"),
        (lambda w: w.clusterBy("region"), UnsupportedError, "cannot run clusterBy"),
        (lambda w: w.option("checkpointLocation", ""), InvalidInputError, "expected the option `checkpointLocation`"),
    ],
)
def test_bad_input(
    orders: Table,
    arrivals: Arrivals,
    change: Callable[[DataStreamWriter], DataStreamWriter],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        change(arrivals.writer()).toTable("db.orders")
    assert not arrivals.checkpoint.exists()
    assert not orders.refresh().metadata.snapshots


def test_columns_that_do_not_fit_are_refused_at_the_start(orders: Table, arrivals: Arrivals) -> None:
    with pytest.raises(InvalidInputError, match="for column `id`"):
        arrivals.writer(arrivals.frame().withColumn("id", F.col("region") == "eu")).toTable("db.orders")
    with pytest.raises(InvalidInputError, match="expected a value for the required column `id`"):
        arrivals.writer(arrivals.frame().drop("id")).toTable("db.orders")
    assert not arrivals.checkpoint.exists()


def test_wap_id_is_refused(spark: SparkSession, orders: Table, arrivals: Arrivals) -> None:
    spark.conf.set("spark.wap.id", "w")
    try:
        with pytest.raises(UnsupportedError, match=r"cannot stream to `db.orders` under WAP id `w`"):
            arrivals.writer().toTable("db.orders")
    finally:
        spark.conf.unset("spark.wap.id")


def test_stream_in_a_step_writes_to_the_branch_of_its_pipeline(
    spark: SparkSession, lake: Lake, orders: Table, arrivals: Arrivals
) -> None:
    def copy(_: Any) -> None:
        arrivals.writer().toTable("db.orders").awaitTermination()

    pipeline = bergline.spark.Pipeline(spark, lake, "p", tables=["db.orders"], steps={"copy": copy})
    assert pipeline.run("1", publish=False, merge=False).steps[0].rows == {"db.orders": 2}
    assert rows(orders, ref="p-1") == [1, 2]
    assert orders.metadata.head("main") is None
    assert orders.metadata.snapshots[-1].summary["bergline.step"] == "copy"


def test_writer_can_be_used_again_after_an_error(orders: Table, arrivals: Arrivals) -> None:
    writer = arrivals.writer().outputMode("update")
    with pytest.raises(UnsupportedError):
        writer.toTable("db.orders")
    writer.outputMode("append").toTable("db.orders").awaitTermination()
    writer.toTable("db.orders").awaitTermination()
    assert rows(orders) == [1, 2]


def test_other_targets_are_sparks(orders: Table, arrivals: Arrivals, tmp_path: Path) -> None:
    arrivals.writer().format("parquet").start(str(tmp_path / "out")).awaitTermination()
    assert list((tmp_path / "out").glob("*.parquet"))
    assert not orders.refresh().metadata.snapshots


def test_query_id_is_that_of_the_checkpoint(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("plain", "odd {a,b} [c] *?", "50% off"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metadata").write_text('{"id":"7"}')
        assert read_query_id(spark, f"{tmp_path / name}/") == "7"
        assert read_query_id(spark, f"file://{tmp_path / name}") == "7"


def test_detached_session_streams_as_spark_does(spark: SparkSession, orders: Table, arrivals: Arrivals) -> None:
    bergline.spark.detach(spark)
    with pytest.raises(Exception, match=r"SCHEMA_NOT_FOUND|not found|NOT_FOUND"):
        arrivals.writer().toTable("db.orders")
