"""Rows rewritten on executors: the same result as in this process, and the driver opens no data file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.errors import ConflictError, FormatError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.deletes.position_set import position_set
from bergline.io.local import LocalFileIO
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.row_engine import RowEngine
from bergline.table.operations.row_changes import RowChanges, RowLevelWrite, write_row_changes
from support.fixtures.competing_writers import once, overtaken, rival_lake
from support.fixtures.rows import ORDERS, ids, order_rows
from support.fixtures.twin_tables import KINDS, all_rows, totals
from support.fixtures.ways_of_changing import change_rows_by
from support.models.round_trips import costs_of

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def nothing_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    change_rows_by("tasks", monkeypatch)


OPERATIONS: dict[str, Callable[[Table, RowEngine | None], object]] = {
    "delete": lambda table, engine: table.delete("id IN (2, 9, 10, 31) OR (id >= 20 AND id < 30)", engine=engine),
    "overwrite": lambda table, engine: table.overwrite(order_rows(100), "id IN (3, 8, 30)", engine=engine),
    "compact": lambda table, engine: table.compact(engine=engine),
}


@pytest.fixture
def engine(spark: SparkSession) -> RowEngine:
    return bergline.spark.row_engine(spark)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The data files that this process reads or writes; executors are other processes."""
    found: list[str] = []

    def noting(method: str) -> None:
        original = getattr(LocalFileIO, method)

        def noted(io: LocalFileIO, location: str, *args: Any) -> Any:
            if "/data/" in location and "-deletes." not in location:
                found.append(location)
            return original(io, location, *args)

        monkeypatch.setattr(LocalFileIO, method, noted)

    for method in ("read", "read_range", "open_input", "create", "create_output"):
        noting(method)
    return found


def tasks_of(table: Table) -> set[str]:
    """The tasks that wrote the files which the newest snapshot added."""
    paths = table.inspect("entries").to_pylist()
    newest = table.current_snapshot
    assert newest is not None
    added = [e["data_file"]["file_path"] for e in paths if e["snapshot_id"] == newest.snapshot_id and e["status"] == 1]
    return {"-".join(path.rpartition("/")[2].split("-")[:2]) for path in added}


@pytest.mark.kinds(2)
@pytest.mark.parametrize("kind", KINDS)
def test_results_are_those_of_the_engine_in_this_process(lake: Lake, engine: RowEngine, kind: str) -> None:
    ours, theirs = KINDS[kind](lake, "db.ours"), KINDS[kind](lake, "db.theirs")
    for name, operation in OPERATIONS.items():
        operation(ours, None)
        operation(theirs, engine)
        assert all_rows(theirs) == all_rows(ours), name
        if name == "delete":  # later ones find other files, which engines have written
            assert totals(theirs) == totals(ours)


@pytest.mark.parametrize("kind", ["v2 copy", "v2 positions"])
def test_driver_opens_no_data_file(lake: Lake, engine: RowEngine, opened: list[str], kind: str) -> None:
    table = KINDS[kind](lake, "db.t")
    opened.clear()
    table.compact(engine=engine)
    assert opened == []
    table.delete("id = 15", engine=ArrowRowEngine())
    assert opened != []


@pytest.mark.kinds(2)
@pytest.mark.parametrize("kind", KINDS)
def test_known_positions_are_deleted_as_in_this_process(lake: Lake, engine: RowEngine, kind: str) -> None:
    ours, theirs = KINDS[kind](lake, "db.ours"), KINDS[kind](lake, "db.theirs")
    wanted = "id IN (2, 9, 10, 31) OR (id >= 20 AND id < 30)"
    for table, given in ((ours, None), (theirs, engine)):
        found: dict[str, list[int]] = {}
        for row in table.scan(wanted, columns=["_file", "_pos"]).to_arrow().to_pylist():
            found.setdefault(row["_file"], []).append(row["_pos"])
        changes = RowChanges({path: position_set(rows) for path, rows in found.items()})
        read = table.scan(wanted).plan()
        table.commit(write_row_changes(table.io, table.metadata, read, changes, RowLevelWrite("delete"), engine=given))
    assert all_rows(theirs) == all_rows(ours)
    assert totals(theirs) == totals(ours)


@pytest.mark.parametrize("kind", ["v2 copy, partitions", "v2 positions", "v3 vectors"])
def test_little_work_is_done_by_this_process(
    spark: SparkSession, lake: Lake, engine: RowEngine, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    change_rows_by("here", monkeypatch)
    ours, theirs = KINDS[kind](lake, "db.ours"), KINDS[kind](lake, "db.theirs")
    for name in ("delete", "overwrite"):
        OPERATIONS[name](ours, None)
        costs = costs_of(spark, lambda name=name: OPERATIONS[name](theirs, engine))
        assert costs.jobs == 0, costs
        assert costs.round_trips <= 3, costs  # Spark's caches are told of the commit
        assert all_rows(theirs) == all_rows(ours)


def test_several_tasks_have_a_part_in_it(lake: Lake, engine: RowEngine) -> None:
    table = KINDS["v2 copy, partitions"](lake, "db.u")
    table.delete("id IN (2, 6, 11, 14, 18, 22)", engine=engine)
    assert len(tasks_of(table)) == 2  # the session has two cores
    table.compact(engine=engine)
    assert len(tasks_of(table)) == 2
    assert {f.partition for f in (p.file for p in table.scan().plan().files)} == {("eu",), ("us",)}


def test_statements_and_writers_rewrite_files_on_executors(
    spark: SparkSession, lake: Lake, opened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArrowRowEngine, "rewrite", None)
    monkeypatch.setattr(ArrowRowEngine, "delete_positions", None)
    table = KINDS["v2 copy, evolved"](lake, "db.t")
    KINDS["v2 positions, evolved"](lake, "db.u")
    new = "id, CAST(id AS DOUBLE) AS amount, 'eu' AS region, CAST(NULL AS STRING) AS note FROM range(1000) WHERE id ="
    for name in ("db.t", "db.u"):
        table = lake.load_table(name)
        opened.clear()
        spark.sql(f"SELECT {new} 200").writeTo(name).overwrite("id IN (3, 30)")
        spark.sql(f"INSERT INTO {name} REPLACE WHERE id = 5 SELECT {new} 201")
        spark.sql(
            f"INSERT OVERWRITE {name} PARTITION (region = 'us') SELECT id, 1.0D, 'x' FROM range(1000) WHERE id = 202"
        )
        assert opened == [], name
        assert ids(table.refresh().scan("region = 'eu'").to_arrow()) == [
            *(i for i in range(24) if i % 8 < 4 and i != 3),
            *(31, 32, 200, 201),
        ]
        assert ids(table.scan("region = 'us'").to_arrow()) == [202]


def test_jobs_say_what_they_do(
    spark: SparkSession, lake: Lake, engine: RowEngine, caplog: pytest.LogCaptureFixture
) -> None:
    table = KINDS["v3 vectors"](lake, "db.t")
    with caplog.at_level("INFO", logger="bergline.spark"):
        table.delete("id IN (7, 22)", engine=engine)
        table.compact(engine=engine)
    deleted, rewritten = (record.getMessage() for record in caplog.records)
    assert deleted.startswith(f"bergline: delete rows of 2 data files of {table.location}/data: 2 rows deleted, ")
    assert rewritten.startswith(f"bergline: rewrite 6 data files of {table.location}/data: 0 rows deleted, 1 file ")


def test_file_that_is_broken_leaves_no_file_and_no_commit(lake: Lake, engine: RowEngine) -> None:
    table = KINDS["v2 copy"](lake, "db.t")
    path = table.scan("id = 22").plan().files[0].file.file_path
    Path(path.removeprefix("file://")).write_bytes(b"broken")
    before, written = table.metadata_location, set(table.io.list(table.location))
    with pytest.raises(FormatError, match=path.rpartition("/")[2]):
        table.delete("id IN (2, 22)", engine=engine)
    assert set(table.io.list(table.location)) == written
    table.io.delete([path])
    with pytest.raises(NotFoundError) as caught:
        table.delete("id IN (2, 22)", engine=engine)
    assert (caught.value.kind, caught.value.name) == ("file", path)
    assert set(table.io.list(table.location)) == written - {path}
    assert table.refresh().metadata_location == before


def test_task_that_fails_leaves_no_file_and_no_commit(lake: Lake, engine: RowEngine) -> None:
    """One of the new partitions has no place on disk: rows of the others are written, and removed again."""
    table = KINDS["v2 copy, partitions"](lake, "db.t")
    with table.update_spec() as spec:
        spec.remove_field("region")
        spec.add_field("truncate(12, id)")
    blocked = Path(table.location.removeprefix("file://")) / "data" / "id_trunc_12=12"
    blocked.write_text("no directory")
    before = table.metadata_location, sorted(table.io.list(table.location))
    with pytest.raises(Exception, match="id_trunc_12=12"):
        table.delete("id IN (2, 22)", engine=engine)
    assert (table.refresh().metadata_location, sorted(table.io.list(table.location))) == before
    blocked.unlink()
    table.delete("id IN (2, 22)", engine=engine)
    assert 22 not in ids(table.scan().to_arrow())


@pytest.mark.kinds(2)
@pytest.mark.parametrize("kind", ["v2 copy", "v2 positions", "v3 vectors"])
def test_conflicts_are_those_of_the_engine_in_this_process(lake: Lake, engine: RowEngine, kind: str) -> None:
    for number, given in enumerate((None, engine)):
        name = f"db.t{number}"
        table = KINDS[kind](lake, name)
        late = rival_lake(lake, before_swap=once(lambda name=name: lake.load_table(name).append(order_rows(2))))[0]
        with pytest.raises(ConflictError, match="added"):
            late.load_table(name).delete("id = 2", engine=given)
        kept = overtaken(lake, lambda name=name: lake.load_table(name).append(order_rows(50)))
        kept.load_table(name).delete("id = 7", engine=given)
        found = ids(table.refresh().scan().to_arrow())
        assert (7 in found, 50 in found, found.count(2)) == (False, True, 2)
        lost = overtaken(lake, lambda name=name: lake.load_table(name).delete("id = 9"))
        lost.load_table(name).compact(engine=given)  # looks again
        assert 9 not in ids(table.refresh().scan().to_arrow())


def test_engine_needs_a_session_that_runs_and_files_that_it_reaches(engine: RowEngine) -> None:
    with pytest.raises(InvalidInputError):
        bergline.spark.row_engine("local[2]")  # type: ignore[arg-type]
    with bergline.connect("memory:") as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.t", ORDERS).append(order_rows(1, 2, 3))
        with pytest.raises(UnsupportedError, match="expected files that Spark can reach, found them in memory"):
            table.delete("id = 2", engine=engine)


def test_maintenance_that_is_called_in_sql_uses_the_executors(
    spark: SparkSession, orders: Table, opened: list[str]
) -> None:
    for i in range(3):
        orders.append(order_rows(i))
    before = orders.metadata_location
    arguments = "pattern => 'db.ord*', policy => map('compaction.min-input-files', '2', 'manifests.min-count', '9')"
    (planned,) = spark.sql(
        f"CALL system.maintain({arguments}, steps => array('compaction'), dry_run => true)"
    ).collect()
    assert (planned.table, planned.step, planned.branch, planned.status) == (
        "db.orders",
        "compaction",
        "main",
        "planned",
    )
    assert planned.details["rewritten_data_files"] == 3
    assert orders.refresh().metadata_location == before
    opened.clear()
    done = spark.sql(f"CALL system.maintain({arguments})").collect()
    assert [(row.step, row.status) for row in done] == [
        ("compaction", "done"),
        ("manifests", "nothing to do"),
        ("expiry", "nothing to do"),
        ("orphans", "nothing to do"),
    ]
    assert done[0].details["added_data_files"] == 1
    assert not opened
    assert ids(orders.refresh().scan().to_arrow()) == [0, 1, 2]


def test_statistics_are_computed_by_tasks(lake: Lake, engine: RowEngine, opened: list[str]) -> None:
    table = lake.create_table("db.t", ORDERS, properties={"write.delete.mode": "merge-on-read"})
    for start in range(0, 40, 10):
        table.append(order_rows(*range(start, start + 15)))
    table.delete("id = 3")
    opened.clear()
    file = table.compute_statistics(["id", "region"], engine=engine)
    assert not opened
    assert file is not None
    assert [b.properties["ndv"] for b in file.blob_metadata] == ["44", "1"]
    alone = table.compute_statistics(["id", "region"])
    assert alone is not None
    assert alone.file_size_in_bytes == file.file_size_in_bytes
    (gone, *_) = [planned.file.file_path for planned in table.scan().plan().files]
    table.io.delete([gone])
    with pytest.raises(NotFoundError):
        table.compute_statistics(engine=engine)
    assert table.refresh().metadata.statistics == (alone,)


def test_many_footers_are_read_by_tasks(orders: Table, engine: RowEngine, opened: list[str], tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    paths = [f"{tmp_path}/data/{n}.parquet" for n in range(70)]
    for n, path in enumerate(paths):
        pq.write_table(order_rows(n).select(["id", "amount"]), path)
    opened.clear()
    assert len(orders.add_files(paths, engine=engine)) == 70
    assert not opened
    assert ids(orders.scan().to_arrow()) == list(range(70))
