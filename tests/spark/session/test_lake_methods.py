"""The methods of an attached session: lake tables are ours, the rest is Spark's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Table
from bergline.errors import (
    BerglineError,
)
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def test_what_is_not_ours_passes_through(spark: SparkSession, tmp_path: Path) -> None:
    assert spark.sql("SELECT 1 AS one").collect()[0].one == 1
    assert spark.sql("SELECT {n} AS n", n=5).collect()[0].n == 5
    spark.range(3).createOrReplaceTempView("numbers")
    assert spark.table("numbers").count() == 3
    assert spark.sql("SHOW TABLES").columns == ["namespace", "tableName", "isTemporary"]
    spark.sql("CREATE TABLE default.plain (id BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO default.plain VALUES (1)")
        assert query(spark, "SELECT * FROM default.plain") == [(1,)]
    finally:
        spark.sql("DROP TABLE default.plain")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        spark.sql("SELECT * FROM nowhere.orders")
    with pytest.raises(ParseException, match="PARSE_SYNTAX_ERROR"):
        spark.sql("SELEC 1")


def test_lake_rows_can_go_into_sparks_own_tables(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("CREATE TABLE default.copy (id BIGINT) USING parquet")
    try:
        spark.sql("INSERT INTO default.copy SELECT id FROM db.orders")
        assert query(spark, "SELECT * FROM default.copy") == [(1,), (2,)]
        spark.sql("INSERT OVERWRITE default.copy SELECT id FROM db.orders WHERE id > 1")
        assert query(spark, "SELECT * FROM default.copy") == [(2,)]
        spark.sql("CREATE TABLE default.other USING parquet AS SELECT id FROM db.orders WHERE id < 2")
        assert query(spark, "SELECT * FROM default.other") == [(1,)]
    finally:
        spark.sql("DROP TABLE default.copy")
        spark.sql("DROP TABLE IF EXISTS default.other")


@pytest.mark.parametrize(
    "use",
    [
        lambda spark: spark.sql(5),
        lambda spark: spark.table(5),
        lambda spark: spark.read.table(5),
        lambda spark: spark.range(1).writeTo(5),
        lambda spark: spark.range(1).write.insertInto(5),
        lambda spark: spark.range(1).write.saveAsTable(5),
        lambda spark: spark.catalog.tableExists(5),
        lambda spark: spark.catalog.listColumns(5),
        lambda _: bergline.spark.detach(5),
    ],
)
def test_what_is_no_text_is_refused(spark: SparkSession, use: Callable[[SparkSession], Any]) -> None:
    with pytest.raises(BerglineError, match="expected "):
        use(spark)
