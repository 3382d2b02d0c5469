"""What names of tables mean in an attached session: time travel, branches of the session, metadata tables."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql import types as T  # noqa: N812

from bergline import Lake, Table
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    InvalidInputError,
    UnsupportedError,
)
from bergline.spark.reads.scan import read
from support.fixtures.rows import ORDERS, ids, order_rows

pytestmark = pytest.mark.spark


def found_ids(frame: DataFrame) -> list[int]:
    return sorted(row.id for row in frame.collect())


def query(spark: SparkSession, text: str) -> list[tuple]:
    return sorted(tuple(row) for row in spark.sql(text).collect())


def test_time_travel_by_clause_and_by_name(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    first, second = orders.metadata.snapshots
    orders.refs.create_tag("v1", at=first.snapshot_id)
    orders.append(order_rows(3), branch="dev")
    expected = {
        f"db.orders VERSION AS OF {first.snapshot_id}": [1],
        f"db.orders VERSION AS OF '{first.snapshot_id}'": [1],
        "db.orders VERSION AS OF 'v1'": [1],
        "db.orders FOR VERSION AS OF 'dev'": [1, 2, 3],
        "db.orders.tag_v1": [1],
        "db.orders.branch_dev": [1, 2, 3],
        f"db.orders.snapshot_id_{second.snapshot_id}": [1, 2],
        f"db.orders.at_timestamp_{second.timestamp_ms}": [1, 2],
        "db.orders TIMESTAMP AS OF '2099-01-01 00:00:00'": [1, 2],
        f"db.orders TIMESTAMP AS OF timestamp_millis({first.timestamp_ms}) + INTERVAL '0' SECOND AS o": [1],
        "db.orders TIMESTAMP AS OF (SELECT max(committed_at) FROM db.orders.snapshots) WHERE id > 1": [2],
    }
    assert {k: [r[0] for r in query(spark, f"SELECT id FROM {k}")] for k in expected} == expected
    text, when = "SELECT id FROM db.orders TIMESTAMP AS OF :when::timestamp WHERE id < :less", "2099-01-01"
    assert [r.id for r in spark.sql(text, args={"when": when, "less": 2}).collect()] == [1]
    with pytest.raises(UnsupportedError, match=r"expected a parameter with a name after AS OF, found `\?`"):
        spark.sql("SELECT id FROM db.orders TIMESTAMP AS OF ?", args=[when])
    with pytest.raises(InvalidInputError, match="expected a time after AS OF, found NULL"):
        spark.sql("SELECT id FROM db.orders TIMESTAMP AS OF CAST(NULL AS DATE)")
    with pytest.raises(AnalysisException, match="timestamp expression cannot refer to any columns"):
        spark.sql("SELECT id FROM db.orders TIMESTAMP AS OF id")


def test_wap_branch_is_created_by_the_first_write_and_read_if_it_exists(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.conf.set("spark.wap.branch", "audit")
    assert query(spark, "SELECT id FROM db.orders") == [(1,)]
    spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    assert query(spark, "SELECT id FROM db.orders") == [(1,), (2,)]
    assert query(spark, "SELECT id FROM db.orders VERSION AS OF 'main'") == [(1,)]
    assert query(spark, "SELECT id FROM db.orders.branch_main") == [(1,)]


def test_table_can_opt_out_of_wap(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).set_properties({"write.wap.enabled": "false"})
    spark.conf.set("spark.wap.branch", "audit")
    spark.sql("INSERT INTO db.orders VALUES (2, 1.0, 'eu')")
    assert set(orders.refresh().refs) == {"main"}


def test_lake_in_use_without_a_namespace_lists_no_tables(spark: SparkSession, orders: Table) -> None:
    spark.sql("USE lake")
    assert spark.catalog.listTables() == []
    assert [table.name for table in spark.catalog.listTables("db")] == ["orders"]


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


@pytest.mark.parametrize("zone", ["+05:30", "GMT+8", "Z", "Europe/Berlin"])
def test_time_travel_in_every_kind_of_time_zone(spark: SparkSession, orders: Table, zone: str) -> None:
    orders.append(order_rows(1))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert rows(spark, "SELECT id FROM db.orders TIMESTAMP AS OF '2099-01-01 00:00:00'") == [(1,)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_names_in_a_namespace_of_the_lake_are_the_lakes_also_where_spark_has_the_namespace(
    spark: SparkSession, lake: Lake
) -> None:
    lake.create_namespace("default")
    table = lake.create_table("default.x", pa.schema([("id", pa.int64())]))
    with pytest.raises(AlreadyExistsError, match=r"table `default\.x` exists already"):
        spark.range(1).write.saveAsTable("default.x")
    spark.range(1).write.insertInto("default.x")
    assert ids(table.refresh().scan().to_arrow()) == [0]
    spark.sql("CREATE TABLE default.y AS SELECT 1 AS id")
    assert ids(lake.load_table("default.y").scan().to_arrow()) == [1]


@pytest.mark.parametrize(
    "text",
    ["SELECT DB.Orders.id FROM db.orders", "SELECT id FROM db.2023_t", "SELECT z.id FROM db.orders z WHERE z.id = 1"],
)
def test_names_of_every_spelling_resolve(spark: SparkSession, lake: Lake, orders: Table, text: str) -> None:
    orders.append(order_rows(1))
    lake.create_table("db.2023_t", ORDERS).append(order_rows(1))
    spark.sql("ALTER TABLE db.2023_t CREATE BRANCH b")
    assert rows(spark, text) == [(1,)]


@pytest.mark.parametrize("text", ["TIMESTAMP AS OF 99999999999999", "VERSION AS OF '²'"])
def test_versions_out_of_range_are_our_errors(spark: SparkSession, orders: Table, text: str) -> None:
    orders.append(order_rows(1))
    with pytest.raises(BerglineError):
        spark.sql(f"SELECT * FROM db.orders {text}")


def test_frames_are_qualified_by_lake_and_namespace(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2))
    spark.sql("CREATE VIEW db.ids AS SELECT id FROM db.orders")
    for name in ("id", "orders.id", "db.orders.id", "lake.db.orders.id"):
        frame = spark.table("db.orders")
        assert found_ids(frame.filter(f"{name} > 1").select(name)) == [2], name
        assert found_ids(frame.where(F.col(name) < 2).select(F.col(name))) == [1], name
    assert sorted(row.id for row in spark.table("db.ids").select("lake.db.ids.id").collect()) == [1, 2]


def test_frames_are_correlated_subqueries(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    outer, inner = spark.table("db.orders").alias("o"), spark.table("db.orders")
    later = inner.where(F.col("orders.id") > F.col("o.id").outer())
    assert found_ids(outer.where(later.exists())) == [1, 2]
    largest = later.select(F.max("orders.id")).scalar()
    assert sorted(tuple(row) for row in outer.select("id", largest.alias("m")).collect()) == [(1, 3), (2, 3), (3, None)]
    assert outer.lateralJoin(later.select(F.col("orders.id").alias("other"))).count() == 3


def test_required_columns_may_be_null_in_every_read(spark: SparkSession, lake: Lake) -> None:
    inner = pa.struct([pa.field("a", pa.int32(), nullable=False)])
    columns = [pa.field("id", pa.int64(), nullable=False), pa.field("s", inner, nullable=False)]
    table = lake.create_table("db.t", pa.schema(columns))
    expected = T.StructType().add("id", T.LongType()).add("s", T.StructType().add("a", T.IntegerType()))
    for rows in ([], [{"id": 1, "s": {"a": 1}}]):
        table.append(pa.Table.from_pylist(rows, schema=pa.schema(columns)))
        frame = spark.table("db.t")
        reads = [
            frame,
            frame.filter("id > 0"),
            frame.select("*"),
            spark.sql("SELECT * FROM db.t"),
            read(table.scan(), spark),
        ]
        reads += [spark.readStream.table("db.t"), spark.sql("SELECT id, s FROM db.t.changes")]
        assert [found.schema for found in reads] == [expected] * len(reads)
    assert [column.nullable for column in spark.catalog.listColumns("db.t")] == [False, False]
