"""Rows on Spark equal rows in process, whatever happened to the table and however it is filtered."""

import datetime as dt
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from chosen_readers import native_refusal
from concurrency import run_for_each
from data_files import written_files
from pyiceberg.types import DecimalType, LongType
from pyspark.sql import SparkSession
from rows import ORDERS, ids, order_rows

import bergline.spark
from bergline import Lake, Table
from bergline.errors import AlreadyExistsError, BerglineError, InvalidInputError

pytestmark = pytest.mark.spark


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def evolve(catalog: Any, name: str, *steps: Any) -> None:
    for step in steps:
        with catalog.load_table(name).update_schema() as update:
            step(update)


def test_renamed_columns_are_filtered_by_what_they_are_now(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64()), ("b", pa.int64())]))
    table.append(pa.table({"a": [1], "b": [100]}))
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("a", "tmp"), lambda u: u.rename_column("b", "a"))
    assert native_refusal(table.refresh().scan()) is None
    assert rows(spark, "SELECT a FROM db.t WHERE a > 50") == [(100,)]
    spark.sql("INSERT OVERWRITE db.t SELECT tmp, a FROM db.t WHERE a > 50")
    assert rows(spark, "SELECT tmp, a FROM db.t") == [(1, 100)]


def test_column_that_replaced_another_is_not_read_from_old_files(
    spark: SparkSession, lake: Lake, pyiceberg: Any
) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64()), ("x", pa.int64())]))
    table.append(pa.table({"a": [1, 2], "x": [100, 200]}))
    evolve(pyiceberg, "db.t", lambda u: u.delete_column("x"), lambda u: u.add_column("x", LongType()))
    assert rows(spark, "SELECT * FROM db.t WHERE x IS NULL") == [(1, None), (2, None)]
    assert ids(table.refresh().scan("x IS NULL").to_arrow().rename_columns(["id", "x"])) == [1, 2]


def test_added_columns_are_null_in_old_files(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64())])).append(pa.table({"a": [1]}))
    evolve(pyiceberg, "db.t", lambda u: u.add_column("x", LongType()))
    spark.sql("INSERT INTO db.t VALUES (2, 20)")
    assert native_refusal(table.refresh().scan()) is None
    assert rows(spark, "SELECT * FROM db.t") == [(1, None), (2, 20)]


def test_widened_columns_can_be_filtered(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    schema = pa.schema([("i", pa.int32()), ("d", pa.decimal128(9, 2))])
    table = lake.create_table("db.t", schema).append(pa.Table.from_pylist([{"i": 1, "d": Decimal("1.50")}], schema))
    evolve(
        pyiceberg,
        "db.t",
        lambda u: u.update_column("i", field_type=LongType()),
        lambda u: u.update_column("d", field_type=DecimalType(18, 2)),
    )
    spark.sql("INSERT INTO db.t VALUES (3000000000, 42949672.97)")
    assert rows(spark, "SELECT i FROM db.t WHERE d < 42949672.97") == [(1,)]
    assert table.refresh().scan("i > 1").to_arrow().num_rows == 1


def test_nested_fields_that_swapped_names_are_filtered_right(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    schema = pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.int64())]))])
    lake.create_table("db.t", schema).append(pa.Table.from_pylist([{"s": {"x": 1, "y": 100}}], schema))
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("s.x", "z"), lambda u: u.rename_column("s.y", "x"))
    assert rows(spark, "SELECT s.x, s.z FROM db.t WHERE s.x > 5") == [(100, 1)]


FLOATS = pa.table({"id": [1, 2, 3, 4, 5], "f": [1.0, math.nan, -5.0, -0.0, None]})


@pytest.mark.parametrize(
    "condition", ["f > 3", "NOT f <= 3", "f = 0", "f >= 0", "f < 1", "f != 0", "f IN (0)", "f IS NULL", "NOT f > 3"]
)
def test_nan_and_negative_zero_are_found_everywhere(spark: SparkSession, lake: Lake, condition: str) -> None:
    table = lake.create_table("db.f", pa.schema([("id", pa.int64()), ("f", pa.float64())])).append(FLOATS)
    spark.createDataFrame(FLOATS).createOrReplaceTempView("plain")
    expected = [r[0] for r in rows(spark, f"SELECT id FROM plain WHERE {condition}")]
    assert [r[0] for r in rows(spark, f"SELECT id FROM db.f WHERE {condition}")] == expected
    assert ids(table.scan(condition).to_arrow()) == expected
    assert sorted(r.id for r in bergline.spark.read(table.scan(condition), spark).collect()) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "d = 1.005",
        "d != 1.004",
        "f = 0.1",
        "f <= 0.1",
        "NOT f IN (0.1)",
        "i < 3000000000",
        "i != 4294967297",
        "d < 99999999999",
    ],
)
def test_literals_that_do_not_fit_the_column_mean_the_same_on_spark(
    spark: SparkSession, lake: Lake, condition: str
) -> None:
    schema = pa.schema([("i", pa.int32()), ("f", pa.float32()), ("d", pa.decimal128(9, 2))])
    values = [(1, 0.1, "1.00"), (2, math.nan, "1.01"), (-5, None, None), (2147483647, -0.0, "-1.00")]
    data = [{"i": i, "f": f, "d": d and Decimal(d)} for i, f, d in values]
    table = lake.create_table("db.t", schema).append(pa.Table.from_pylist(data, schema))
    scan = table.scan(condition)
    on_spark = [r.i for r in bergline.spark.read(scan, spark).collect()]
    assert sorted(on_spark) == sorted(scan.to_arrow().column("i").to_pylist())


ODD_DAYS = [dt.date(1, 1, 1), dt.date(1582, 10, 9), dt.date(1582, 10, 10), dt.date(1582, 10, 20), dt.date(9999, 12, 31)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("d IN (DATE '1582-10-10', DATE '0001-01-01')", [0, 2]),
        ("d > DATE '0001-01-01'", [1, 2, 3, 4]),
        ("d > DATE '-0044-03-15' AND d < DATE '10000-01-01'", [0, 1, 2, 3, 4]),
        ("t = TIMESTAMP_NTZ '1582-10-10 01:02:03.000004'", [2]),
        ("t > TIMESTAMP_NTZ '-0044-03-15 00:00:00' AND t < TIMESTAMP_NTZ '10000-01-01 00:00:00'", [0, 1, 2, 3, 4]),
    ],
)
def test_days_that_python_or_java_do_not_have_are_compared(
    spark: SparkSession, lake: Lake, condition: str, expected: list[int]
) -> None:
    times = [dt.datetime.combine(day, dt.time(1, 2, 3, 4)) for day in ODD_DAYS]
    table = pa.table({"id": range(5), "d": ODD_DAYS, "t": pa.array(times, pa.timestamp("us"))})
    lake.create_table("db.days", table.schema).append(table)
    assert [r[0] for r in rows(spark, f"SELECT id FROM db.days WHERE {condition}")] == expected


def test_files_whose_names_spark_passes_over_are_read(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    (file,) = written_files(orders, order_rows(2))
    path = Path(file.file_path.removeprefix("file://"))
    hidden = path.rename(path.with_name("_hidden.parquet"))
    orders.append_files([msgspec.structs.replace(file, file_path=f"file://{hidden}")])
    assert rows(spark, "SELECT id FROM db.orders") == [(1,), (2,)]


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


def test_column_names_with_dots_and_quotes_are_written_and_read(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("a.b", pa.int64()), ("c`d", pa.int64()), ("ü x", pa.int64())])
    table = lake.create_table("db.t", schema)
    spark.sql("INSERT INTO db.t VALUES (1, 2, 3)")
    spark.table("db.t").writeTo("db.t").append()
    assert rows(spark, "SELECT `a.b`, `c``d`, `ü x` FROM db.t WHERE `a.b` = 1") == [(1, 2, 3)] * 2
    assert table.refresh().scan().to_arrow().num_rows == 2


def test_qualified_columns_of_every_length_resolve(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("st", pa.struct([("x", pa.int64())]))])
    lake.create_table("db.o", schema).append(pa.Table.from_pylist([{"id": 1, "st": {"x": 7}}], schema))
    assert rows(spark, "SELECT db.o.st.x, db.o.id, o.st.x, st.x FROM db.o") == [(7, 1, 7, 7)]
    assert rows(spark, "SELECT db.o.id, lake.db.o.st.x FROM lake.db.o") == [(1, 7)]


@pytest.mark.parametrize("zone", ["+05:30", "GMT+8", "Z", "Europe/Berlin"])
def test_time_travel_in_every_kind_of_time_zone(spark: SparkSession, orders: Table, zone: str) -> None:
    orders.append(order_rows(1))
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        assert rows(spark, "SELECT id FROM db.orders TIMESTAMP AS OF '2099-01-01 00:00:00'") == [(1,)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_concurrent_inserts_leave_the_sessions_settings_alone(spark: SparkSession, orders: Table) -> None:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        run_for_each(spark.sql, [f"INSERT INTO db.orders VALUES ({i}, 1, 'x')" for i in range(4)])
        assert spark.conf.get("spark.sql.ansi.enabled") == "false"
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
    assert ids(orders.refresh().scan().to_arrow()) == [0, 1, 2, 3]


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


SPECIAL = pa.schema(
    [("id", pa.int64()), ("order id", pa.int64()), ("1st", pa.int64()), ("st", pa.struct([("a b", pa.int64())]))]
)


def test_names_that_writers_put_differently_in_files_are_read(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.w", SPECIAL)
    row = {"id": 1, "order id": 10, "1st": 3, "st": {"a b": 5}}
    theirs = pyiceberg.load_table("db.w")
    theirs.append(pa.Table.from_pylist([row], SPECIAL))
    table.refresh().append(pa.Table.from_pylist([row], SPECIAL))
    assert rows(spark, "SELECT `order id`, `1st`, st.`a b` FROM db.w") == [(10, 3, 5)] * 2
    spark.sql("INSERT OVERWRITE db.w SELECT * FROM db.w")
    assert rows(spark, "SELECT `order id`, `1st`, st.`a b` FROM db.w") == [(10, 3, 5)] * 2


def test_official_names_in_files_are_read(spark: SparkSession, lake: Lake, official: Any) -> None:
    official("CREATE TABLE db.w (id BIGINT, `order id` BIGINT, st STRUCT<`a b`: BIGINT, c: BIGINT>) USING iceberg")
    official("INSERT INTO db.w VALUES (1, 10, named_struct('a b', 5, 'c', 6))")
    assert rows(spark, "SELECT `order id`, st.`a b`, st.c FROM db.w") == [(10, 5, 6)]


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


def test_lateral_joins_and_float_filters_in_structs(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("s", pa.struct([("g", pa.float64())]))])
    data = [{"id": 1, "s": {"g": math.nan}}, {"id": 2, "s": None}, {"id": 3, "s": {"g": -0.0}}]
    lake.create_table("db.t", schema).append(pa.Table.from_pylist(data, schema))
    assert rows(spark, "SELECT id FROM db.t WHERE s.g > 1") == [(1,)]
    assert rows(spark, "SELECT id FROM db.t WHERE s.g = 0") == [(3,)]
    assert rows(spark, "SELECT id FROM db.t WHERE s IS NULL") == [(2,)]
    lateral = "SELECT a.id, z.id FROM db.t a, LATERAL (SELECT b.id FROM db.t b WHERE b.id = a.id) z"
    assert rows(spark, lateral) == [(1, 1), (2, 2), (3, 3)]


def test_filters_on_other_columns_reach_the_files(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1, 9))
    plan = spark.sql("SELECT * FROM db.orders WHERE id > 5 AND amount > 5")._jdf.queryExecution().toString()
    assert "GreaterThan(id,5)" in plan
    assert "GreaterThan(amount" not in plan


def test_fixed_columns_are_written_and_read_by_both_executors(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    schema = pa.schema([("a", pa.int64()), ("fx", pa.binary(3)), ("s", pa.struct([("fy", pa.binary(2))]))])
    lake.create_table("db.t", schema)
    spark.sql("INSERT INTO db.t VALUES (1, CAST('abc' AS BINARY), named_struct('fy', CAST('xy' AS BINARY)))")
    expected = [(1, bytearray(b"abc"), bytearray(b"xy"))]
    assert rows(spark, "SELECT a, fx, s.fy FROM db.t") == expected
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("a", "a2"))
    assert rows(spark, "SELECT a2, fx, s.fy FROM db.t") == expected
    with pytest.raises(InvalidInputError, match="column `fx`"):
        spark.sql("INSERT INTO db.t VALUES (1, CAST('too long' AS BINARY), null)")


def test_options_given_before_attach_count(spark: SparkSession, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="audit")
    bergline.spark.detach(spark)
    reader = spark.read.option("BRANCH", "audit")
    bergline.spark.attach(spark, lake)
    assert reader.table("db.orders").count() == 2


def test_many_files_need_few_tasks(spark: SparkSession, lake: Lake, pyiceberg: Any) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64())]))
    table.append_files([f for n in range(40) for f in written_files(table, pa.table({"a": [n]}))])
    evolve(pyiceberg, "db.t", lambda u: u.rename_column("a", "b"))
    frame = spark.table("db.t")
    assert frame.rdd.getNumPartitions() <= 8
    assert sorted(r.b for r in frame.collect()) == list(range(40))


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


def test_files_are_never_passed_over_whatever_the_session_says(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2))
    frame = spark.table("db.orders")
    Path(orders.scan().plan().files[0].file.file_path.removeprefix("file://")).unlink()
    spark.conf.set("spark.sql.files.ignoreMissingFiles", "true")
    try:
        with pytest.raises(Exception, match=r"parquet"):
            frame.collect()
    finally:
        spark.conf.unset("spark.sql.files.ignoreMissingFiles")


def test_sparks_reader_is_the_same_one_whatever_the_session_says(spark: SparkSession, orders: Table) -> None:
    spark.sql("ALTER TABLE db.orders SET TBLPROPERTIES ('write.delete.mode' = 'merge-on-read')")
    orders.refresh().append(order_rows(1, 2, 3)).delete("id = 2")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        assert rows(spark, "SELECT id, _pos FROM db.orders WHERE id < 3") == [(1, 0)]
        assert native_refusal(orders.refresh().scan()) is None
    finally:
        spark.conf.unset("spark.sql.sources.useV1SourceList")
