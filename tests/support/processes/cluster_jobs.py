"""What the tests of a cluster let its driver do, with a session and its lake."""

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake
from bergline.errors import UnsupportedError
from bergline.spark.rows import little_work
from support.fixtures.rows import ORDERS

_COLUMNS = "id bigint, amount double, region string"


def import_us(spark: SparkSession, lake: Lake) -> list[str]:
    """What plain tasks find when they import our package: where it is, or why not."""

    def look(_: int) -> str:
        try:
            return str(__import__("bergline").__file__)
        except ImportError as error:
            return str(error)

    return sorted(set(spark.sparkContext.parallelize(range(8), 8).map(look).collect()))


def append_many(spark: SparkSession, lake: Lake, rows: int) -> list[Any]:
    """The counts and sums of the partitions of a large append."""
    lake.create_table("db.many", ORDERS, partition_by=["region", "bucket(2, region)"])
    _rows(spark, rows, 4).writeTo("db.many").append()
    found = spark.sql("SELECT region, count(*), sum(id) FROM db.many GROUP BY region ORDER BY region")
    return [list(row) for row in found.collect()]


def insert_on_branch(spark: SparkSession, lake: Lake) -> list[list[int]]:
    """The rows of main and of a branch that a statement wrote to."""
    spark.sql("CREATE TABLE db.branched (id BIGINT) USING iceberg")
    spark.sql("INSERT INTO db.branched VALUES (1)")
    spark.sql("ALTER TABLE db.branched CREATE BRANCH dev")
    spark.sql(
        "INSERT INTO db.branched.branch_dev SELECT id FROM range(2, 500) WHERE id < 5"
    )  # Spark cannot tell that they are few
    return [sorted(r.id for r in spark.table(t).collect()) for t in ("db.branched", "db.branched.branch_dev")]


def append_held(spark: SparkSession, lake: Lake, rows: int, until: str) -> None:
    """Append what comes through a shuffle, where no task ends until a file is there."""

    def hold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        while not Path(until).exists():
            time.sleep(0.05)

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "1000")
    try:
        shuffled = _rows(spark, rows, 2).repartition(4, "id")
        shuffled.mapInArrow(hold, _COLUMNS).writeTo("db.held").append()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def run_in_two_tasks(spark: SparkSession, lake: Lake, statement: str) -> None:
    """Run a statement whose joins shuffle rows to two tasks, however few they are."""
    little_work.MOST_BYTES = -1  # else this process does it
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1", "spark.sql.adaptive.coalescePartitions.enabled": "false"}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        spark.sql(statement)
    finally:
        for name in settings:
            spark.conf.unset(name)


def append_with_a_hanging_task(spark: SparkSession, lake: Lake, rows: int) -> None:
    """Append where the first attempt of one task hangs when its rows are written: only another attempt can end."""

    def hang(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        context = TaskContext.get()
        if context and context.partitionId() == 0 and context.attemptNumber() == 0:
            time.sleep(3600)

    _rows(spark, rows, 4).mapInArrow(hang, _COLUMNS).writeTo("db.speculative").append()


def append_in_tasks(spark: SparkSession, lake: Lake, rows: int) -> None:
    """Append in four tasks."""
    _rows(spark, rows, 4).writeTo("db.many").option("distribution-mode", "none").append()


def append_with_another_python(spark: SparkSession, lake: Lake, python: str) -> str:
    """Append with executors that run another Python: the error."""
    context = spark.sparkContext
    before = context.pythonExec
    context.pythonExec = python
    try:
        with pytest.raises(UnsupportedError) as caught:
            _rows(spark, 10, 2).writeTo("db.other").append()
    finally:
        context.pythonExec = before
    return str(caught.value)


def _rows(spark: SparkSession, rows: int, tasks: int) -> DataFrame:
    return (
        spark.range(0, max(rows, 1000), 1, tasks)
        .where(f"id < {rows}")
        .select("id", F.col("id").cast("double").alias("amount"), F.concat(F.lit("r"), F.col("id") % 4).alias("region"))
    )
