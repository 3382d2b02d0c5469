"""Tables that are created or replaced with the rows of a frame, in one commit."""

from collections.abc import Callable

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.functions import partitioning

from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, NotFoundError, RefusedError
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


def ids_of(spark: SparkSession, table: str = "db.orders") -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Orders by region: 1 and 2 in eu, 3 in us."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1, 2)).append(order_rows(3, region="us"))


def test_table_is_created_with_its_rows_in_one_commit(spark: SparkSession, lake: Lake) -> None:
    frame = spark.sql("SELECT 1 AS id, 'a' AS s, TIMESTAMP '2026-01-02 03:04:05' AS ts, named_struct('x', 1S) AS who")
    (
        frame.writeTo("db.new")
        .using("iceberg")
        .partitionedBy(partitioning.days("ts"), partitioning.bucket(4, "id"), F.col("s"))
        .tableProperty("format-version", "3")
        .tableProperty("owner", "me")
        .option("snapshot-property.Run", "r1")
        .create()
    )
    table = lake.load_table("db.new")
    assert [f"{f.transform}" for f in table.spec.fields] == ["day", "bucket[4]", "identity"]
    assert (table.metadata.format_version, table.properties["owner"]) == (3, "me")
    assert [str(f.type) for f in table.schema.fields][:3] == ["int", "string", "timestamptz"]
    assert len(table.metadata.snapshots) == 1
    assert table.current_snapshot
    assert table.current_snapshot.summary["Run"] == "r1"
    assert table.metadata_location.rsplit("/", 1)[-1].startswith("00000-")
    assert spark.table("db.new").collect() == frame.collect()
    with pytest.raises(AlreadyExistsError) as caught:
        frame.writeTo("db.new").create()
    assert isinstance(caught.value, AnalysisException)


def test_replaced_table_begins_again_and_keeps_its_history(spark: SparkSession, parts: Table, lake: Lake) -> None:
    spark.range(2).withColumn("word", F.lit("x")).writeTo("db.parts").replace()
    table = lake.load_table("db.parts")
    assert table.schema.names.keys() == {"id", "word"}
    assert len(table.metadata.snapshots) == 3
    assert ids_of(spark, "db.parts") == [0, 1]
    with pytest.raises(NotFoundError, match=r"no table `db\.nope`"):
        spark.range(2).writeTo("db.nope").replace()
    spark.table("db.parts").where("id = 1").writeTo("db.parts").createOrReplace()
    assert ids_of(spark, "db.parts") == [1]
    spark.range(1).writeTo("db.fresh").createOrReplace()
    assert ids_of(spark, "db.fresh") == [0]


def test_failed_creation_leaves_no_table_and_no_file(spark: SparkSession, lake: Lake) -> None:
    frame = spark.range(2).withColumn("x", F.expr("1 DIV (id - 1)"))
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        frame.writeTo("db.new").create()
    assert lake.list_tables("db") == []


@pytest.mark.parametrize(
    "write",
    [
        lambda rows: rows.write.mode("overwrite").saveAsTable("db.orders.branch_b"),
        lambda rows: rows.writeTo("db.orders.branch_b").createOrReplace(),
        lambda rows: rows.sparkSession.sql("CREATE OR REPLACE TABLE db.orders.snapshots (id BIGINT) USING iceberg"),
        lambda rows: rows.sparkSession.sql("CREATE TABLE db.orders.branch_c USING iceberg AS SELECT 1 AS id"),
    ],
)
def test_branches_and_metadata_tables_are_not_made_as_tables(
    spark: SparkSession, lake: Lake, orders: Table, write: Callable[[DataFrame], object]
) -> None:
    orders.append(order_rows(1)).refs.create_branch("b")
    before = lake.load_table("db.orders").metadata_location
    with pytest.raises(RefusedError, match=r"cannot make or replace `db\.orders\..*`: it is no table"):
        write(spark.range(1))
    assert lake.load_table("db.orders").metadata_location == before
    assert lake.list_tables("db") == ["db.orders"]
