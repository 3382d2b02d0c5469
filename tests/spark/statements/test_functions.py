"""Temporary SQL functions that read lake tables: each call reads them as they are in its statement."""

from collections.abc import Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import NotFoundError, UnsupportedError
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple]:
    return [tuple(row) for row in spark.sql(text).collect()]


@pytest.fixture
def functions(spark: SparkSession, orders: Table) -> Iterator[SparkSession]:
    orders.append(order_rows(1, 2, 3))
    spark.sql("USE db")
    spark.sql(
        "CREATE TEMPORARY FUNCTION largest(x INT) RETURNS BIGINT RETURN SELECT max(orders.id) FROM orders WHERE id < x"
    )
    spark.sql("USE spark_catalog.default")
    spark.sql(
        "CREATE TEMPORARY FUNCTION above(low BIGINT) RETURNS TABLE(id BIGINT, region STRING) "
        "RETURN SELECT o.id, o.region FROM db.orders AS o JOIN lake.db.orders p ON o.id = p.id WHERE o.id > low"
    )
    spark.sql(
        "CREATE TEMPORARY FUNCTION both(x INT) RETURNS BIGINT RETURN largest(x) + (SELECT count(*) FROM above(x))"
    )
    yield spark
    for name in ("largest", "above", "both"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")


def test_a_call_reads_the_tables_of_its_statement(functions: SparkSession, orders: Table) -> None:
    spark = functions
    assert rows(spark, "SELECT largest(3), largest(100)") == [(2, 3)]
    assert sorted(rows(spark, "SELECT id FROM above(1)")) == [(2,), (3,)]
    assert rows(spark, "SELECT both(2)") == [(2,)]
    before = spark.sql("SELECT largest(100)")
    orders.append(order_rows(7))
    assert rows(spark, "SELECT largest(100), count(*) FROM db.orders") == [(7, 4)]
    assert rows(spark, "SELECT both(2)") == [(3,)]
    assert before.collect() == [(3,)]
    assert rows(spark, "SELECT o.id, a.id FROM db.orders o, LATERAL above(o.id) a WHERE o.id > 2") == [(3, 7)]
    spark.sql("INSERT INTO db.orders SELECT largest(100) + 1, 1.0, 'us'")
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT largest(100)'") == [(8,)]
    script = "BEGIN DELETE FROM db.orders WHERE id = largest(100); SELECT largest(100); END"
    assert rows(spark, script) == [(7,)]
    with pytest.raises(AnalysisException, match="UNCLOSED_BRACKETED_COMMENT"):
        spark.sql("SELECT largest(1) /* open")
    assert rows(spark, "SHOW VIEWS") == []
    assert {"above", "both", "largest"} <= {row[0] for row in rows(spark, "SHOW USER FUNCTIONS")}


def test_functions_that_no_longer_fit_their_tables_say_so(functions: SparkSession, lake: Lake) -> None:
    spark = functions
    spark.sql("ALTER TABLE db.orders RENAME COLUMN region TO place")
    with pytest.raises(
        NotFoundError, match=r"no column `region` any more in `lake\.db\.orders`, which function `above`"
    ):
        spark.sql("SELECT * FROM above(1)")
    assert rows(spark, "SELECT largest(3)") == [(2,)]
    lake.drop_table("db.orders")
    with pytest.raises(NotFoundError, match=r"no table `db\.orders`, which function `largest` reads"):
        spark.sql("SELECT largest(3)")
    assert rows(spark, "SELECT largest FROM VALUES (1) AS t(largest)") == [(1,)]
    spark.sql("CREATE OR REPLACE TEMPORARY FUNCTION largest(x INT) RETURNS INT RETURN x + 1")
    assert rows(spark, "SELECT largest(3)") == [(4,)]
    spark.udf.register("above", lambda x: f"{x}")
    assert rows(spark, "SELECT above(3)") == [("3",)]
    spark.sql("DROP TEMPORARY FUNCTION both")
    with pytest.raises(AnalysisException, match="UNRESOLVED_ROUTINE"):
        spark.sql("SELECT both(3)")


def test_a_function_in_sparks_catalog_that_reads_lake_tables_is_refused(spark: SparkSession, orders: Table) -> None:
    with pytest.raises(UnsupportedError, match=r"expected a temporary function for `db\.orders`") as caught:
        spark.sql("CREATE FUNCTION f() RETURNS BIGINT RETURN SELECT max(id) FROM db.orders")
    assert "CREATE TEMPORARY FUNCTION" in caught.value.hints[0]
    assert not spark.catalog.functionExists("f")
    with pytest.raises(NotFoundError, match=r"no table `db\.ordres`"):
        spark.sql("CREATE TEMPORARY FUNCTION f() RETURNS BIGINT RETURN SELECT max(id) FROM db.ordres")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        spark.sql("CREATE TEMPORARY FUNCTION f() RETURNS BIGINT RETURN SELECT max(nope) FROM db.orders")
    assert not spark.catalog.functionExists("f")
    assert rows(spark, "SHOW VIEWS IN global_temp") == []


def test_detach_drops_functions_that_read_the_lake(spark: SparkSession, lake: Lake, orders: Table) -> None:
    spark.sql("CREATE TEMPORARY FUNCTION f() RETURNS BIGINT RETURN (SELECT count(*) FROM db.orders) + 1")
    assert rows(spark, "SELECT f()") == [(1,)]
    bergline.spark.detach(spark)
    assert not spark.catalog.functionExists("f")
    assert rows(spark, "SHOW VIEWS IN global_temp") == []
