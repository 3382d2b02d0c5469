"""bergline on PySpark over REST: our server, with PyIceberg beside it."""

from collections.abc import Iterator

import pytest
from pyiceberg.catalog import load_catalog
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from support.servers.bergline_server import BerglineServer


@pytest.fixture
def spark(spark_session: SparkSession, bergline_server: BerglineServer) -> Iterator[SparkSession]:
    with bergline.connect(bergline_server.uri, name="served") as lake:
        bergline.spark.attach(spark_session, lake)
        yield spark_session
        bergline.spark.detach(spark_session)


def test_a_table_on_spark_lives_on_a_rest_server(spark: SparkSession, bergline_server: BerglineServer) -> None:
    spark.sql("CREATE NAMESPACE served.spark_rest")
    spark.sql("CREATE TABLE served.spark_rest.orders (id BIGINT, day DATE) USING iceberg PARTITIONED BY (day)")
    spark.sql("INSERT INTO served.spark_rest.orders VALUES (1, DATE '2026-01-01'), (2, DATE '2026-01-02')")
    spark.sql("ALTER TABLE served.spark_rest.orders CREATE BRANCH audit")
    spark.sql("INSERT INTO served.spark_rest.orders.branch_audit VALUES (3, DATE '2026-01-03')")
    spark.sql("ALTER TABLE served.spark_rest.orders ADD COLUMN note STRING")
    spark.sql("CREATE TABLE served.spark_rest.copied USING iceberg AS SELECT id FROM served.spark_rest.orders")
    rows = spark.sql("SELECT id, note FROM served.spark_rest.orders ORDER BY id").collect()
    assert [tuple(row) for row in rows] == [(1, None), (2, None)]
    audit = spark.sql("SELECT id FROM served.spark_rest.orders VERSION AS OF 'audit' ORDER BY id").collect()
    assert [r.id for r in audit] == [1, 2, 3]
    peer = load_catalog("served", type="rest", uri=bergline_server.uri)
    for table in ("spark_rest.orders", "spark_rest.copied"):
        assert sorted(peer.load_table(table).scan().to_arrow()["id"].to_pylist()) == [1, 2]
    peer.close()
