"""How rows are spread over tasks and ordered inside them before they are written."""

import functools
import itertools
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from support.fixtures.rows import ORDERS

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


@pytest.mark.kinds(2)
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


def test_partitions_of_next_to_nothing_are_joined(spark: SparkSession, lake: Lake) -> None:
    def files_written(rows: DataFrame, **options: str) -> int:
        before = len(lake.load_table("db.t").scan().plan().files)
        rows.writeTo("db.t").options(**options).append()
        return len(lake.load_table("db.t").scan().plan().files) - before

    spark.sql("CREATE TABLE db.t (id bigint, part int) USING iceberg")
    few = 2 * spark.sparkContext.defaultParallelism
    rows = spark.range(0, 2000, 1, 20).selectExpr("id", "CAST(id % 3 AS INT) AS part")
    own = F.udf(lambda part: part, "int")
    pieces = functools.reduce(DataFrame.union, [rows.where(f"id % 5 = {n}") for n in range(5)])
    assert files_written(rows) == files_written(rows.where("id >= 0")) == files_written(pieces) == few
    assert files_written(rows, **{"distribution-mode": "none"}) == 20
    assert files_written(rows.repartition(7)) == 7
    assert files_written(rows.coalesce(9)) == 9
    assert files_written(rows.sortWithinPartitions("id")) == 20
    assert files_written(rows.withColumn("part", own("part"))) == 20  # nobody knows what its tasks cost
    assert files_written(rows.mapInArrow(lambda batches: batches, rows.schema)) == 20
    assert files_written(spark.createDataFrame(rows.rdd, rows.schema)) == 20  # nobody knows how much it is
    assert spark.table("db.t").groupBy("id").count().where("count != 10").count() == 0
