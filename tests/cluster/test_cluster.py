"""A standalone cluster whose executors have neither our package nor most of what it imports elsewhere."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.spark.runtime.executors import NEEDED, NEEDED_FOR_OBJECTS
from support.fixtures.rows import ORDERS
from support.models.table_invariants import check_nothing_is_missing, unneeded_files
from support.processes.cluster_driver import ClusterDriver
from support.processes.cluster_tables import SMALL_FILES, files_of, ids_of, through, wait_for_two_tasks, written
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import S3Server
from support.servers.spark_cluster import SparkCluster, executor_python

pytestmark = pytest.mark.spark

SMOKE = (
    "every_type_comes_back_as_it_was_written",
    "statements_take_versions",
    "statements_insert_in_every_form",
    "session_writes_to_its_wap_branch",
    "metadata_tables_and_columns_are_read",
    "deleted_rows_are_gone_for_both_readers",
    "files_of_every_format_are_read",
    "pipeline_audits_and_publishes_two_tables",
    "our_errors_are_raised_at_once_as_sparks_classes",
)
"""What executors have a part in."""
Rows = dict[int, tuple[float, int | None]]


class RowChange(NamedTuple):
    """A statement that changes rows, the table that it is for, and what it makes of the table's rows."""

    statement: str
    properties: dict[str, str]
    held: str
    """The names of files that its tasks write: these are there when something is killed."""
    changed: Callable[[Rows], Rows]


ROW_CHANGES = {
    "delete": RowChange(
        "DELETE FROM db.killed WHERE region = 'r1'",
        {"format-version": "3", "write.delete.mode": "copy-on-write"},
        r"-\d{5}-\d{5}\.parquet$",
        lambda rows: {i: row for i, row in rows.items() if i % 4 != 1},
    ),
    "update": RowChange(
        "UPDATE db.killed SET amount = -amount WHERE region = 'r1'",
        {"format-version": "2", "write.update.mode": "copy-on-write"},
        r"-\d{5}-\d{5}\.parquet$",  # rows that stay as they are; those with new values are written before
        lambda rows: {i: (-amount if i % 4 == 1 else amount, row_id) for i, (amount, row_id) in rows.items()},
    ),
    "merge": RowChange(
        "MERGE INTO db.killed t USING (SELECT id, -id AS amount, 'new' AS region FROM range(0, 60, 2)) s "
        "ON t.id = s.id WHEN MATCHED AND t.region = 'r0' THEN UPDATE SET amount = s.amount "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        {"format-version": "3", "write.merge.mode": "copy-on-write"},
        r"/\d{5}-\d+-[0-9a-f-]{36}-\d{5}\.parquet$",  # new rows
        lambda rows: {
            **{i: (amount if i % 2 else -i, row_id) for i, (amount, row_id) in rows.items() if i % 4 != 2},
            **{i: (-i, None) for i in range(40, 60, 2)},
        },
    ),
}


@pytest.fixture(scope="module")
def fresh_driver(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterDriver]:
    directory = tmp_path_factory.mktemp("driver")
    python = executor_python(directory / "executors", NEEDED_FOR_OBJECTS)
    with ClusterDriver(cluster.master, python, directory / "log.txt") as running:
        yield running


@pytest.fixture(scope="module")
def imports_before(fresh_driver: ClusterDriver, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What tasks say about our package before anything of ours has run."""
    place = {"uri": f"sqlite:///{tmp_path_factory.mktemp('before')}/catalog.db"}
    found: list[str] = fresh_driver.run("cluster_jobs:import_us", place)
    return found


@pytest.fixture
def driver(fresh_driver: ClusterDriver, imports_before: list[str]) -> ClusterDriver:
    return fresh_driver


@pytest.fixture
def place(tmp_path: Path, lake: Lake) -> dict[str, Any]:
    """How the driver connects to this test's lake."""
    return {"uri": f"sqlite:///{tmp_path}/catalog.db"}


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.port) as running:
        yield running


def attempts_of(paths: list[str]) -> set[str]:
    """The attempts of tasks that wrote files."""
    return {path.rpartition("/")[2].split("-")[1] for path in paths}


def table_of_four_files(lake: Lake, properties: dict[str, str]) -> Table:
    """Forty rows, ten in each file; in format version 3 the `_row_id` of each is its id."""
    table = lake.create_table("db.killed", ORDERS, properties=properties)
    for start in range(0, 40, 10):
        ids = range(start, start + 10)
        columns = [ids, [float(i) for i in ids], [f"r{i % 4}" for i in ids]]
        table.append(pa.table(dict(zip(ORDERS.names, map(list, columns), strict=True)), schema=ORDERS))
    return table.refresh()


def rows_by_id(table: Table) -> Rows:
    """Amount and `_row_id` by id."""
    has_row_ids = table.metadata.format_version > 2
    found = table.refresh().scan(columns=["id", "amount", *["_row_id"] * has_row_ids]).to_arrow().to_pylist()
    by_id = {row["id"]: (row["amount"], row.get("_row_id")) for row in found}
    assert len(by_id) == len(found)
    return by_id


def live_files(table: Table) -> frozenset[str]:
    """The data files and delete files of the current snapshot; all that a snapshot names are there."""
    snapshot = table.refresh().current_snapshot
    assert snapshot
    return check_nothing_is_missing(table)[snapshot.snapshot_id]


def check_rows(table: Table, before: Rows, expected: Rows) -> None:
    """The rows are as expected; those that were inserted have new `_row_id`s, each its own."""
    found = rows_by_id(table)
    new_ids = [row_id for i, (_, row_id) in found.items() if i not in before]
    assert {i: (amount, row_id if i in before else None) for i, (amount, row_id) in found.items()} == expected
    assert len(set(new_ids)) == len(new_ids)
    assert all(row_id is not None and row_id >= len(before) for row_id in new_ids)


def test_many_rows_are_appended_to_partitions(driver: ClusterDriver, place: dict[str, Any], lake: Lake) -> None:
    """The first write of the driver: partitions are found by functions of ours, before any task of ours has run."""
    found = driver.run("cluster_jobs:append_many", place, rows=100_000)
    assert found == [[f"r{n}", 25_000, sum(range(n, 100_000, 4))] for n in range(4)]
    assert len(files_of(lake.load_table("db.many"))) == 4


def test_package_is_not_there_until_it_is_sent(
    driver: ClusterDriver, imports_before: list[str], place: dict[str, Any]
) -> None:
    assert imports_before == ["No module named 'bergline'"]
    assert driver.run("cluster_jobs:insert_on_branch", place) == [[1], [1, 2, 3, 4]]
    (sent,) = driver.run("cluster_jobs:import_us", place)
    assert f"bergline-{bergline.__version__}.zip" in sent


@pytest.mark.parametrize("name", SMOKE)
def test_smoke(driver: ClusterDriver, place: dict[str, Any], name: str) -> None:
    driver.run(f"smoke_checks:{name}", place)


@pytest.mark.parametrize("lacking", ["pyarrow", "msgspec"])
def test_executors_without_a_package_are_one_clear_error(
    driver: ClusterDriver, place: dict[str, Any], lake: Lake, tmp_path: Path, lacking: str
) -> None:
    table = lake.create_table("db.other", ORDERS)
    python = executor_python(tmp_path / "other", set(NEEDED) - {lacking})
    found = driver.run("cluster_jobs:append_with_another_python", place, python=str(python))
    assert found.startswith(f"expected {lacking} {NEEDED[lacking]} or newer on Spark's executors, found none for ")
    assert table.refresh().current_snapshot is None
    assert written(table) == []


def test_executors_without_a_python_are_one_clear_error(
    driver: ClusterDriver, place: dict[str, Any], lake: Lake
) -> None:
    lake.create_table("db.other", ORDERS)
    found = driver.run("cluster_jobs:append_with_another_python", place, python="/no/python")
    assert found.startswith("expected a Python that runs tasks on Spark's executors, found none: Cannot run program")


def test_settings_of_the_storage_travel_with_tasks(driver: ClusterDriver, objects: dict[str, Any]) -> None:
    found = driver.run("cluster_jobs:append_many", objects, rows=1000)
    assert found == [[f"r{n}", 250, sum(range(n, 1000, 4))] for n in range(4)]


def test_attempts_that_lose_a_race_add_nothing(driver: ClusterDriver, place: dict[str, Any], lake: Lake) -> None:
    table = lake.create_table("db.speculative", ORDERS, properties=SMALL_FILES)
    driver.run("cluster_jobs:append_with_a_hanging_task", place, rows=20_000)
    assert ids_of(table) == list(range(20_000))
    assert len(attempts_of(files_of(table))) == 4
    assert set(files_of(table)) == set(written(table))


@pytest.mark.kinds(3)
@pytest.mark.parametrize(
    ("killed", "change"),
    [("worker", "delete"), ("worker", "merge"), ("executor", "merge"), ("executor", "update"), ("driver", "update")],
)
def test_kill_in_a_row_change_loses_and_doubles_nothing(
    cluster: SparkCluster,
    driver: ClusterDriver,
    proxy: Proxy,
    objects: dict[str, Any],
    s3_server: S3Server,
    killed: str,
    change: str,
) -> None:
    statement, properties, held, changed = ROW_CHANGES[change]
    arguments = {"lake": objects | {"properties": through(proxy, s3_server)}, "statement": statement}
    with bergline.connect(**objects) as lake:
        table = table_of_four_files(lake, properties)
        before, snapshot = rows_by_id(table), table.current_snapshot
        assert snapshot
        proxy.hold_answers_to("PUT", held)
        driver.start("cluster_jobs:run_in_two_tasks", **arguments)
        begun = wait_for_two_tasks(driver, lambda: {f"s3:/{path}" for path in proxy.held})
        if killed == "driver":
            driver.kill()
            driver.launch()
            proxy.release()
            assert table.refresh().current_snapshot == snapshot
            assert rows_by_id(table) == before
            lost = unneeded_files(table)
            assert begun <= lost
            driver.run("cluster_jobs:run_in_two_tasks", **arguments)
        else:
            kill = cluster.kill_executor if killed == "executor" else cluster.kill_python_workers
            kill()
            proxy.release()
            driver.answer()
            lost = begun - live_files(table)
            assert len(lost) == 1
            assert unneeded_files(table) == set()
        check_rows(table, before, changed(before))
        assert lost.isdisjoint(live_files(table))
        assert [s.parent_snapshot_id for s in table.metadata.snapshots[4:]] == [snapshot.snapshot_id]


def test_worker_that_dies_in_a_write_loses_and_doubles_nothing(
    cluster: SparkCluster, driver: ClusterDriver, place: dict[str, Any], lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.held", ORDERS, properties=SMALL_FILES)
    until = tmp_path / "worker-is-dead"
    driver.start("cluster_jobs:append_held", place, rows=40_000, until=str(until))
    begun = wait_for_two_tasks(driver, lambda: attempts_of(written(table)))
    cluster.kill_worker()
    until.touch()
    driver.answer()
    assert ids_of(table) == list(range(40_000))
    assert len(attempts_of(files_of(table))) == 4
    assert len(begun - attempts_of(files_of(table))) == 1
    assert set(files_of(table)) == set(written(table))
