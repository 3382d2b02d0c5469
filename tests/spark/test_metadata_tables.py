"""Metadata tables through Spark SQL: every name, at every version that the name takes."""

import uuid

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import NotFoundError, UnsupportedError
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from support.fixtures.add_deletes import add_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def parts(lake: Lake) -> Table:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"]).append(order_rows(1, 2))
    table.refs.create_tag("v1")
    table.append(order_rows(3, region="us"))
    (first,) = (p.file.file_path for p in table.scan("id = 1").plan().files)
    add_deletes(table, position_deletes(table, {first: [0]}))
    return table


@pytest.mark.parametrize("name", METADATA_TABLES)
def test_every_name_is_a_table(name: str, spark: SparkSession, parts: Table) -> None:
    frame, expected = spark.sql(f"SELECT * FROM db.parts.{name}"), parts.inspect(name)
    assert frame.columns == expected.column_names
    assert [field.nullable for field in frame.schema] == [field.nullable for field in expected.schema]
    assert frame.count() == expected.num_rows > 0
    assert spark.table(f"lake.db.parts.{name.upper()}").columns == expected.column_names


def test_queries_join_and_look_inside(spark: SparkSession, parts: Table) -> None:
    rows = spark.sql(
        "SELECT f.partition.region, f.readable_metrics.id.upper_bound, s.operation FROM db.parts.entries e "
        "JOIN db.parts.snapshots s ON s.snapshot_id = e.snapshot_id "
        "JOIN db.parts.data_files f ON f.file_path = e.data_file.file_path"
    ).collect()
    assert sorted(tuple(row) for row in rows) == [("eu", 2, "append"), ("us", 3, "append")]
    (row,) = spark.sql("SELECT lower_bounds[1] FROM db.parts.data_files LIMIT 1").collect()
    assert bytes(row[0])[1:] == bytes(7)


def test_versions_by_clause_and_by_option(spark: SparkSession, parts: Table) -> None:
    first = parts.metadata.snapshots[0].snapshot_id
    assert spark.sql("SELECT * FROM db.parts.files VERSION AS OF 'v1'").count() == 1
    assert spark.sql(f"SELECT * FROM db.parts.files VERSION AS OF {first}").count() == 1
    assert spark.sql("SELECT * FROM db.parts.files TIMESTAMP AS OF '2100-01-01'").count() == 3
    assert spark.read.option("versionAsOf", "v1").table("db.parts.manifests").count() == 1
    assert spark.sql("SELECT * FROM db.parts.snapshots VERSION AS OF 'v1'").count() == 3
    with pytest.raises(UnsupportedError, match="expected no version for `all_files`"):
        spark.sql("SELECT * FROM db.parts.all_files VERSION AS OF 'v1'")
    with pytest.raises(NotFoundError, match="no branch or tag `nope`"):
        spark.sql("SELECT * FROM db.parts.files VERSION AS OF 'nope'")


def test_metadata_tables_show_the_wap_branch_too(spark: SparkSession, parts: Table) -> None:
    parts.append(order_rows(4), branch="dev")
    spark.conf.set("spark.wap.branch", "dev")
    assert spark.sql("SELECT * FROM db.parts").count() == 3
    assert spark.sql("SELECT * FROM db.parts.data_files").count() == 3
    assert spark.sql("SELECT * FROM db.parts.data_files VERSION AS OF 'main'").count() == 2
    assert spark.sql("SELECT DISTINCT file_path FROM db.parts.all_data_files").count() == 3


def test_types_that_spark_says_otherwise(spark: SparkSession, lake: Lake) -> None:
    """A UUID is text, a time without a zone stays one, bytes of a fixed length are bytes."""
    columns = {
        "u": pa.array([uuid.UUID(int=7).bytes], pa.uuid()),
        "ts": pa.array([1], pa.timestamp("us")),
        "fixed": pa.array([b"abc"], pa.binary(3)),
        "ids": pa.nulls(1, pa.list_(pa.uuid())),
    }
    rows = pa.table(columns)
    lake.create_table("db.t", rows.schema, partition_by=["u", "ts"]).append(rows)
    frame = spark.sql("SELECT partition, readable_metrics.fixed.lower_bound, readable_metrics.ts FROM db.t.files")
    ((partition, fixed, ts),) = frame.collect()
    assert (partition["u"], bytes(fixed)) == (str(uuid.UUID(int=7)), b"abc")
    assert partition["ts"] == ts["lower_bound"]
    assert frame.schema["partition"].dataType["ts"].dataType.typeName() == "timestamp_ntz"
    assert spark.sql("SELECT row FROM db.t.position_deletes").schema["row"].dataType["ids"].dataType.simpleString() == (
        "array<string>"
    )


def test_unknown_names_list_the_near_ones(spark: SparkSession, parts: Table) -> None:
    with pytest.raises(NotFoundError, match="no metadata table `file` of") as caught:
        spark.sql("SELECT * FROM db.parts.file")
    assert isinstance(caught.value, PySparkException)
    assert "files" in caught.value.near
