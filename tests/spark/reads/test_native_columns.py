"""How columns are stored in files, and how Spark's own reader gets them from there."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.types import DecimalType, LongType
from pyspark.sql import SparkSession

from bergline import Lake
from bergline.format.types.types import UUID
from bergline.spark import explain_read
from support.fixtures.chosen_readers import native_refusal
from support.fixtures.foreign_files import stored, write_foreign_file
from support.fixtures.rows import ids

pytestmark = pytest.mark.spark

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def test_files_of_writers_that_map_columns_are_read_by_their_field_ids(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB).append(pa.table({"a": [1], "b": ["own"]}))
    other = {stored("col-1", pa.int64(), 1): [2], stored("col_2", pa.string(), 2): ["other"]}
    swapped = {stored("b", pa.int64(), 1): [3], stored("a", pa.string(), 2): ["swapped"]}
    table.append_files([write_foreign_file(table, columns) for columns in (other, swapped)])
    assert rows(spark, "SELECT a, b FROM db.t") == [(1, "own"), (2, "other"), (3, "swapped")]
    assert rows(spark, "SELECT b FROM db.t WHERE a = 3") == [("swapped",)]


def test_column_that_was_dropped_and_added_again_is_another_one(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB).append(pa.table({"a": [1], "b": ["old"]}))
    foreign = {stored("a", pa.int64(), 1): [2], stored("b", pa.string(), 2): ["old"]}
    table.append_files([write_foreign_file(table, foreign)])
    spark.sql("ALTER TABLE db.t DROP COLUMN b")
    spark.sql("ALTER TABLE db.t ADD COLUMN b STRING")
    spark.sql("INSERT INTO db.t VALUES (3, 'new')")
    spark.sql("CALL system.expire_snapshots('db.t', TIMESTAMP '2100-01-01', 1, clean_expired_metadata => true)")
    assert rows(spark, "SELECT a, b FROM db.t") == [(1, None), (2, None), (3, "new")]
    assert rows(spark, "SELECT a FROM db.t WHERE b IS NULL") == [(1,), (2,)]


def test_renamed_and_widened_columns_are_read_by_spark(spark: SparkSession, lake: Lake) -> None:
    schema = pa.schema([("a", pa.int32()), ("b", pa.string()), ("f", pa.float32()), ("d", pa.decimal128(5, 2))])
    lake.create_table("db.t", schema)
    spark.sql("INSERT INTO db.t VALUES (1, 'x', 1.5, 1.25)")
    spark.sql("ALTER TABLE db.t RENAME COLUMN b TO c")
    for name, type_ in (("a", "BIGINT"), ("f", "DOUBLE"), ("d", "DECIMAL(12, 2)")):
        spark.sql(f"ALTER TABLE db.t ALTER COLUMN {name} TYPE {type_}")
    spark.sql("INSERT INTO db.t VALUES (3000000000, 'y', 2.5, 1234567.25)")
    frame = spark.sql("SELECT a, c, f, CAST(d AS STRING) AS d FROM db.t")
    assert "arrow" not in explain_read(frame)
    assert sorted(map(tuple, frame.collect())) == [(1, "x", 1.5, "1.25"), (3000000000, "y", 2.5, "1234567.25")]
    assert rows(spark, "SELECT a FROM db.t WHERE d < 2 AND f = 1.5 AND c = 'x'") == [(1,)]


@pytest.mark.parametrize("with_ids", [False, True])
@pytest.mark.parametrize(
    "about",
    [
        {"org.apache.spark.version": "2.4.8"},
        {"org.apache.spark.version": "3.5.0", "org.apache.spark.legacyDateTime": ""},
    ],
)
def test_old_days_in_files_of_spark_2_stay_what_they_are(
    spark: SparkSession, lake: Lake, about: dict[str, str], with_ids: bool
) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64()), ("d", pa.date32())]))
    spark.sql("""ALTER TABLE db.t SET TBLPROPERTIES ('schema.name-mapping.default' =
        '[{"field-id": 1, "names": ["x"]}, {"field-id": 2, "names": ["y"]}]')""")
    day = dt.date(1500, 1, 1)
    ids = (1, 2) if with_ids else (None, None)
    columns = {stored("x", pa.int64(), ids[0]): [1], stored("y", pa.date32(), ids[1]): [day]}
    file = write_foreign_file(table, columns, about=about)
    table.refresh().append_files([file])
    assert rows(spark, "SELECT a, d FROM db.t") == [(1, day)]
    assert "native" in explain_read(spark.sql("SELECT a FROM db.t"))


def test_filter_on_a_uuid_that_some_files_lack(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64())])).append([{"a": 1}])
    with table.update_schema() as change:
        change.add_column("u", UUID)
    table.append([{"a": 2, "u": uuid.UUID(int=1)}])
    text = str(uuid.UUID(int=1))
    assert [row.a for row in spark.table("db.t").filter(f"u = '{text}'").collect()] == [2]
    assert rows(spark, f"SELECT a FROM db.t WHERE u IN ('{text}')") == [(2,)]


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
