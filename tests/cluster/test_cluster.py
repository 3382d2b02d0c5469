"""A standalone cluster whose executors have neither our package nor most of what it imports elsewhere."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cluster_driver import ClusterDriver
from concurrency import LONG_S
from peers import needs_java
from rows import ORDERS
from s3_server import S3Server
from spark_cluster import SparkCluster, executor_python

import bergline
from bergline import Lake, Table
from bergline.spark.runtime.executors import NEEDED, NEEDED_FOR_OBJECTS

pytestmark = pytest.mark.spark

SMOKE = (
    "every_type_comes_back_as_it_was_written",
    "statements_take_versions",
    "statements_insert_in_every_form",
    "session_writes_to_its_wap_branch",
    "metadata_tables_and_columns_are_read",
    "deleted_rows_are_gone_for_both_readers",
    "pipeline_audits_and_publishes_two_tables",
    "our_errors_are_raised_at_once_as_sparks_classes",
)
"""What executors have a part in."""
SMALL_FILES = {"write.target-file-size-bytes": "20000", "write.distribution-mode": "none"}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    needs_java()
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


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


def files_of(table: Table) -> list[str]:
    """The data files that manifests name."""
    return [planned.file.file_path for planned in table.refresh().scan().plan().files]


def attempts_of(paths: list[str]) -> set[str]:
    """The attempts of tasks that wrote files."""
    return {path.rpartition("/")[2].split("-")[1] for path in paths}


def ids_of(table: Table) -> list[int]:
    found: list[int] = table.refresh().scan(columns=["id"]).to_arrow().column("id").to_pylist()
    return sorted(found)


def written(table: Table) -> list[str]:
    """The data files that exist."""
    return table.io.list(f"{table.location}/data")


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


def test_many_rows_are_appended_to_partitions(driver: ClusterDriver, place: dict[str, Any], lake: Lake) -> None:
    found = driver.run("cluster_jobs:append_many", place, rows=100_000)
    assert found == [[f"r{n}", 25_000, sum(range(n, 100_000, 4))] for n in range(4)]
    assert len(files_of(lake.load_table("db.many"))) == 4


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


def test_settings_of_the_storage_travel_with_tasks(
    driver: ClusterDriver, tmp_path: Path, bucket: str, s3_server: S3Server
) -> None:
    place = {"uri": f"sqlite:///{tmp_path}/objects.db", "warehouse": bucket, "properties": s3_server.properties}
    with bergline.connect(**place, create=True) as lake:
        lake.create_namespace("db")
    found = driver.run("cluster_jobs:append_many", place, rows=1000)
    assert found == [[f"r{n}", 250, sum(range(n, 1000, 4))] for n in range(4)]


def test_attempts_that_lose_a_race_add_nothing(driver: ClusterDriver, place: dict[str, Any], lake: Lake) -> None:
    table = lake.create_table("db.speculative", ORDERS, properties=SMALL_FILES)
    driver.run("cluster_jobs:append_with_a_hanging_task", place, rows=20_000)
    assert ids_of(table) == list(range(20_000))
    assert len(attempts_of(files_of(table))) == 4
    assert set(files_of(table)) <= set(written(table))


def test_worker_that_dies_in_a_write_loses_and_doubles_nothing(
    cluster: SparkCluster, driver: ClusterDriver, place: dict[str, Any], lake: Lake, tmp_path: Path
) -> None:
    table = lake.create_table("db.held", ORDERS, properties=SMALL_FILES)
    until = tmp_path / "worker-is-dead"
    driver.start("cluster_jobs:append_held", place, rows=40_000, until=str(until))
    begun: set[str] = set()
    end = time.monotonic() + LONG_S
    while len(begun) < 2:  # a worker has one core: each has a task that has written and cannot end
        driver.check_alive()
        assert time.monotonic() < end, "no two workers have begun to write"
        time.sleep(0.05)
        begun = attempts_of(written(table))
    cluster.kill_worker()
    until.touch()
    driver.answer()
    assert ids_of(table) == list(range(40_000))
    assert len(attempts_of(files_of(table))) == 4
    assert len(begun - attempts_of(files_of(table))) == 1
    assert set(files_of(table)) <= set(written(table))
