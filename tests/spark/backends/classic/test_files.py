"""Files handed to Spark's own Parquet reader by classic sessions."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from support.fixtures.chosen_readers import native_refusal
from support.fixtures.data_files import written_files
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def evolve(catalog: Any, name: str, *steps: Any) -> None:
    for step in steps:
        with catalog.load_table(name).update_schema() as update:
            step(update)


def test_many_files_need_few_tasks(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64())]))
    table.append_files([f for n in range(40) for f in written_files(table, pa.table({"a": [n]}))])
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("a", "b"))
    frame = spark.table("db.t")
    assert frame.rdd.getNumPartitions() <= 8
    assert sorted(r.b for r in frame.collect()) == list(range(40))


def test_files_are_never_passed_over_whatever_the_session_says(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    frame = spark.table("db.orders")
    Path(orders.scan().plan().files[0].file.file_path.removeprefix("file://")).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"parquet"):
            frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_sparks_reader_is_the_same_one_whatever_the_session_says(spark: SparkSession, orders: Table) -> None:
    spark.sql("ALTER TABLE db.orders SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    orders.refresh().append(order_rows(1, 2, 3)).delete("id = 2")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        assert rows(spark, "SELECT id, _pos FROM db.orders WHERE id < 3") == [(1, 0)]
        assert native_refusal(orders.refresh().scan()) is None
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")


_FILES = 40
"""More than Spark looks up without a job of its own."""


@pytest.fixture
def parts(lake: Lake) -> Table:
    """A table of many files."""
    rows = pa.table({"part": pa.array(range(_FILES), pa.int32()), "n": pa.array(range(_FILES), pa.int64())})
    return lake.create_table("db.parts", rows.schema, partition_by=["part"]).append(rows)


def test_setting_that_the_user_makes_counts_for_the_next_read_of_many_files(spark: SparkSession, parts: Table) -> None:
    frame = spark.table("db.parts")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "1000")
    try:
        assert frame.select("n").rdd.getNumPartitions() == _FILES
    finally:
        spark.conf.unset("spark.sql.files.maxPartitionBytes")
    assert frame.agg(F.sum("n")).collect()[0][0] == sum(range(_FILES))
