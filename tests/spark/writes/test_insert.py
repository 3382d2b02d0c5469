"""INSERT on lake tables: its forms, arguments and static partitions."""

import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark

DYNAMIC = "spark.sql.sources.partitionOverwriteMode"


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted((tuple(row) for row in spark.sql(text).collect()), key=str)


def ids_of(spark: SparkSession, table: str = "db.orders") -> list[int]:
    return sorted(row.id for row in spark.sql(f"SELECT id FROM {table}").collect())


def test_insert_in_all_its_forms(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("INSERT INTO db.orders BY NAME SELECT 'us' AS region, 2 AS ID")
    spark.sql("INSERT INTO db.orders TABLE db.orders")
    assert ids_of(spark) == [1, 1, 2, 2]
    spark.sql("WITH q AS (SELECT 3 AS id) INSERT OVERWRITE db.orders (region, id) SELECT 'eu', id FROM q")
    assert query(spark, "SELECT * FROM db.orders") == [(3, None, "eu")]
    spark.sql("INSERT INTO db.orders REPLACE WHERE id = 3 SELECT id + 1, amount, region FROM db.orders")
    assert ids_of(spark) == [4]
    spark.sql("INSERT INTO db.orders FROM db.orders SELECT id + 1, amount, region")
    assert ids_of(spark) == [4, 5]
    spark.sql("INSERT INTO db.orders SELECT :id, 1.0, 'eu'", args={"id": 6})
    assert ids_of(spark) == [4, 5, 6]


def test_insert_takes_arguments_and_keeps_braces_and_comments(spark: SparkSession, orders: Table) -> None:
    spark.sql("INSERT INTO db.orders VALUES (:id, :amount, '{x}') -- {y}", args={"id": 1, "amount": 2.5})
    spark.sql("INSERT INTO `db`.`orders` /* {z} */ SELECT ?, ?, region FROM db.orders", args=[2, 0.5])
    spark.sql("CREATE TABLE db.copy AS SELECT id + :n AS id FROM db.orders WHERE id > :low", args={"n": 10, "low": 1})
    assert sorted(map(tuple, spark.table("db.orders").collect())) == [(1, 2.5, "{x}"), (2, 0.5, "{x}")]
    assert [row.id for row in spark.table("db.copy").collect()] == [12]


def test_static_partition_values_go_to_their_columns_and_bound_the_overwrite(spark: SparkSession, lake: Lake) -> None:
    spark.sql(
        "CREATE TABLE db.p (id BIGINT, day DATE, region STRING, n INT) USING iceberg PARTITIONED BY (day, region, n)"
    )
    spark.sql("INSERT INTO db.p PARTITION (region = 'eu', n = '7') SELECT 1, DATE '2026-01-01'")
    spark.sql("INSERT INTO db.p PARTITION (day = '2026-01-02', region, n) VALUES (2, 'us', 7), (3, 'eu', 8)")
    spark.sql("INSERT INTO db.p PARTITION (region = null) (id) VALUES (4)")
    assert query(spark, "SELECT id, cast(day AS string), region, n FROM db.p") == [
        (1, "2026-01-01", "eu", 7),
        (2, "2026-01-02", "us", 7),
        (3, "2026-01-02", "eu", 8),
        (4, None, None, None),
    ]
    spark.sql("INSERT OVERWRITE db.p PARTITION (region = 'eu', day, n) VALUES (5, DATE '2026-03-01', 1)")
    assert ids_of(spark, "db.p") == [2, 4, 5]
    spark.sql("INSERT OVERWRITE db.p PARTITION (region = null) VALUES (6, null, null)")
    assert ids_of(spark, "db.p") == [2, 5, 6]
    spark.conf.set(DYNAMIC, "dynamic")
    try:
        spark.sql("INSERT OVERWRITE db.p PARTITION (region = 'eu') VALUES (7, DATE '2026-03-02', 1)")
    finally:
        spark.conf.unset(DYNAMIC)
    assert ids_of(spark, "db.p") == [2, 5, 6, 7]
