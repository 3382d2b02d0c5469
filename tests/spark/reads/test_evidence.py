"""Files are read by what is known of them, not by what the table's schemas say of their names."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.datafiles.file.footer import _primitive_type
from bergline.format.schema.physical_schema import OTHER
from bergline.format.types.types import DecimalType
from bergline.scan.manifest_cache import forget_files
from bergline.spark import explain_read
from bergline.spark.reads import evidence as read_evidence
from support.fixtures.data_files import written_files
from support.fixtures.foreign_files import stored, write_foreign_file

pytestmark = pytest.mark.spark

AB = pa.schema([("a", pa.int64()), ("b", pa.string())])


def rows(spark: SparkSession, text: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(r) for r in spark.sql(text).collect()), key=repr)


def registered(lake: Lake, table: Table, directory: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Register as `db.other` what is in a table's metadata file after a change, as another writer might leave it."""
    metadata = json.loads(Path(table.refresh().metadata_location.removeprefix("file://")).read_bytes())
    change(metadata)
    path = directory / "other.metadata.json"
    path.write_text(json.dumps(metadata))
    lake.register_table("db.other", f"file://{path}")


def test_what_a_caller_says_of_a_file_is_no_evidence(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB)
    (own,) = written_files(table, pa.table({"a": [1], "b": ["x"]}))
    other = write_foreign_file(table, {stored("c", pa.int64(), 1): [2], stored("d", pa.string(), 2): ["y"]})
    claimed = msgspec.structs.replace(other, physical_schema=own.physical_schema)
    assert claimed.physical_schema is not None
    table.append_files([claimed])
    table.row_delta(add=[own])
    assert rows(spark, "SELECT a, b FROM db.t") == [(1, "x"), (2, "y")]
    assert [p.file.physical_schema for p in table.refresh().scan().plan().files] == [None, None]


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


def test_a_query_pays_only_for_what_it_uses(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64()), ("u", pa.uuid()), ("b", pa.string())]))
    foreign = {stored("a", pa.int64(), 1): [1], stored("B", pa.string(), 3): ["x"], stored("b", pa.int64()): [7]}
    foreign[stored("u", pa.binary(16), 2)] = [b"0123456789abcdef"]
    table.append_files([write_foreign_file(table, foreign)])
    for text, reader, found in [
        ("SELECT count(*) FROM db.t", "native", 1),
        ("SELECT a FROM db.t WHERE a = 1", "native", 1),
        ("SELECT a FROM db.t WHERE b = 'x'", "arrow", 1),
        ("SELECT u FROM db.t", "arrow", "30313233-3435-3637-3839-616263646566"),
    ]:
        frame = spark.sql(text)
        assert explain_read(frame).splitlines()[1].strip().startswith(f"{reader}: 1 file"), text
        assert [tuple(row) for row in frame.collect()] == [(found,)], text


@pytest.mark.usefixtures("pruned_reads")
def test_footers_of_many_files_are_read_by_tasks(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_evidence, "MOST_READ_HERE", {})
    monkeypatch.setattr(read_evidence, "MOST_READ_HERE_BY_DEFAULT", 2)
    monkeypatch.setattr(read_evidence, "_FILES_PER_TASK", 2)
    table = lake.create_table("db.t", AB)
    names = ["a", "x", "x", "a", "z"]
    files = [write_foreign_file(table, {stored(name, pa.int64(), 1): [n]}) for n, name in enumerate(names)]
    table.append_files(files)
    frame = spark.sql("SELECT a FROM db.t")
    explained = explain_read(frame)
    assert sorted(re.findall(r"native: (\d) file", explained)) == ["1", "2", "2"], explained
    assert sorted(row.a for row in frame.collect()) == [0, 1, 2, 3, 4]
    Path(files[0].file_path.removeprefix("file://")).unlink()
    read_evidence.forget_footers()
    with pytest.raises(Exception, match="no data file"):
        spark.sql("SELECT a, b FROM db.t").collect()


def test_evidence_outlives_rewritten_manifests(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", AB)
    spark.sql("INSERT INTO db.t VALUES (1, 'x')")
    spark.sql("ALTER TABLE db.t RENAME COLUMN a TO c")
    spark.sql("INSERT INTO db.t VALUES (2, 'y')")
    table.append_files([write_foreign_file(table, {stored("z", pa.int64(), 1): [3]})])
    spark.sql("CALL system.rewrite_manifests('db.t')")
    table.refresh().delete("c = 2")
    forget_files()
    files = [p.file for p in table.refresh().scan().plan().files]
    known = {tuple(f.name for f in file.physical_schema.fields) for file in files if file.physical_schema}
    assert (len(files), known) == (2, {("a", "b")})
    assert rows(spark, "SELECT c, b FROM db.t") == [(1, "x"), (3, None)]


@pytest.mark.parametrize(("precision", "kind"), [(18, "fixed(9)"), (5, "fixed(9)"), (5, "bytes"), (18, "bytes")])
def test_decimals_in_more_bytes_than_they_need_are_no_types_of_spark(precision: int, kind: str) -> None:
    element: dict[int, Any] = {4: b"d", 6: 5, 7: 2, 8: precision}
    element |= {1: 6} if kind == "bytes" else {1: 7, 2: 9}
    assert _primitive_type(element) == OTHER
    assert _primitive_type({1: 7, 2: 8, 4: b"d", 6: 5, 7: 2, 8: precision}) == DecimalType(precision, 2)
