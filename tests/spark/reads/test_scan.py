"""Scans as frames: every type, metadata columns, and types that Spark lacks."""

import uuid
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import (
    AnalysisException,
    PySparkException,
)
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from support.fixtures.add_deletes import add_deletes, position_deletes
from support.fixtures.rows import ORDERS, order_rows

pytestmark = pytest.mark.spark


def test_metadata_columns_in_sql(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"]).append(order_rows(1, 2))
    (planned,) = table.scan().plan().files
    path = planned.file.file_path
    found = spark.sql(
        "SELECT _file, id, _pos, _spec_id, _partition.region, _deleted FROM db.parts ORDER BY id"
    ).collect()
    assert [tuple(r) for r in found] == [(path, 1, 0, 0, "eu", False), (path, 2, 1, 0, "eu", False)]
    assert spark.sql("SELECT * FROM db.parts WHERE _pos = 1").collect() == [(2, 20.0, "eu")]
    assert spark.sql("SELECT p.*, p._pos FROM db.parts p JOIN db.parts q ON p._pos = q._pos").columns == [
        *ORDERS.names,
        "_pos",
    ]
    assert spark.sql("SELECT * EXCEPT (amount), _pos FROM db.parts").columns == ["id", "region", "_pos"]
    assert spark.sql("SELECT count(*) AS n, max(_pos) AS m FROM db.parts").collect() == [(2, 1)]
    assert spark.sql("WITH q AS (SELECT _pos AS p, * FROM db.parts) SELECT * FROM q").columns == ["p", *ORDERS.names]
    nested = "SELECT * FROM db.parts a WHERE EXISTS (SELECT * FROM db.parts b WHERE b._pos = a._pos + 1)"
    assert [r.id for r in spark.sql(nested).collect()] == [1]
    add_deletes(table, position_deletes(table, {path: [0]}))
    assert [tuple(r) for r in spark.sql("SELECT id, _pos FROM db.parts").collect()] == [(2, 1)]
    assert sorted(spark.sql("SELECT id, _deleted FROM db.parts").collect()) == [(1, True), (2, False)]
    with pytest.raises(AnalysisException, match=r"_row_id.*cannot be resolved"):
        spark.sql("SELECT _row_id FROM db.parts")


def test_columns_that_spark_has_no_type_for_fail_only_when_asked_for(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("x", pa.int64()), ("n", pa.null())])), ("u", pa.uuid())])
    rows: list[dict[str, Any]] = [{"id": 1, "s": {"x": 5}, "u": uuid.UUID(int=7).bytes}, {"id": 2}]
    table = lake.create_table("db.t", schema, properties={"format-version": "3"})
    table.append(pa.Table.from_pylist(rows, schema))
    assert sorted(map(tuple, spark.sql("SELECT id, u FROM db.t").collect())) == [(1, str(uuid.UUID(int=7))), (2, None)]
    assert spark.table("db.t").where("id > 1").select("id").collect() == [(2,)]
    for ask in (spark.sql("SELECT * FROM db.t"), spark.table("db.t").select("s")):
        with pytest.raises(PySparkException, match=r"expected a type that Spark has, found `unknown` in column `s\.n`"):
            ask.collect()


NESTED = """CREATE TABLE db.wide (
    id BIGINT NOT NULL, flag BOOLEAN, i INT, f FLOAT, d DOUBLE, dec DECIMAL(10, 2), day DATE, ts TIMESTAMP,
    ntz TIMESTAMP_NTZ, s STRING, bin BINARY, list ARRAY<INT>, who STRUCT<name: STRING, age: INT>, m MAP<STRING, BIGINT>
) USING iceberg PARTITIONED BY (days(ts), bucket(4, id), truncate(2, s))"""

WIDE_ROW = (
    "1, true, 2, CAST(1.5 AS FLOAT), 2.5D, 3.25, DATE '2026-01-02', TIMESTAMP '2026-01-02 03:04:05', "
    "TIMESTAMP_NTZ '2026-01-02 03:04:05', 'text', X'00ff', array(1, null), named_struct('name', 'x', 'age', null), "
    "map('k', 7L)"
)


def test_every_type_comes_back_as_it_was_written(spark: SparkSession, lake: Lake) -> None:
    spark.sql(NESTED)
    spark.sql(f"INSERT INTO db.wide VALUES ({WIDE_ROW})")
    spark.sql("INSERT INTO db.wide (id) VALUES (2)")
    expected = spark.sql(f"SELECT {WIDE_ROW}").collect()[0]
    first, second = spark.sql("SELECT * FROM db.wide ORDER BY id").collect()
    assert tuple(first) == tuple(expected)
    assert tuple(second) == (2, *[None] * 13)
    arrow = lake.load_table("db.wide").scan("id = 1").to_arrow().to_pylist()[0]
    assert (arrow["who"], arrow["list"], arrow["m"]) == ({"name": "x", "age": None}, [1, None], [("k", 7)])


def test_planned_scan_is_a_dataframe(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    scan = orders.scan("id > 1", columns=["id"])
    assert len(scan.plan().files) == 1
    assert [tuple(r) for r in bergline.spark.read(scan, spark).collect()] == [(2,)]


def test_rows_of_a_filtered_scan_are_filtered_on_spark_too(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 2, 3))
    assert sorted(r.id for r in bergline.spark.read(orders.scan("id >= 2"), spark).collect()) == [2, 3]


def test_comments_of_columns_are_in_the_schema(spark: SparkSession, lake: Lake) -> None:
    spark.sql("CREATE TABLE db.t (id INT COMMENT 'the id', data STRING) USING iceberg")
    for _ in range(2):  # without files, and with some
        for frame in (
            spark.table("db.t"),
            spark.table("db.t").where("id > 0").select("data", "id"),
            spark.sql("SELECT id, data, id + 1 AS next FROM db.t WHERE id > 0"),
            spark.sql("WITH q AS (SELECT * FROM db.t) SELECT q.id FROM q"),
        ):
            assert frame.schema["id"].metadata == {"comment": "the id"}
            assert not any(field.metadata for field in frame.schema if field.name != "id")
        spark.sql("INSERT INTO db.t VALUES (1, 'a')")
    spark.sql("ALTER TABLE db.t ALTER COLUMN id COMMENT 'other words'")
    assert spark.sql("SELECT * FROM db.t").schema["id"].metadata == {"comment": "other words"}
    spark.sql("CREATE TABLE db.u AS SELECT id FROM db.t")
    assert lake.load_table("db.u").schema.find("id").doc == "other words"
