"""Spark's own reader, the Arrow reader on executors and the reader in process give the same rows.

Whatever files are called, whichever rows are deleted and however, whichever columns came later, were renamed or
retyped, and whether files have ids and statistics or not.
"""

import datetime as dt
import itertools
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from bergline import Lake, Table
from bergline.format.manifest.manifest import DataFile
from bergline.format.types.types import INT
from bergline.spark.backends.choose import backend_of
from bergline.spark.reads import deletes as read_deletes
from bergline.spark.reads import groups as read_groups_module
from bergline.spark.reads.arrow import read_arrow
from bergline.spark.reads.scan import read_plan
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.types import read_schema
from bergline.table.scans.scan import TableScan
from support.fixtures.add_deletes import add_deletes, deletion_vectors, equality_deletes, position_deletes
from support.fixtures.chosen_readers import groups_of
from support.fixtures.data_files import written_files
from support.fixtures.sql_filters import EVERYTHING, sql_filters
from support.fixtures.table_strategies import comparable, tables

pytestmark = pytest.mark.spark

SCHEMA = pa.schema([("id", pa.int64()), ("k", pa.string()), ("d", pa.date32()), ("n", pa.int32()), ("f", pa.float64())])
STEMS = ("f{}", "a b%20{}", "_h{}", "ü{{x}}{}", "k=v#{}")
NAMES = (
    "plain{}.parquet",
    "_hidden{}.parquet",
    ".dot{}.parquet",
    "a space{}.parquet",
    "per%20cent%{}.parquet",
    "b{{r}}[a]ce{}.parquet",
    "ünï ☃ 😀 e\u0301{}.parquet",
    "k=v{}.parquet",
    "q?m#h+&;,@!~$'()*:{}.parquet",
    'back\\slash"{}.parquet',
    "tab\t\u00a0\u2028{}.parquet",
    "{}.parquet._COPYING_",
    "{} .parquet ",
)
_rows = st.fixed_dictionaries(
    {
        "id": st.integers(0, 9),
        "k": st.none() | st.sampled_from(["", "x", "y"]),
        "d": st.none() | st.just(dt.date(2026, 1, 1)),
        "n": st.none() | st.integers(0, 2),
        "f": st.none() | st.sampled_from([0.0, -0.0, float("nan"), 1.5]),
    }
)
_numbers = itertools.count()
_examples = int(os.environ.get("BERGLINE_EXAMPLES", "3"))
_slowly = settings(
    max_examples=_examples, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def renamed(file: DataFile, name: str) -> DataFile:
    path = Path(file.file_path.removeprefix("file://"))
    moved = path.rename(path.with_name(name.format(next(_numbers))))
    return msgspec.structs.replace(file, file_path=f"file://{moved}")


def add_data(table: Table, data: st.DataObject) -> None:
    rows = data.draw(st.lists(_rows, min_size=1, max_size=6))
    if "extra" in table.schema.names:
        rows = [{**row, "extra": row["n"]} for row in rows]
    written = written_files(table, pa.Table.from_pylist(rows, table.scan().to_arrow().schema))
    table.append_files([renamed(file, data.draw(st.sampled_from(NAMES))) for file in written])


def add_some_deletes(table: Table, data: st.DataObject) -> None:
    files = [p.file for p in table.scan().plan().files]
    file = data.draw(st.sampled_from(files))
    vectors = table.metadata.format_version >= 3
    if data.draw(st.booleans()):
        taken = any(d.file_format == "PUFFIN" for p in table.scan().plan().files for d in p.deletes)
        positions = {file.file_path: sorted(data.draw(st.sets(st.integers(0, file.record_count - 1), min_size=1)))}
        if not vectors:
            add_deletes(table, position_deletes(table, positions))
        elif not taken:
            add_deletes(table, *deletion_vectors(table, positions))
        return
    names = data.draw(st.sampled_from([("n",), ("k", "d"), ("f",), ("d", "id")]))
    keys = [{name: row[name] for name in names} for row in data.draw(st.lists(_rows, min_size=1, max_size=2))]
    schema = pa.schema([SCHEMA.field(name) for name in names])
    ids = [table.schema.names[name].id for name in names]
    add_deletes(table, equality_deletes(table, pa.Table.from_pylist(keys, schema), ids, file.partition))


def random_table(lake: Lake, data: st.DataObject) -> Table:
    table = lake.create_table(
        f"db.t{next(_numbers)}",
        SCHEMA,
        partition_by=data.draw(st.sampled_from([[], ["k"], ["bucket(2, id)"], ["d", "n"]])),
        properties={"format-version": str(data.draw(st.sampled_from([2, 3])))},
    )
    add_data(table, data)
    for _ in range(data.draw(st.integers(1, 4))):
        step = data.draw(st.sampled_from(["data", "data", "deletes", "deletes", "column"]))
        if step == "data":
            add_data(table, data)
        elif step == "deletes":
            add_some_deletes(table, data)
        elif "extra" not in table.schema.names:
            with table.update_schema() as update:
                update.add_column("extra", INT)
    return table.refresh()


def as_text(frame: DataFrame, table: int, reader: str) -> DataFrame:
    return frame.select(F.lit(table).alias("t"), F.lit(reader).alias("r"), F.to_json(F.struct("*")).alias("row"))


def frames_of(spark: SparkSession, scan: TableScan, number: int) -> list[DataFrame]:
    """The rows as the chosen readers give them, as the Arrow reader alone does, and as they are read in process."""
    plan = scan.plan()
    frames = [as_text(read_plan(plan, spark, scan.io), number, "chosen")]
    if any(group.reader == "native" for group in groups_of(scan)):
        frames.append(as_text(read_arrow(plan, tuple(plan.files), backend_of(spark), scan.io), number, "arrow"))
    rows = scan.to_arrow()
    found = pa.table([in_spark(column.combine_chunks()) for column in rows.columns], names=rows.column_names)
    return [*frames, as_text(spark.createDataFrame(found, read_schema(scan.schema)), number, "in process")]


def check_same_rows(spark: SparkSession, scans: Sequence[TableScan], data: st.DataObject) -> None:
    """All readers agree on all scans, which are run in one job, wherever deleted positions are read, and as what."""
    frames: list[DataFrame] = []
    for number, scan in enumerate(scans):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(read_deletes, "MOST_READ_HERE", data.draw(st.sampled_from([-1, 100_000])))
            patch.setattr(read_groups_module, "MOST_MARKED_ROWS", data.draw(st.sampled_from([-1, 100_000])))
            frames += frames_of(spark, scan, number)
    together = frames[0]
    for frame in frames[1:]:
        together = together.unionAll(frame)
    found: dict[tuple[int, str], list[str]] = {}
    for row in together.collect():
        found.setdefault((row.t, row.r), []).append(row.row)
    for number, scan in enumerate(scans):
        expected = sorted(found.get((number, "in process"), []))
        groups = [f"{group.reader}: {group.reason}" for group in groups_of(scan)]
        assert sorted(found.get((number, "chosen"), [])) == expected, groups
        if any(group.startswith("native") for group in groups):
            assert sorted(found.get((number, "arrow"), [])) == expected, groups


@given(st.data())
@_slowly
def test_every_reader_gives_the_same_rows(spark: SparkSession, lake: Lake, data: st.DataObject) -> None:
    conditions = [None, "n >= 1", "k = 'x' OR f > 1", "f = 0", "d IS NULL"]
    scans = []
    for _ in range(3):
        table = random_table(lake, data)
        columns = [*table.schema.names, "_file", "_pos", "_spec_id"]
        scans.append(table.scan(data.draw(st.sampled_from(conditions)), columns=columns))
    check_same_rows(spark, scans, data)


@given(st.data())
@_slowly
def test_every_reader_reads_evolved_and_imported_files_alike(
    spark: SparkSession, lake: Lake, tmp_path: Path, data: st.DataObject
) -> None:
    scans = []
    for version in (1, 2, 3):
        root = tmp_path / f"hand made {next(_numbers)}"
        names = data.draw(st.lists(st.sampled_from(STEMS), min_size=1, max_size=3))
        made = data.draw(tables(version, f"file://{root}", names))
        location = made.finish()
        for path, content in made.files.items():
            file = Path(path.removeprefix("file://"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        table = lake.register_table(f"db.{root.name.replace(' ', '_')}", location)
        known = ["_file", "_pos", "_spec_id", *(["_row_id", "_last_updated_sequence_number"] if version > 2 else [])]
        columns = [f.name for f in table.schema.fields] + data.draw(st.lists(st.sampled_from(known), unique=True))
        text, _ = data.draw(st.just(EVERYTHING) | sql_filters(comparable(made.schemas[-1])))
        scans.append(table.scan(text, columns=columns))
    check_same_rows(spark, scans, data)


@pytest.mark.parametrize("names", [("plumless.parquet", "buckeroo.parquet"), ("a.parquet", "b.parquet")])
def test_rows_of_files_are_told_apart_though_the_hashes_of_their_names_are_alike(
    spark: SparkSession, lake: Lake, names: tuple[str, str]
) -> None:
    table = lake.create_table("db.t", SCHEMA)
    for number, name in enumerate(names):
        rows = pa.Table.from_pylist([{"id": 10 * number + n} for n in range(3)], SCHEMA)
        table.append_files([renamed(file, name) for file in written_files(table, rows)])
    paths = sorted(p.file.file_path for p in table.scan().plan().files)
    assert (len({zlib.crc32(path.encode()) for path in paths}) == 1) == ("plumless.parquet" in names)
    add_deletes(table, position_deletes(table, {path: [place] for place, path in enumerate(paths)}))
    scan = table.refresh().scan(columns=["id", "_file", "_pos"])
    assert [group.reader for group in groups_of(scan)] == ["native"]
    found = sorted(tuple(row) for row in read_plan(scan.plan(), spark, scan.io).collect())
    assert found == sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist())
    assert len(found) == 4


@pytest.mark.parametrize("rows", [64, 130])
def test_deleted_positions_at_the_ends_of_numbers_are_left_out(spark: SparkSession, lake: Lake, rows: int) -> None:
    table = lake.create_table("db.t", SCHEMA)
    for _ in range(3):
        table.append(pa.Table.from_pylist([{"id": n} for n in range(rows)], SCHEMA))
    first, second, _ = (p.file.file_path for p in table.scan().plan().files)
    deleted = {first: [n for n in (0, 62, 63, 64, 127, 128, 129) if n < rows], second: list(range(rows))}
    add_deletes(table, position_deletes(table, deleted))
    scan = table.refresh().scan(columns=["id"])
    assert {group.reader for group in groups_of(scan)} == {"native"}
    found = sorted(row.id for row in read_plan(scan.plan(), spark, scan.io).collect())
    assert found == sorted([*(set(range(rows)) - set(deleted[first])), *range(rows)])


def test_many_deleted_rows_go_to_spark_only_while_bits_for_all_rows_are_few(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = lake.create_table("db.t", SCHEMA)
    table.append(pa.Table.from_pylist([{"id": n} for n in range(10)], SCHEMA))
    (planned,) = table.scan().plan().files
    add_deletes(table, position_deletes(table, {planned.file.file_path: [1, 2, 3]}))
    scan = table.refresh().scan()
    monkeypatch.setattr(read_groups_module, "MOST_DELETED_ROWS", 2)
    monkeypatch.setattr(read_groups_module, "MOST_MARKED_ROWS", 10)
    assert [group.reader for group in groups_of(scan)] == ["native"]
    monkeypatch.setattr(read_groups_module, "MOST_MARKED_ROWS", 9)
    assert [group.reason for group in groups_of(scan)] == ["3 deleted rows are too many to send to every executor"]


def test_files_go_to_the_reader_that_reads_them_right(lake: Lake) -> None:
    table = lake.create_table("db.t", SCHEMA, partition_by=["k"])
    row: dict[str, Any] = {"id": 1, "k": "x", "d": None, "n": 1, "f": 0.0}
    for name in ("plain{}.parquet", "_hidden{}.parquet"):
        table.append_files([renamed(f, name) for f in written_files(table, pa.Table.from_pylist([row], SCHEMA))])
    groups = {g.reader: g for g in groups_of(table.scan())}
    assert sorted(groups) == ["arrow", "native"]
    assert "passes over" in groups["arrow"].reason
    key = equality_deletes(table, pa.table({"f": [0.0]}), [table.schema.names["f"].id], ("x",))
    add_deletes(table, key)
    (only,) = groups_of(table.scan())
    assert only.reader == "arrow"
