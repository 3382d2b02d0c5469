"""`df.writeTo` on lake tables."""

import pytest
from pyspark.errors import AnalysisException, UnsupportedOperationException
from pyspark.errors import IllegalArgumentException as SparkIllegalArgument
from pyspark.sql import SparkSession

from bergline import Table
from bergline.errors import (
    NotFoundError,
)
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def test_dataframes_write_by_name_and_to_branches(spark: SparkSession, orders: Table) -> None:
    frame = spark.createDataFrame([("us", 1)], "region string, id int")
    frame.writeTo("db.orders").append()
    frame.writeTo("db.orders").option("branch", "dev").append()
    frame.writeTo("db.orders.branch_dev").append()
    assert query(spark, "SELECT * FROM db.orders") == [(1, None, "us")]
    assert spark.table("db.orders.branch_dev").count() == 3
    frame.writeTo("db.orders").overwritePartitions()
    assert spark.table("db.orders").count() == 1


def test_frame_that_does_not_fit_is_refused(spark: SparkSession, orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no column `colour`"):
        spark.createDataFrame([(1, "red")], "id long, colour string").writeTo("db.orders").append()
    assert orders.refresh().current_snapshot is None


def test_dataframe_writes_raise_what_spark_users_catch(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_tag("v1")
    frame = spark.createDataFrame([(1,)], "id long")
    for wrong in ("", None, "v1"):
        with pytest.raises(SparkIllegalArgument):
            frame.writeTo("db.orders").option("branch", wrong).append()
    with pytest.raises(UnsupportedOperationException, match="found `brnch`"):
        frame.writeTo("db.orders").option("brnch", "x")
    with pytest.raises(AnalysisException, match="no column `x`"):
        frame.toDF("x").writeTo("db.orders").append()
    with pytest.raises(AnalysisException, match=r"no table `db\.new`"):
        frame.writeTo("db.new").append()
    assert set(orders.refresh().refs) == {"main", "v1"}
    assert len(orders.metadata.snapshots) == 1
