"""How rows become files on Spark: spread over tasks, ordered, cut; and what failed attempts leave behind."""

import datetime as dt
import itertools
import logging
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from rows import ORDERS, order_rows

import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.transforms import Bucket, TimeTransform, Transform, Truncate
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    DATE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
)
from bergline.spark.writes.data_files import MOST_BYTES, MOST_ROWS, in_small_batches
from bergline.spark.writes.keys import key_column

pytestmark = pytest.mark.spark


def files_of(table: Table) -> list[DataFile]:
    return [planned.file for planned in table.refresh().scan().plan().files]


def many(spark: SparkSession, rows: int = 400, tasks: int = 4) -> DataFrame:
    """Rows of four regions in each of some tasks."""
    return spark.range(0, rows, 1, tasks).select(
        "id", F.col("id").cast("double").alias("amount"), F.concat(F.lit("r"), F.col("id") % 4).alias("region")
    )


def rows_in_file(table: Table, file: DataFile) -> list[dict[str, Any]]:
    """The rows as they stand in a file."""
    return pq.read_table(file.file_path.removeprefix("file://")).to_pylist()


@pytest.mark.parametrize(("mode", "most_files"), [("hash", 4), ("range", 4), (None, 4), ("none", 16)])
def test_rows_of_a_partition_meet_in_one_file(
    spark: SparkSession, lake: Lake, mode: str | None, most_files: int
) -> None:
    properties = {"write.distribution-mode": mode} if mode else {}
    table = lake.create_table("db.t", ORDERS, partition_by=["region"], properties=properties)
    many(spark).writeTo("db.t").append()
    files = files_of(table)
    assert len(files) == most_files
    assert sum(f.record_count for f in files) == 400
    assert {f.partition for f in files} == {("r0",), ("r1",), ("r2",), ("r3",)}
    assert {f.sort_order_id for f in files} == {0}


@pytest.mark.parametrize("term", ["bucket(4, id)", "bucket(4, region)", "truncate(100, id)"])
def test_transformed_partitions_meet_too(spark: SparkSession, lake: Lake, term: str) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=[term])
    many(spark).writeTo("db.t").append()
    assert len(files_of(table)) == len({f.partition for f in files_of(table)}) > 1


def test_sort_order_is_kept_in_and_between_files(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS)
    table.replace_sort_order(["amount desc nulls last", "id"])
    shuffled = many(spark).orderBy(F.hash("id")).withColumn("amount", F.when(F.col("id") % 5 > 0, F.col("amount")))
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    try:
        shuffled.writeTo("db.t").append()
    finally:
        spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")
    files = files_of(table)
    assert len(files) > 1
    assert {f.sort_order_id for f in files} == {1}
    ordered = []
    for file in files:
        rows = [(row["amount"] is None, -(row["amount"] or 0), row["id"]) for row in rows_in_file(table, file)]
        assert rows == sorted(rows)
        ordered.append((rows[0], rows[-1]))
    ordered.sort()
    assert all(before[1] <= after[0] for before, after in itertools.pairwise(ordered))


def test_order_inside_partitions_comes_after_the_partition(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, partition_by=["region"])
    table.replace_sort_order(["id desc"])
    many(spark).writeTo("db.t").append()
    for file in files_of(table):
        found = [row["id"] for row in rows_in_file(table, file)]
        assert found == sorted(found, reverse=True)


def test_options_of_one_write_count_more_than_the_table(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"write.distribution-mode": "hash"})
    writer = many(spark, 20_000, 1).writeTo("db.t")
    writer.options(**{"target-file-size-bytes": 50_000, "compression-codec": "uncompressed"}).append()
    files = files_of(table)
    assert len(files) > 2
    codec = pq.ParquetFile(files[0].file_path.removeprefix("file://")).metadata.row_group(0).column(0)
    assert codec.compression == "UNCOMPRESSED"
    with pytest.raises(InvalidInputError, match="expected a whole number of 1 or more"):
        many(spark).writeTo("db.t").option("target-file-size-bytes", 0).append()


VALUES: list[tuple[IcebergType, str, list[Any]]] = [
    (INT, "int", [0, 34, -7, 2**31 - 1]),
    (LONG, "bigint", [0, 34, -7, 2**63 - 1]),
    (DATE, "date", [dt.date(2017, 11, 16), dt.date(1969, 12, 31), dt.date(1600, 2, 29)]),
    (STRING, "string", ["", "iceberg", "ünï", "🦀🦀🦀🦀🦀"]),
    (BINARY, "binary", [b"", b"\x00\x01\x02\x03\x04"]),
    (DecimalType(9, 2), "decimal(9,2)", [Decimal("14.20"), Decimal("-0.01")]),
]
TIMES = [dt.datetime(2017, 11, 16, 22, 31, 8), dt.datetime(1969, 12, 31, 23, 59, 59, 999999)]  # noqa: DTZ001


def test_spark_finds_the_same_buckets_and_groups_as_iceberg(spark: SparkSession) -> None:
    for type_, name, values in VALUES:
        assert keys_of(spark, Bucket(16), type_, name, values) == [apply(Bucket(16), type_, v) for v in values]
        if type_ != DATE:
            assert groups(spark, Truncate(3), type_, name, values)
        else:
            assert all(groups(spark, TimeTransform(unit), type_, name, values) for unit in ("year", "month", "day"))
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        for type_, name in ((TIMESTAMPTZ, "timestamp"), (TIMESTAMP, "timestamp_ntz")):
            texts = [f"{v}Z" if type_ == TIMESTAMPTZ else f"{v}" for v in TIMES]
            found = keys_of(spark, Bucket(16), type_, name, texts)
            assert found == [apply(Bucket(16), type_, v) for v in TIMES]
            for unit in ("year", "month", "day", "hour"):
                assert groups(spark, TimeTransform(unit), type_, name, texts, TIMES)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def apply(transform: Transform, type_: IcebergType, value: Any) -> Any:
    if isinstance(value, dt.datetime):
        value = (value - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1)  # noqa: DTZ001
    elif isinstance(value, dt.date):
        value = (value - dt.date(1970, 1, 1)).days
    return transform.apply(type_, value)


def keys_of(spark: SparkSession, transform: Transform, type_: IcebergType, name: str, values: list[Any]) -> list[Any]:
    schema = Schema(fields=(NestedField(1, "a.b", False, type_),))
    rows = [(i, v) for i, v in enumerate(values)]
    source = "string" if name.startswith("timestamp") else name
    frame = spark.createDataFrame(rows, f"i int, `a.b` {source}").withColumn("a.b", F.col("`a.b`").cast(name))
    key = key_column(1, transform, schema)
    assert key is not None
    return [row.key for row in frame.select("i", key.alias("key")).orderBy("i").collect()]


def groups(
    spark: SparkSession,
    transform: Transform,
    type_: IcebergType,
    name: str,
    values: list[Any],
    plain: list[Any] | None = None,
) -> bool:
    """Whether keys are equal where partitions are."""
    keys = keys_of(spark, transform, type_, name, values)
    expected = [apply(transform, type_, v) for v in plain or values]
    return all(
        (a == b) == (x == y) for a, x in zip(keys, expected, strict=True) for b, y in zip(keys, expected, strict=True)
    )


def failing_once(after: int) -> Any:
    """Passes rows through; each first attempt of a task fails when it has seen some."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        seen = 0
        for batch in batches:
            yield batch
            seen += batch.num_rows
            context = TaskContext.get()
            if context and context.attemptNumber() == 0 and seen >= after:
                raise RuntimeError("this attempt fails")

    return run


def test_tasks_that_fail_at_first_lose_and_double_nothing(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"write.target-file-size-bytes": "20000"})
    frame = many(spark, 40_000, 2).mapInArrow(failing_once(15_000), "id bigint, amount double, region string")
    frame.writeTo("db.t").append()
    assert sorted(row.id for row in spark.table("db.t").select("id").collect()) == list(range(40_000))
    named = {f.file_path for f in files_of(table)}
    assert set(table.io.list(f"{table.location}/data")) == named


def test_job_that_fails_leaves_no_snapshot_and_no_file(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).set_properties({"write.target-file-size-bytes": "20000"})
    before, files = orders.metadata_location, orders.io.list(orders.location)
    frame = many(spark, 40_000, 2).withColumn("amount", F.expr("id / (id - 39999)"))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        frame.writeTo("db.orders").append()
    assert orders.refresh().metadata_location == before
    assert orders.io.list(orders.location) == files


def test_progress_is_described_and_logged(spark: SparkSession, orders: Table, caplog: pytest.LogCaptureFixture) -> None:
    spark.sparkContext.setJobDescription("mine")
    try:
        with caplog.at_level(logging.INFO, logger="bergline.spark"):
            many(spark).writeTo("db.orders").append()
        assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    finally:
        spark.sparkContext.setLocalProperty("spark.job.description", None)
    assert "bergline: write to db.orders: 400 rows in 4 files" in caplog.text


def test_stopped_session_is_one_clear_error(
    spark: SparkSession, lake: Lake, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = many(spark)
    writer = frame.writeTo("db.orders")
    monkeypatch.setattr(spark.sparkContext, "_jsc", None)  # what stop() leaves behind, without ending other tests
    for use in (
        lambda: spark.sql("INSERT INTO db.orders VALUES (1, 1.0, 'eu')"),
        lambda: spark.table("db.orders"),
        lambda: frame.writeTo("db.orders"),
        lambda: frame.write.insertInto("db.orders"),
        writer.append,
        writer.createOrReplace,
        lambda: bergline.spark.attach(spark, lake),
    ):
        with pytest.raises(InvalidInputError, match="expected a running Spark session, found one that was stopped"):
            use()
    monkeypatch.undo()
    assert orders.refresh().current_snapshot is None


def largest_batch(spark: SparkSession, columns: str) -> int:
    """How many rows came at once to a task, as a write of these columns would have them."""
    frame = spark.range(20_000, numPartitions=1).selectExpr("id", *columns.split(";"))

    def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"n": pa.array([max(batch.num_rows for batch in batches)], pa.int64())})

    with in_small_batches(frame.mapInArrow(count, "n bigint"), frame.schema) as counted:
        return int(counted.collect()[0].n)


def test_rows_that_are_surely_small_come_without_being_measured(spark: SparkSession) -> None:
    assert largest_batch(spark, "'x' AS a; 1.5D AS b") == 2000
    assert largest_batch(spark, "binary('x') AS a") == 10_000
    assert largest_batch(spark, "array(1) AS a") == 10_000
    assert [spark.conf.get(name, None) for name in (MOST_ROWS, MOST_BYTES)] == [None, None]


def test_limits_of_batches_that_the_user_set_are_kept(spark: SparkSession) -> None:
    spark.conf.set(MOST_ROWS, "700")
    try:
        assert largest_batch(spark, "'x' AS a") == 700
        assert spark.conf.get(MOST_ROWS) == "700"
    finally:
        spark.conf.unset(MOST_ROWS)
