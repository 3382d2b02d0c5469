"""Rows on Spark equal rows in process, whatever happened to the table and however it is filtered."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import bergline.spark
from bergline import Lake, Table
from bergline.errors import InvalidInputError
from support.fixtures.concurrency import run_for_each
from support.fixtures.rows import ids, order_rows

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def evolve(catalog: Any, name: str, *steps: Any) -> None:
    for step in steps:
        with catalog.load_table(name).update_schema() as update:
            step(update)


def test_frames_keep_their_rows_after_detach_and_on_other_sessions(
    spark: SparkSession, lake: Lake, pyiceberg: Any
) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    table.append(pa.table({"a": [1], "b": [2]}))
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("a", "c"))
    frame = spark.table("db.t")
    bergline.spark.detach(spark)
    assert [tuple(r) for r in frame.select("*").collect()] == [(1, 2)]
    other = bergline.spark.read(table.refresh().scan(), spark.newSession())
    assert [tuple(r) for r in other.collect()] == [(1, 2)]


def test_qualified_columns_of_every_length_resolve(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("st", pa.struct([("x", pa.int64())]))])
    lake.create_table("db.o", schema).append(pa.Table.from_pylist([{"id": 1, "st": {"x": 7}}], schema))
    assert rows(spark, "SELECT db.o.st.x, db.o.id, o.st.x, st.x FROM db.o") == [(7, 1, 7, 7)]
    assert rows(spark, "SELECT db.o.id, lake.db.o.st.x FROM lake.db.o") == [(1, 7)]


def test_concurrent_inserts_leave_the_sessions_settings_alone(spark: SparkSession, orders: Table) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        run_for_each(spark.sql, [f"INSERT INTO db.orders VALUES ({i}, 1, 'x')" for i in range(4)])
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert ids(orders.refresh().scan().to_arrow()) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT 'the quick fox', id FROM (SELECT /*+ BROADCAST(db.orders) */ id FROM db.orders)", "the quick fox"),
        ("WITH c AS (SELECT 123456 AS v) SELECT /*+ REPARTITION(2, orders.id) */ v, id FROM c, db.orders", "123456"),
    ],
)
def test_names_in_hints_change_no_other_text(spark: SparkSession, orders: Table, text: str, expected: str) -> None:
    orders.append(order_rows(1))
    assert str(spark.sql(text).collect()[0][0]) == expected


def test_fixed_columns_are_written_and_read_by_both_readers(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    schema = pa.schema([("a", pa.int64()), ("fx", pa.binary(3)), ("s", pa.struct([("fy", pa.binary(2))]))])
    lake.create_table("db.t", schema)
    spark.sql("INSERT INTO db.t VALUES (1, CAST('abc' AS BINARY), named_struct('fy', CAST('xy' AS BINARY)))")
    expected = [(1, bytearray(b"abc"), bytearray(b"xy"))]
    assert rows(spark, "SELECT a, fx, s.fy FROM db.t") == expected
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("a", "a2"))
    assert rows(spark, "SELECT a2, fx, s.fy FROM db.t") == expected
    with pytest.raises(InvalidInputError, match="column `fx`"):
        spark.sql("INSERT INTO db.t VALUES (1, CAST('too long' AS BINARY), null)")
