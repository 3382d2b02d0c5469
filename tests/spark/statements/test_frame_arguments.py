"""Frames, columns and values as `{arguments}` of a statement, beside lake tables."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline import Table
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def test_frames_stand_beside_lake_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    wanted = spark.range(2, 5)
    query = "SELECT {a}.id, o.region FROM {a} JOIN db.orders AS o ON o.id = {a}.id WHERE {c} < {most} AND region = {r}"
    found = spark.sql(query, a=wanted, c=F.col("amount"), most=1000, r="eu")
    assert sorted(row.id for row in found.collect()) == [2, 3]
    assert spark.sql("SELECT {a[id]} FROM {a} WHERE id > :n", {"n": 3}, a=wanted).collect() == [(4,)]
    assert spark.sql("SELECT '{{}}' AS braces, count(*) AS n FROM db.orders", a=wanted).collect() == [("{}", 3)]
    assert spark.catalog.listTables() == []


def test_frames_change_rows_of_lake_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    changes = spark.createDataFrame([(2, 20.0), (9, 90.0)], "id BIGINT, amount DOUBLE")
    spark.sql(
        """
        MERGE INTO db.orders AS o USING {changes} AS c ON o.id = c.id
        WHEN MATCHED THEN UPDATE SET amount = c.amount
        WHEN NOT MATCHED THEN INSERT (id, amount, region) VALUES (c.id, c.amount, {region})
        """,
        changes=changes,
        region="us",
    )
    spark.sql("DELETE FROM db.orders WHERE id IN (SELECT id - 1 FROM {c})", c=changes)
    spark.sql("UPDATE db.orders SET region = 'x' WHERE id IN (SELECT max(id) FROM {c})", c=changes)
    spark.sql("INSERT INTO db.orders SELECT id + 100, amount, 'y' FROM {c}", c=changes)
    rows = spark.sql("SELECT id, amount, region FROM db.orders WHERE id <> 3 ORDER BY id")
    assert rows.collect() == [(2, 20.0, "eu"), (9, 90.0, "x"), (102, 20.0, "y"), (109, 90.0, "y")]


def test_views_and_tables_of_sparks_take_frames_as_ever(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    few = spark.range(1)
    spark.sql("CREATE OR REPLACE TEMP VIEW v AS SELECT o.id FROM db.orders o, {few}", few=few)
    try:
        assert spark.table("v").count() == 2
    finally:
        spark.catalog.dropTempView("v")
    plan = spark.sql("EXPLAIN SELECT * FROM {few} WHERE id = 1", few=few).collect()[0][0]
    assert "Range" in plan
