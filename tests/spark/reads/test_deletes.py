"""Deleted rows, by position and by key, as Spark's own reader leaves them out."""

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.errors import (
    NotFoundError,
)
from bergline.spark import explain_read
from bergline.spark.reads import deletes, groups
from bergline.spark.reads.relations import KEPT
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.foreign_files import stored, write_foreign_file
from support.fixtures.rows import ORDERS, order_rows

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


@pytest.fixture(params=[2, 3])
def changed(request: pytest.FixtureRequest, lake: Lake) -> Table:
    """Rows in two files, of which one has deleted rows at the ends of bytes and of longs."""
    properties = {"format-version": str(request.param), "write.delete.mode": "merge-on-read"}
    schema = pa.schema([("id", pa.int64()), ("tags", pa.list_(pa.int64()))])
    table = lake.create_table("db.t", schema, properties=properties)
    table.append(pa.table({"id": range(200), "tags": [[n] for n in range(200)]}, schema))
    table.append(pa.table({"id": [1000], "tags": [[0]]}, schema))
    return table.delete("id IN (0, 7, 8, 63, 64, 127, 128, 199)")


LEFT = [n for n in range(200) if n not in {0, 7, 8, 63, 64, 127, 128, 199}]


@pytest.mark.kinds(3)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"spark.sql.parquet.enableVectorizedReader": "false"},
        {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"},
        {"spark.sql.codegen.maxFields": "1"},
        {"spark.sql.ansi.enabled": "false", "spark.sql.files.maxPartitionBytes": "200"},
    ],
)
def test_deleted_rows_are_left_out_under_every_setting(
    spark: SparkSession, changed: Table, settings: dict[str, str]
) -> None:
    assert changed
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        assert rows(spark, "SELECT id FROM db.t") == sorted(((n,) for n in [*LEFT, 1000]), key=repr)
        assert spark.sql("SELECT id FROM db.t WHERE exists(tags, x -> x % 64 < 2)").count() == 6
        places = spark.sql(
            "SELECT _pos, id, _spec_id, _file FROM db.t WHERE _file LIKE '%.parquet' AND id < 1000"
        ).collect()
        assert [(row[0], row[2]) for row in sorted(places)] == [(n, 0) for n in LEFT]
        assert {row[1] - row[0] for row in places} == {0}
        assert len({row[3] for row in places}) == 1
        assert spark.sql("SELECT 1 FROM db.t a JOIN db.t b ON a.id = b.id").count() == len(LEFT) + 1
    finally:
        for name in settings:
            spark.conf.unset(name)


def test_constants_of_files_are_no_columns_of_the_table(spark: SparkSession, changed: Table) -> None:
    assert changed
    frame = spark.table("db.t")
    assert frame.columns == ["id", "tags"]
    for name in ("bergline file", "_metadata", "_metadata.row_index"):
        with pytest.raises(AnalysisException):
            frame.select(f"`{name}`" if " " in name else name)


def test_many_deleted_rows_are_made_bits_by_tasks(
    spark: SparkSession, changed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed
    monkeypatch.setattr(deletes, "MOST_READ_HERE", 1)
    KEPT.clear()
    assert spark.table("db.t").count() == len(LEFT) + 1
    assert {r.id for r in spark.table("db.t").collect()} == {*LEFT, 1000}


def test_rows_of_files_with_too_many_rows_for_bits_go_by_a_join(
    spark: SparkSession, changed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changed
    monkeypatch.setattr(groups, "MOST_MARKED_ROWS", 1)
    KEPT.clear()
    assert {r.id for r in spark.table("db.t").collect()} == {*LEFT, 1000}
