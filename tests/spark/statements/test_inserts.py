"""INSERT and CREATE TABLE … AS with columns of type VOID, which have nothing but nulls."""

import pytest
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError

pytestmark = pytest.mark.spark

V3 = "TBLPROPERTIES ('format-version' = '3')"


def rows(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def test_void_columns_take_nulls(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("db", if_not_exists=True)
    spark.sql(f"CREATE TABLE db.t (id INT, nothing VOID) {V3}")
    spark.sql("INSERT INTO db.t VALUES (1, NULL)")
    spark.sql("SELECT 2 AS id, NULL AS nothing").writeTo("db.t").append()
    spark.sql("UPDATE db.t SET id = 5 WHERE id = 1")
    spark.sql(
        "MERGE INTO db.t USING (SELECT 2 AS id UNION ALL SELECT 7) s ON t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET id = 9, nothing = NULL "
        "WHEN NOT MATCHED THEN INSERT (id, nothing) VALUES (s.id, NULL)"
    )
    assert rows(spark, "SELECT id, nothing IS NULL FROM db.t") == [(5, True), (7, True), (9, True)]
    with pytest.raises(InvalidInputError, match="expected `void`, found `string` for column `nothing`"):
        spark.sql("INSERT INTO db.t VALUES (1, 'x')")
    spark.sql(f"CREATE TABLE db.copied {V3} AS SELECT id, nothing FROM db.t WHERE id = 5")
    assert rows(spark, "SELECT * FROM db.copied") == [(5, None)]


def test_void_columns_need_format_version_3_and_are_not_nested(spark: SparkSession, lake: Lake) -> None:
    lake.create_namespace("db", if_not_exists=True)
    with pytest.raises(BerglineError, match="version 3"):
        spark.sql("CREATE TABLE db.t AS SELECT 1 AS id, NULL AS nothing")
    with pytest.raises(UnsupportedError, match=r"found `void` in column `a\.element`"):
        spark.sql(f"CREATE TABLE db.t {V3} AS SELECT array(NULL) AS a")
    assert lake.list_tables("db") == []
