"""Frames of tables whose files are looked up late."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


def test_metadata_columns_of_frames_are_hidden_until_asked_for(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("db.v3", ORDERS, properties={"format-version": "3"}).append(order_rows(1, 2))
    frame = spark.table("db.v3")
    assert frame.columns == ORDERS.names
    assert frame.select("*", "_row_id").columns == [*ORDERS.names, "_row_id"]
    assert sorted(map(tuple, frame.select("id", F.col("_row_id") + 1, frame["_pos"]).collect())) == [
        (1, 1, 0),
        (2, 2, 1),
    ]
    assert [tuple(r) for r in frame.filter("_pos = 1").collect()] == [(2, 20.0, "eu")]
    assert [
        tuple(r) for r in frame.where(frame._pos == 1).select(frame.id, "_last_updated_sequence_number").collect()
    ] == [(2, 1)]
    assert frame.selectExpr("_pos + 10 AS p").collect()[0].p in {10, 11}
    assert [tuple(r) for r in spark.sql("SELECT _row_id, id FROM db.v3 WHERE _row_id = 1").collect()] == [(1, 2)]
