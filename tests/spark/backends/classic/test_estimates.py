"""What Spark's optimizer knows of tables that our own reader reads."""

import uuid

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bergline import Lake, Table

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("u", pa.uuid())])
ROWS = 2000


def size(rows: DataFrame) -> int:
    return int(rows._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())


@pytest.fixture
def uuids(lake: Lake) -> Table:
    """A table that Spark's own reader cannot read."""
    data = [{"id": n, "u": uuid.UUID(int=n).bytes} for n in range(ROWS)]
    return lake.create_table("db.u", SCHEMA).append(pa.Table.from_pylist(data, SCHEMA))


def test_the_size_follows_the_rows(spark: SparkSession, uuids: Table) -> None:
    rows = spark.table("db.u")
    first = size(rows)
    # as Spark reckons: a long and a string for each row, and a byte for the relation that watches the table
    assert first == ROWS * (8 + 8 + 20) + 1
    uuids.append(uuids.scan().to_arrow())
    assert size(spark.table("db.u")) == 2 * (first - 1) + 1
    assert rows.count() == ROWS
    assert rows.alias("a").join(rows.alias("b"), "id").count() == ROWS


def test_a_large_table_is_not_broadcast(spark: SparkSession, uuids: Table) -> None:
    assert uuids
    before = spark.conf.get("spark.sql.autoBroadcastJoinThreshold")
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", ROWS * 10)
    try:
        joined = spark.sql("SELECT * FROM db.u JOIN (SELECT id + 1 AS other FROM db.u) ON id = other")
        assert len(joined.collect()) == ROWS - 1
        plan = joined._jdf.queryExecution().executedPlan().toString()
    finally:
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", before)
    assert "isFinalPlan=true" in plan
    assert "SortMergeJoin" in plan
    assert "BroadcastHashJoin" not in plan.partition("Initial Plan")[0]


@pytest.mark.parametrize("mode", ["copy-on-write", "merge-on-read"])
def test_a_table_is_as_large_as_its_files(spark: SparkSession, lake: Lake, mode: str) -> None:
    schema = pa.schema([("id", pa.int64()), ("n", pa.int64())])
    table = lake.create_table("db.t", schema, properties={"write.delete.mode": mode})
    table.append(pa.table({"id": range(ROWS), "n": range(ROWS)}, schema))
    (file,) = table.scan().plan().files
    plain = spark.read.parquet(file.file.file_path)
    for columns in ("id", "id, n"):
        found, expected = (size(rows.selectExpr(*columns.split(", "))) for rows in (spark.table("db.t"), plain))
        assert found == pytest.approx(expected, rel=0.01)
