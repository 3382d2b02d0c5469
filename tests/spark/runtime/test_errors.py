"""Errors as Spark users catch them."""

import pytest
from pyspark.errors import (
    AnalysisException,
    PySparkException,
)
from pyspark.sql import SparkSession

from bergline import Lake, Table
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def tables(lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    lake.create_table("db.items", ORDERS).append(order_rows(1))


@pytest.mark.parametrize(
    ("statement", "near"),
    [
        ("USE dbb", "`db`"),
        ("SHOW TABLES IN dbb", "`db`"),
        ("SELECT * FROM dbb.orders", "`db.orders`"),
        ("SELECT * FROM laek.db.orders", "`lake.db`"),
        ("USE laek.db", "`lake.db`"),
    ],
)
def test_missing_namespace_names_the_near_ones_of_the_lakes(spark: SparkSession, statement: str, near: str) -> None:
    with pytest.raises(AnalysisException) as caught:
        spark.sql(statement)
    assert any(f"did you mean {near}" in note for note in caught.value.__notes__)


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM db.orders.branch_stagng", "SELECT * FROM db.orders VERSION AS OF 'stagng'"]
)
def test_missing_branch_names_the_near_ones(spark: SparkSession, orders: Table, statement: str) -> None:
    orders.refresh().refs.create_branch("staging")
    with pytest.raises(PySparkException, match="no branch") as caught:
        spark.sql(statement)
    assert "did you mean `staging`?" in caught.value.hints  # type: ignore[attr-defined]
