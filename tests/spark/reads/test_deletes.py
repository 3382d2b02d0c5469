"""Deleted rows, by position and by key, as Spark's own reader leaves them out."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from foreign_files import stored, write_foreign_file
from pyspark.sql import SparkSession
from rows import ORDERS, order_rows

from bergline import Lake
from bergline.errors import (
    NotFoundError,
)
from bergline.spark import explain_read
from bergline.spark.reads.relations import KEPT

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("kind", ["positions", "keys", "vector"])
def test_a_missing_delete_file_is_named_with_its_snapshot(spark: SparkSession, lake: Lake, kind: str) -> None:
    properties = {"format-version": "3" if kind == "vector" else "2"}
    table = lake.create_table("db.t", ORDERS, properties=properties).append(order_rows(1, 2))
    data = table.scan().plan().files[0].file.file_path
    match kind:
        case "positions":
            add_deletes(table, position_deletes(table, {data: [0]}))
        case "keys":
            add_deletes(table, equality_deletes(table, pa.table({"id": [1]}), [1]))
        case _:
            add_deletes(table, *deletion_vectors(table, {data: [0]}))
    assert [r.id for r in spark.table("db.t").collect()] == [2]
    (delete,) = table.scan().plan().files[0].deletes
    Path(delete.file_path.removeprefix("file://")).unlink()
    KEPT.clear()  # a relation of before the file went away knows what was in it
    needed = f"no delete file {delete.file_path}, which snapshot {table.metadata.current_snapshot_id} needs"
    for columns in (["id"], ["_partition"]):  # the second is not for Spark's own reader
        with pytest.raises(NotFoundError, match=re.escape(needed)):
            spark.table("db.t").select(*columns).collect()


AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def test_deletes_by_key_apply_under_every_name_of_their_columns(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB)
    table.append(pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]}))
    foreign = {stored("k", pa.string(), 2): ["x", "z"], stored("b", pa.int64(), 1): [10, 2]}
    table.append_files([write_foreign_file(table, foreign)])
    paths = [p.file.file_path for p in table.scan().plan().files]
    add_deletes(table, equality_deletes(table, pa.table({"a": [2]}), [1]))
    add_deletes(table, equality_deletes(table, pa.table({"b": ["x"]}), [2]))
    spark.sql("ALTER TABLE db.t RENAME COLUMN a TO c")
    spark.sql("ALTER TABLE db.t DROP COLUMN b")
    spark.sql("ALTER TABLE db.t ADD COLUMN b STRING")
    spark.sql("INSERT INTO db.t VALUES (2, 'x')")
    frame = spark.sql("SELECT c, b FROM db.t")
    assert "arrow" not in explain_read(frame)
    assert sorted(tuple(row) for row in frame.collect()) == [(2, "x"), (3, None)]
    add_deletes(table, position_deletes(table.refresh(), {next(p for p in paths if "foreign" not in p): [2]}))
    assert rows(spark, "SELECT c, b FROM db.t") == [(2, "x")]
