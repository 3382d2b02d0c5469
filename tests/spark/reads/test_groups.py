"""Which reader gets which files of a plan."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.datafiles.file.footer import read_physical_schemas
from bergline.errors import UnsupportedError
from bergline.format.deletes.delete_files import POSITION_DELETE_SCHEMA
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.spark import explain_read
from bergline.spark.reads import evidence as read_evidence
from bergline.spark.reads import groups as read_groups
from support.fixtures.add_deletes import add_deletes
from support.fixtures.data_files import written_files
from support.fixtures.foreign_files import stored, write_foreign_file
from support.fixtures.other_formats import write_file
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.spark

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


@pytest.mark.usefixtures("pruned_reads")
def test_counting_rows_opens_no_footer(spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.create_table("db.t", AB)
    table.append_files(
        [write_foreign_file(table, {stored("x", pa.int64(), 1): [1, 2], stored("y", pa.string(), 2): ["", ""]})]
    )
    looked_at: list[str] = []

    def read(_: Any, paths: list[str]) -> dict[Any, list[int]]:
        looked_at.extend(paths)
        return read_physical_schemas(table.io, paths)

    monkeypatch.setattr(read_evidence, "read_physical_schemas", read)
    assert rows(spark, "SELECT count(*) FROM db.t") == [(2,)]
    assert not looked_at
    for _ in range(2):
        assert rows(spark, "SELECT sum(a) FROM db.t") == [(3,)]
    assert len(looked_at) == 1
    spark.sql("INSERT INTO db.t VALUES (5, 'own')")
    assert rows(spark, "SELECT sum(a) FROM db.t") == [(8,)]
    assert len(looked_at) == 1


def test_files_stored_in_too_many_ways_go_to_the_arrow_reader(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_groups, "MOST_LAYOUTS", 2)
    table = lake.create_table("db.t", AB)
    names = ["a", "x", "y", "z", "a"]
    table.append_files([write_foreign_file(table, {stored(name, pa.int64(), 1): [n]}) for n, name in enumerate(names)])
    frame = spark.sql("SELECT a FROM db.t")
    explained = explain_read(frame)
    assert explained.count("native: ") == 2, explained
    assert "arrow: 2 files, because Spark's reader gets files that store their columns in 2 ways" in explained
    assert sorted(row.a for row in frame.collect()) == [0, 1, 2, 3, 4]


def test_columns_that_came_later_are_read_in_one_way(spark: SparkSession, lake: Lake) -> None:
    lake.create_table("db.t", AB)
    for number in range(20):
        spark.sql(f"INSERT INTO db.t SELECT {number}, 'x'{', 1' * number}")
        spark.sql(f"ALTER TABLE db.t ADD COLUMN c{number} INT")
    explained = explain_read(spark.table("db.t"))
    assert "native: 20 files, because names and types are those of the table" in explained
    assert rows(spark, "SELECT count(c0), count(c10), count(c19), count(*) FROM db.t") == [(19, 9, 0, 20)]


def test_files_of_both_readers_are_counted_together(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB).append(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    file = write_foreign_file(table, {stored("a", pa.int64(), 1): [3]})
    path = Path(file.file_path.removeprefix("file://"))
    hidden = path.rename(path.with_name(f"_{path.name}"))
    table.append_files([msgspec.structs.replace(file, file_path=f"file://{hidden}")])
    frame = spark.sql("SELECT count(*) FROM db.t")
    explained = explain_read(frame)
    assert "native: 1 file" in explained
    assert "arrow: 1 file" in explained
    assert [tuple(row) for row in frame.collect()] == [(3,)]
    assert rows(spark, "SELECT count(*) FROM db.t WHERE a > 1") == [(2,)]


def test_orc_and_avro_files_are_read_beside_native_parquet_files(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB, properties={"format-version": "2"})
    table.append(pa.table({"a": [1, 2, 3], "b": ["x", "y", None]}))
    parts = {"ORC": {"a": [4, 5, 6], "b": ["x", "y", "z"]}, "AVRO": {"a": [7, 8, 9], "b": ["y", None, "z"]}}
    files = [write_file(table, kind, table.schema, pa.table(part, AB)) for kind, part in parts.items()]
    table.append_files(files)
    spark.sql("ALTER TABLE db.t RENAME COLUMN b TO c")
    explained = explain_read(spark.sql("SELECT a, c FROM db.t"))
    assert "native: 1 file, " in explained
    assert f"arrow: 2 files, because the format of {files[0].file_path} is ORC" in explained
    assert rows(spark, "SELECT count(*), count(c), sum(a) FROM db.t WHERE a <> 5") == [(8, 6, 40)]
    assert rows(spark, "SELECT count(*) FROM db.t") == [(9,)]
    data = [planned.file.file_path for planned in table.refresh().scan().plan().files]
    positions = pa.table({"file_path": sorted(data), "pos": [0] * 3})
    by_position = write_file(table, "AVRO", POSITION_DELETE_SCHEMA, positions, content=FileContent.POSITION_DELETES)
    keys, content = table.schema.select(["c"]), FileContent.EQUALITY_DELETES
    by_key = write_file(table, "ORC", keys, pa.table({"c": ["y"]}), content=content, equality_ids=(2,))
    add_deletes(table, by_position, by_key)
    expected = [(3, None), (6, "z"), (8, None), (9, "z")]
    assert "native with deletes: 1 file" in explain_read(spark.sql("SELECT a, c FROM db.t"))
    assert rows(spark, "SELECT a, c FROM db.t") == expected
    assert rows(spark, "SELECT count(*) FROM db.t") == [(4,)]
    assert sorted((r["a"], r["c"]) for r in table.refresh().scan().to_arrow().to_pylist()) == expected
    deleted = [(a, "DELETE") for a in (1, 2, 4, 5, 7)]
    ordinal = "(SELECT max(_change_ordinal) FROM db.t.changes)"
    assert rows(spark, f"SELECT a, _change_type FROM db.t.changes WHERE _change_ordinal = {ordinal}") == deleted


def test_unknown_formats_and_encrypted_tables_are_refused_with_their_place(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    spark.sql("ALTER TABLE db.orders SET TBLPROPERTIES ('encryption.key-id' = 'k')")
    location = re.escape(orders.location)
    before = sorted(Path(orders.location.removeprefix("file://")).rglob("*"))
    with pytest.raises(UnsupportedError, match=f"^cannot write to the encrypted table at {location}$"):
        spark.sql("INSERT INTO db.orders VALUES (2, 1, 'x')")
    assert sorted(Path(orders.location.removeprefix("file://")).rglob("*")) == before
    spark.sql("ALTER TABLE db.orders UNSET TBLPROPERTIES ('encryption.key-id')")
    add_deletes(orders.refresh(), DataFile(f"{orders.location}/data/f.lance", "LANCE", (), 1, 1))
    found = f"found `LANCE` at {location}/data/f.lance of the table at {location}$"
    for text in ("SELECT count(*) FROM db.orders", "SELECT id FROM db.orders.changes", "UPDATE db.orders SET id = 2"):
        with pytest.raises(UnsupportedError, match=found):
            spark.sql(text)


def test_files_whose_names_spark_passes_over_are_read(spark: SparkSession, orders: Table) -> None:
    orders.append(order_rows(1))
    (file,) = written_files(orders, order_rows(2))
    path = Path(file.file_path.removeprefix("file://"))
    hidden = path.rename(path.with_name("_hidden.parquet"))
    orders.append_files([msgspec.structs.replace(file, file_path=f"file://{hidden}")])
    assert rows(spark, "SELECT id FROM db.orders") == [(1,), (2,)]


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
