"""How rows become files: by tasks that may fail, or in the driver, which writes few rows as tasks would."""

import contextlib
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.spark.writes import data_files
from bergline.spark.writes.data_files import MOST_BYTES, MOST_ROWS, has_local_rows, in_small_batches
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark

EVERY_TYPE = """
SELECT * FROM VALUES
  (true, 1, 2L, float('NaN'), -0.0D, date'2026-01-02', timestamp'2026-01-02 03:04:05.000006', 1.50BD, 'zürich',
   X'00ff', named_struct('x', 1, 'y', 'a'), array(1, NULL), map('k', 1.5D)),
  (NULL, -1, NULL, float('1.5'), 0.0D, date'0001-01-01', timestamp'1900-01-01 00:00:00', -1.25BD, repeat('😀', 20),
   NULL, NULL, array(), map())
AS t(b, i, l, f, d, day, ts, n, s, bytes, point, list, pairs)
"""


def files_of(table: Table) -> list[DataFile]:
    return [planned.file for planned in table.refresh().scan().plan().files]


def many(spark: SparkSession, rows: int = 400, tasks: int = 4) -> DataFrame:
    """Rows of four regions in each of some tasks."""
    return spark.range(0, rows, 1, tasks).select(
        "id", F.col("id").cast("double").alias("amount"), F.concat(F.lit("r"), F.col("id") % 4).alias("region")
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


def losing_the_shuffle(directories: list[str], done: Path) -> Any:
    """Passes rows through; the first task to end loses the shuffle files that its stage reads, and fails."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches
        with contextlib.suppress(FileExistsError):
            done.mkdir()
            files = [file for directory in directories for file in Path(directory).rglob("shuffle_*")]
            newest = max(int(file.name.split("_")[1]) for file in files)
            for file in files:
                if file.name.startswith(f"shuffle_{newest}_"):
                    file.unlink()
            raise RuntimeError("this attempt fails")

    return run


def test_stage_that_runs_again_leaves_no_file_of_its_first_attempt(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"write.target-file-size-bytes": "20000"})
    blocks: Any = spark.sparkContext._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()
    lose = losing_the_shuffle([str(directory) for directory in blocks.localDirs()], tmp_path / "lost")
    frame = many(spark, 40_000, 1).repartition(2, "id").mapInArrow(lose, "id bigint, amount double, region string")
    frame.writeTo("db.t").append()
    assert sorted(row.id for row in spark.table("db.t").select("id").collect()) == list(range(40_000))
    named = {f.file_path for f in files_of(table)}
    assert set(table.io.list(f"{table.location}/data")) == named


def test_nothing_is_listed_where_every_task_ran_once(
    spark: SparkSession, orders: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: list[str] = []
    monkeypatch.setattr(data_files, "_remove_files", lambda _io, location, *_, **__: listed.append(location))
    many(spark).repartition(2, "id").writeTo("db.orders").append()
    assert len(files_of(orders)) == 2
    assert listed == []


def test_rows_that_are_refused_leave_no_file_of_attempts_that_failed(spark: SparkSession, orders: Table) -> None:
    orders.set_properties({"write.target-file-size-bytes": "20000"})
    rows = many(spark, 40_000, 2).withColumn("id", F.expr("nullif(id, 39999)"))
    frame = rows.mapInArrow(failing_once(15_000), "id bigint, amount double, region string")
    with pytest.raises(InvalidInputError, match="`id`"):
        frame.writeTo("db.orders").append()
    assert orders.io.list(f"{orders.location}/data") == []


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


def described(file: DataFile) -> dict[str, Any]:
    """All that a manifest says of a file but its name."""
    return msgspec.structs.asdict(msgspec.structs.replace(file, file_path=""))


def test_rows_of_every_type_are_written_as_tasks_write_them(spark: SparkSession, lake: Lake) -> None:
    rows = spark.sql(EVERY_TYPE)
    rows.limit(0).writeTo("db.here").create()
    rows.limit(0).writeTo("db.there").create()
    assert has_local_rows(rows)
    rows.writeTo("db.here").append()
    rows.repartition(1).writeTo("db.there").append()
    here, there = lake.load_table("db.here"), lake.load_table("db.there")
    assert [described(f) for f in files_of(here)] == [described(f) for f in files_of(there)]
    assert here.scan().to_arrow().to_pylist().__repr__() == there.scan().to_arrow().to_pylist().__repr__()  # NaN


def test_rows_are_split_by_partition_and_stand_in_the_tables_order(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id bigint, region string) USING iceberg PARTITIONED BY (region)")
    spark.sql("ALTER TABLE db.t WRITE ORDERED BY id DESC")
    spark.sql("INSERT INTO db.t VALUES (1, 'eu'), (5, 'us'), (3, 'eu'), (2, 'us'), (4, 'eu')")
    table = lake.load_table("db.t")
    assert sorted(f.partition for f in files_of(table)) == [("eu",), ("us",)]
    assert {f.sort_order_id for f in files_of(table)} == {table.metadata.default_sort_order_id}
    assert [r["id"] for r in table.scan("region = 'eu'").to_arrow().to_pylist()] == [4, 3, 1]


@pytest.mark.parametrize(
    ("text", "local"),
    [
        ("VALUES (1, 'a'), (2, 'b')", True),
        ("SELECT 1, 'a'", True),
        ("SELECT id, 'a' FROM range(256) WHERE id > 2", True),
        ("SELECT id, 'a' FROM range(257)", False),
        ("SELECT id, 'a' FROM range(1000) LIMIT 9", True),
        ("SELECT a.col1, b.col2 FROM VALUES (1, 'a') a JOIN VALUES (1, 'b') b ON a.col1 = b.col1", True),
        ("SELECT id, explode(array(1, 2)) FROM range(3)", False),
        ("SELECT id, region FROM db.orders LIMIT 1", False),
    ],
)
def test_few_rows_are_local_where_spark_knows_that_they_are_few(
    spark: SparkSession, orders: Table, text: str, local: bool
) -> None:
    orders.append(order_rows(1, 2))
    assert has_local_rows(spark.sql(text)) == local


def test_many_rows_are_left_to_tasks(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_files, "MOST_LOCAL_ROWS", 1)
    rows: DataFrame = spark.sql("VALUES (1), (2)").toDF("id")
    assert not has_local_rows(rows)
    rows.writeTo("db.t").create()
    assert lake.load_table("db.t").scan().to_arrow().num_rows == 2


def test_rows_that_do_not_fit_leave_no_file(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id int NOT NULL) USING iceberg")
    with pytest.raises(Exception, match="required column `id`"):
        spark.sql("INSERT INTO db.t VALUES (1), (NULL)")
    table = lake.load_table("db.t")
    assert table.metadata.current_snapshot_id is None
    assert [f for f in table.io.list(table.location) if f.endswith(".parquet")] == []
