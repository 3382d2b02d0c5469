"""Files are read by what is known of them, not by what the table's schemas say of their names."""

import datetime as dt
import json
import re
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from add_deletes import add_deletes, equality_deletes, position_deletes
from data_files import written_files
from foreign_files import stored, write_foreign_file
from pyspark.sql import SparkSession

from bergline import Lake, Table
from bergline.format.schema.physical_schema import OTHER
from bergline.format.types.types import UUID, DecimalType
from bergline.parquet.file.footer import _primitive_type, read_physical_schemas
from bergline.scan.manifest_cache import forget_files
from bergline.spark import explain_read
from bergline.spark.backends.classic.late_frame import ClassicLateRows
from bergline.spark.reads import evidence as read_evidence
from bergline.spark.reads import groups as read_groups

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


def test_files_stored_in_too_many_ways_go_to_the_arrow_reader(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_groups, "MOST_WAYS", 2)
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


@pytest.mark.parametrize(("precision", "kind"), [(18, "fixed(9)"), (5, "fixed(9)"), (5, "bytes"), (18, "bytes")])
def test_decimals_in_more_bytes_than_they_need_are_no_types_of_spark(precision: int, kind: str) -> None:
    element: dict[int, Any] = {4: b"d", 6: 5, 7: 2, 8: precision}
    element |= {1: 6} if kind == "bytes" else {1: 7, 2: 9}
    assert _primitive_type(element) == OTHER
    assert _primitive_type({1: 7, 2: 8, 4: b"d", 6: 5, 7: 2, 8: precision}) == DecimalType(precision, 2)


def test_filter_on_a_uuid_that_some_files_lack(spark: SparkSession, lake: Lake) -> None:
    table = lake.create_table("db.t", pa.schema([("a", pa.int64())])).append([{"a": 1}])
    with table.update_schema() as change:
        change.add_column("u", UUID)
    table.append([{"a": 2, "u": uuid.UUID(int=1)}])
    text = str(uuid.UUID(int=1))
    assert [row.a for row in spark.table("db.t").filter(f"u = '{text}'").collect()] == [2]
    assert rows(spark, f"SELECT a FROM db.t WHERE u IN ('{text}')") == [(2,)]


def test_error_of_ours_while_planning_is_not_an_empty_table(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.create_table("db.t", AB).append(pa.table({"a": [1], "b": ["x"]}))
    frame = spark.table("db.t")
    monkeypatch.setattr(ClassicLateRows, "rows", lambda _: object().nothing)  # type: ignore[attr-defined]
    with pytest.raises(RuntimeError, match=r"cannot read `db\.t`"):
        frame.collect()


@pytest.mark.parametrize("name", ["bergline row", "bergline path", "_tmp_metadata_row_index", "_metadata"])
def test_columns_with_names_of_ours_or_of_spark_are_read(spark: SparkSession, lake: Lake, name: str) -> None:
    properties = {"write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.t", pa.schema([("id", pa.int64()), (name, pa.int64())]), properties=properties)
    table.append([{"id": n, name: n} for n in range(5)]).delete("id = 3")
    assert sorted(row[1] for row in spark.table("db.t").collect()) == [0, 1, 2, 4]
