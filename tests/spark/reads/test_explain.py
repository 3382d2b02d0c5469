"""What `explain_read` says."""

import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Table
from bergline.errors import (
    InvalidInputError,
)
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def test_explain_read_names_the_table_and_what_it_cannot_explain(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    assert bergline.spark.explain_read(spark.table("db.orders").where("id = 1")).startswith("db.orders: 1 file of ")
    assert bergline.spark.explain_read(spark.sql("SELECT * FROM db.orders")).startswith("db.orders: 1 file of ")
    with pytest.raises(InvalidInputError, match=r"expected a DataFrame or a scan to explain, found 'db\.orders'"):
        bergline.spark.explain_read("db.orders")  # type: ignore[arg-type]
    for other in (spark.range(3), spark.table("db.orders.files")):
        with pytest.raises(InvalidInputError, match="expected a frame that reads a lake table, found one of something"):
            bergline.spark.explain_read(other)
