"""Files are read by what is known of them, not by what the table's schemas say of their names."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from foreign_files import stored, write_foreign_file
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.spark import explain_read

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


def registered(lake: Lake, table: Table, directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Register as `db.other` what is in a table's metadata file after a change, as another writer might leave it."""
    metadata = json.loads(Path(table.refresh().metadata_location.removeprefix("file://")).read_bytes())
    change(metadata)
    path = directory / "other.metadata.json"
    path.write_text(json.dumps(metadata))
    lake.register_table("db.other", f"file://{path}")


def test_metadata_of_version_1_without_its_schemas_hides_no_rename(
    spark: SparkSession, lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.t", AB, properties={"format-version": "1"}).append(pa.table({"a": [1], "b": ["x"]}))
    spark.sql("ALTER TABLE db.t RENAME COLUMN a TO c")

    def without_schemas(metadata: dict[str, Any]) -> None:
        for key in ("schemas", "current-schema-id"):
            del metadata[key]
        del metadata["schema"]["schema-id"]
        for snapshot in metadata["snapshots"]:
            del snapshot["schema-id"]

    registered(lake, table, tmp_path, without_schemas)
    assert rows(spark, "SELECT c, b FROM db.other") == [(1, "x")]


def test_schemas_that_were_removed_hide_no_rename(spark: SparkSession, lake: Lake, tmp_path: Path) -> None:
    table = lake.create_table("db.t", AB)
    spark.sql("ALTER TABLE db.t RENAME COLUMN a TO c")
    spark.sql("INSERT INTO db.t VALUES (1, 'x')")
    spark.sql("ALTER TABLE db.t RENAME COLUMN c TO a")
    spark.sql("INSERT INTO db.t VALUES (2, 'y')")
    spark.sql("CALL system.expire_snapshots('db.t', TIMESTAMP '2100-01-01', 1)")

    def without_renamed(metadata: dict[str, Any]) -> None:
        metadata["schemas"] = [s for s in metadata["schemas"] if s["schema-id"] == 0]

    registered(lake, table, tmp_path, without_renamed)
    assert rows(spark, "SELECT a, b FROM db.other") == [(1, "x"), (2, "y")]


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
