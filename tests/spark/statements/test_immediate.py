"""EXECUTE IMMEDIATE, and names that Spark computes."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from bergline import Table
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str, args: object = None) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text, args=args).collect())


@pytest.fixture(autouse=True)
def _without_views(spark: SparkSession) -> Iterator[None]:
    yield
    for name in ("v", "w"):
        spark.catalog.dropTempView(name)
    spark.catalog.dropGlobalTempView("v")
    spark.catalog.clearCache()


@pytest.fixture
def filled(orders: Table) -> Table:
    """Two files: orders 1 and 2, order 3."""
    return orders.append(order_rows(1, 2)).append(order_rows(3))


def test_names_may_be_worked_out_from_constants_and_arguments(spark: SparkSession, filled: Table) -> None:
    assert rows(spark, "SELECT id FROM IDENTIFIER('db.orders') WHERE id = 1") == [(1,)]
    assert rows(spark, "SELECT id FROM IDENTIFIER('db.' || :t) WHERE id = :x", {"t": "orders", "x": 2}) == [(2,)]
    both = "SELECT id FROM db.orders WHERE id = ? UNION ALL SELECT IDENTIFIER(?) FROM IDENTIFIER(?) WHERE id = ?"
    assert rows(spark, both, [1, "id", "lake.`db`.orders", 3]) == [(1,), (3,)]
    spark.sql("INSERT INTO IDENTIFIER(:t) VALUES (:x, 1.0, 'us')", args={"t": "db.orders", "x": 9})
    assert rows(spark, "SELECT id FROM db.orders WHERE region = 'us'") == [(9,)]
    assert rows(spark, "SELECT IDENTIFIER('upper')('IDENTIFIER(1)') AS identifier") == [("IDENTIFIER(1)",)]
    assert len(filled.refresh().metadata.snapshots) == 3


def test_texts_are_executed_with_their_arguments(spark: SparkSession, filled: Table) -> None:
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT id FROM db.orders WHERE id = ?' USING 1 + 1") == [(2,)]
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT id FROM db.orders WHERE id = :x' USING (3 AS x);") == [(3,)]
    spark.sql("EXECUTE IMMEDIATE concat('INSERT INTO db.orders ', 'VALUES (?, ?, ?)') USING 9, 1.5D, 'us'")
    assert rows(spark, "SELECT * FROM db.orders WHERE id = 9") == [(9, 1.5, "us")]
    spark.sql("EXECUTE IMMEDIATE 'ALTER TABLE db.orders CREATE TAG v9'")
    assert "v9" in filled.refresh().refs
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT :x AS one' USING 5 AS x") == [(5,)]
    assert rows(spark, "EXECUTE IMMEDIATE 'SELECT id FROM IDENTIFIER(:t) LIMIT 0' USING 'db.orders' AS t") == []


def test_rows_change_by_a_text_too(spark: SparkSession, filled: Table) -> None:
    spark.sql("USE lake.db")
    try:
        spark.sql("EXECUTE IMMEDIATE 'UPDATE orders SET amount = 1 WHERE id = ?' USING 3")
        spark.sql("EXECUTE IMMEDIATE 'DELETE FROM orders WHERE id < 3'")
    finally:
        spark.sql("USE spark_catalog.default")
    assert rows(spark, f"SELECT id, amount FROM {filled.name}") == [(3, 1.0)]
    spark.sql(f"EXECUTE IMMEDIATE 'TRUNCATE TABLE {filled.name}'")
    assert rows(spark, f"SELECT id FROM {filled.name}") == []


def test_the_result_may_go_to_variables(spark: SparkSession, filled: Table) -> None:
    assert filled
    for name, kind in {"least": "BIGINT", "most": "BIGINT"}.items():
        spark.sql(f"DECLARE OR REPLACE VARIABLE {name} {kind}")
    try:
        text = "EXECUTE IMMEDIATE 'SELECT min(id), max(id) FROM db.orders WHERE id < :n' INTO least, most USING 3 AS n"
        spark.sql(text)
        assert rows(spark, "SELECT least, most") == [(1, 2)]
        spark.sql("EXECUTE IMMEDIATE 'SELECT id FROM db.orders WHERE id = 99' INTO least")
        assert rows(spark, "SELECT least IS NULL") == [(True,)]
        with pytest.raises(Exception, match="ROW_SUBQUERY_TOO_MANY_ROWS"):  # no class of PySpark's
            spark.sql("EXECUTE IMMEDIATE 'SELECT id FROM db.orders' INTO least")
    finally:
        for name in ("least", "most"):
            spark.sql(f"DROP TEMPORARY VARIABLE {name}")
