"""CACHE TABLE, UNCACHE TABLE and REFRESH TABLE of lake tables, and frames that are cached."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from bergline import Table
from support.fixtures.add_deletes import add_deletes, equality_deletes
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _without_cache(spark: SparkSession) -> Iterator[None]:
    yield
    spark.catalog.clearCache()


def is_read_from_the_cache(frame: DataFrame) -> bool:
    return "InMemoryTableScan" in frame._jdf.queryExecution().executedPlan().toString()


@pytest.mark.parametrize("text", ["CACHE TABLE", "CACHE LAZY TABLE"])
def test_a_cached_table_is_read_from_the_cache_until_it_is_uncached(
    spark: SparkSession, orders: Table, text: str
) -> None:
    orders.append(order_rows(1, 2))
    assert spark.sql(f"{text} db.orders OPTIONS ('storageLevel' = 'DISK_ONLY')").collect() == []
    spark.sql("CACHE TABLE db.orders")  # it is already
    reads = [
        lambda: spark.table("db.orders"),
        lambda: spark.table("db.orders").filter("id > 1"),
        lambda: spark.sql("SELECT id FROM db.orders o WHERE amount > 0"),
        lambda: spark.sql("SELECT * FROM lake.db.orders JOIN db.orders USING (id)"),
    ]
    assert all(is_read_from_the_cache(read()) for read in reads)
    assert not is_read_from_the_cache(spark.sql("SELECT *, _pos FROM db.orders"))
    spark.sql("UNCACHE TABLE db.orders")
    assert not any(is_read_from_the_cache(read()) for read in reads)
    spark.sql("UNCACHE TABLE db.orders")


def test_what_this_process_changes_is_seen(spark: SparkSession, orders: Table) -> None:
    spark.sql("CACHE TABLE db.orders")
    spark.sql("INSERT INTO db.orders VALUES (1, 1.0, 'eu')")
    assert is_read_from_the_cache(spark.table("db.orders"))
    assert spark.table("db.orders").count() == spark.sql("SELECT * FROM db.orders WHERE id = 1").count() == 1
    spark.sql("UPDATE db.orders SET region = 'us'")
    assert [row.region for row in spark.sql("SELECT region FROM db.orders").collect()] == ["us"]
    assert spark.catalog.isCached("db.orders")
    spark.sql("REFRESH TABLE db.orders")
    assert spark.catalog.isCached("db.orders")
    assert spark.table("db.orders").count() == 1


def test_a_cached_frame_is_filled_again_after_a_change(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    cached = spark.table("db.orders").filter("id > 0").cache()
    assert cached.count() == 1
    spark.sql("INSERT INTO db.orders SELECT id + 1, amount, region FROM db.orders")
    assert cached.count() == 2
    spark.sql("DELETE FROM db.orders WHERE id = 1")
    assert is_read_from_the_cache(cached.select("id"))
    assert [row.id for row in cached.select("id").collect()] == [2]


def test_a_table_of_any_kind_is_cached_by_name(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    add_deletes(orders, equality_deletes(orders, pa.table({"id": pa.array([2], pa.int64())}), [1]))
    spark.sql("CACHE TABLE db.orders")
    assert is_read_from_the_cache(spark.table("db.orders"))
    assert spark.table("db.orders").count() == 2
    spark.sql("REFRESH TABLE db.orders")
    assert spark.table("db.orders").count() == 2


def test_a_new_table_of_the_name_is_not_cached(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("CACHE TABLE db.orders")
    spark.sql("DROP TABLE db.orders")
    spark.sql("CREATE TABLE db.orders (id BIGINT) USING iceberg")
    assert spark.table("db.orders").columns == ["id"]
    assert spark.table("db.orders").count() == 0
    assert not spark.catalog.isCached("db.orders")
