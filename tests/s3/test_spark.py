"""Spark on a lake in S3, without any jar for it: the executors read and write through the lake's own storage."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from s3_server import S3Server

import bergline
import bergline.spark

pytestmark = pytest.mark.spark


@pytest.fixture
def spark(spark_session: SparkSession, s3_server: S3Server, bucket: str, tmp_path: Path) -> Iterator[SparkSession]:
    catalog = f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(catalog, warehouse=f"{bucket}/wh", properties=s3_server.properties, create=True) as lake:
        lake.create_namespace("db")
        bergline.spark.attach(spark_session, lake)
        yield spark_session
        bergline.spark.detach(spark_session)


def test_rows_are_written_and_read_by_executors(spark: SparkSession) -> None:
    spark.sql("CREATE TABLE db.orders (id BIGINT, region STRING) USING iceberg PARTITIONED BY (region)")
    spark.sql("INSERT INTO db.orders SELECT id, if(id % 2 = 0, 'north east', 'a/b') FROM range(10)")
    rows = spark.sql("SELECT region, sum(id) FROM db.orders WHERE id > 1 GROUP BY region ORDER BY region").collect()
    assert [tuple(row) for row in rows] == [("a/b", 24), ("north east", 20)]
