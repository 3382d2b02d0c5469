"""Writes that add columns to a table: INSERT WITH SCHEMA EVOLUTION, and the option `mergeSchema`."""

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import InvalidInputError, UnsupportedError

pytestmark = pytest.mark.spark


@pytest.fixture
def table(spark: SparkSession, lake: Lake) -> Table:
    spark.sql("CREATE TABLE db.t (id INT COMMENT 'the id', data STRING) USING iceberg")
    return lake.load_table("db.t")


def columns(table: Table) -> list[str]:
    return [f"{field.name} {field.type}" for field in table.refresh().schema.fields]


def rows(spark: SparkSession) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql("SELECT * FROM db.t").collect()), key=str)


def test_insert_takes_over_columns_and_wider_types_in_one_commit(spark: SparkSession, table: Table) -> None:
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO db.t VALUES (1, 'a')")
    assert columns(table) == ["id int", "data string"]
    versions = len(table.metadata.metadata_log)
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO db.t SELECT 5000000000, 'b', 7 AS extra")
    assert columns(table) == ["id long", "data string", "extra int"]
    assert len(table.metadata.metadata_log) == versions + 1
    spark.sql("WITH q AS (SELECT 8 AS other, 2 AS ID) INSERT WITH SCHEMA EVOLUTION INTO db.t BY NAME SELECT * FROM q")
    spark.sql("INSERT WITH SCHEMA EVOLUTION INTO db.t (data, more) SELECT 3, named_struct('x', 1)")
    assert columns(table)[3:] == ["other int", "more struct<x: int>"]
    assert table.schema.find("id").doc == "the id"
    assert rows(spark) == [
        (1, "a", None, None, None),
        (2, None, None, 8, None),
        (5000000000, "b", 7, None, None),
        (None, "3", None, None, (1,)),
    ]
    spark.sql(
        "INSERT WITH SCHEMA EVOLUTION OVERWRITE db.t BY NAME SELECT 6 AS id, named_struct('x', 1, 'y', 2) AS more"
    )
    assert rows(spark) == [(6, None, None, None, (1, 2))]


def test_insert_that_fails_leaves_the_columns(spark: SparkSession, table: Table) -> None:
    for text, message in {
        "SELECT 1": "expected 2 columns",
        "BY NAME SELECT 1 AS new, 'x' AS id": "expected `int`, found `string`",
        "BY NAME SELECT 1 AS id, 'a' COLLATE UTF8_LCASE AS new": "collation `UTF8_LCASE` of column `new`",
        "BY NAME SELECT 1 AS new, CAST(X'C1' AS STRING) AS data": "expected text in UTF-8, found other bytes",
    }.items():
        with pytest.raises((InvalidInputError, UnsupportedError), match=message):
            spark.sql(f"INSERT WITH SCHEMA EVOLUTION INTO db.t {text}")
    assert columns(table) == ["id int", "data string"]
    assert not table.metadata.snapshots


def test_frames_merge_their_schema_where_the_table_allows_it(spark: SparkSession, table: Table) -> None:
    frame = spark.sql("SELECT 1 AS w, 1 AS ID")
    with pytest.raises(
        InvalidInputError, match=r"expected the table property `write\.spark\.accept-any-schema`"
    ) as refused:
        frame.writeTo("db.t").option("mergeSchema", "true").append()
    assert "INSERT WITH SCHEMA EVOLUTION" in refused.value.hints[1]
    spark.sql("ALTER TABLE db.t SET TBLPROPERTIES ('write.spark.accept-any-schema' = 'true')")
    with pytest.raises(AnalysisException, match="no column `w`"):
        frame.writeTo("db.t").append()
    frame.writeTo("db.t").option("mergeSchema", "true").append()
    frame.toDF("x", "id").write.option("merge-schema", "true").insertInto("db.t")
    frame.toDF("y", "id").write.mode("append").option("mergeSchema", "true").saveAsTable("db.t")
    frame.toDF("z", "id").writeTo("db.t.branch_main").option("mergeSchema", "true").overwrite("id = 7")
    assert columns(table) == ["id int", "data string", "w int", "x int", "y int", "z int"]
    assert rows(spark) == [(1, None, *(1 if n == i else None for i in range(4))) for n in range(4)]
