"""Columns by names that have anything in them."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def test_column_names_with_dots_and_quotes_are_written_and_read(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("a.b", pa.int64()), ("c`d", pa.int64()), ("ü x", pa.int64())])
    table = lake.create_table("db.t", schema)
    spark.sql("INSERT INTO db.t VALUES (1, 2, 3)")
    spark.table("db.t").writeTo("db.t").append()
    assert rows(spark, "SELECT `a.b`, `c``d`, `ü x` FROM db.t WHERE `a.b` = 1") == [(1, 2, 3)] * 2
    assert table.refresh().scan().to_arrow().num_rows == 2
