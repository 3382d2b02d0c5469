"""Spark's own writer on a cluster writes objects; those of attempts that fail, or lose a race, are in no table."""

import time
from collections.abc import Iterator
from typing import Any

import pyarrow.parquet as pq
import pytest

import bergline
from bergline import Table
from bergline.spark.runtime.executors import NEEDED_FOR_OBJECTS
from support.fixtures.concurrency import LONG_S
from support.fixtures.rows import ORDERS
from support.processes.cluster_driver import ClusterDriver
from support.processes.cluster_tables import SMALL_FILES, files_of, ids_of, through, wait_for_two_tasks, written
from support.processes.s3a_jobs import s3a_settings
from support.proxies.s3_proxy import Proxy
from support.servers.s3_server import S3Server
from support.servers.spark_cluster import SparkCluster, executor_python

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[Proxy]:
    with Proxy(s3_server.port) as running:
        yield running


@pytest.fixture(scope="module")
def driver(
    cluster: SparkCluster, s3_server: S3Server, proxy: Proxy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ClusterDriver]:
    """A driver whose session has Spark's S3A connector: Spark's own writer writes."""
    directory = tmp_path_factory.mktemp("s3a")
    python = executor_python(directory / "executors", NEEDED_FOR_OBJECTS)
    settings = s3a_settings(through(proxy, s3_server))
    with ClusterDriver(cluster.master, python, directory / "log.txt", settings) as running:
        yield running


def wait_for_files(table: Table, expected: set[str]) -> None:
    """Until a table has these data files: an attempt that was ended may remove its own a little later."""
    end = time.monotonic() + LONG_S
    while (found := set(written(table))) != expected:
        assert time.monotonic() < end, f"not of the table: {found - expected}, gone: {expected - found}"
        time.sleep(0.1)


def writers_of(table: Table) -> set[str]:
    """The libraries that wrote the files of a table."""
    footers = [pq.read_metadata(table.io.open_input(path)) for path in files_of(table)]
    return {footer.created_by.partition(" ")[0] for footer in footers}


def test_spark_writes_objects_of_attempts_that_win_a_race(
    driver: ClusterDriver, objects: dict[str, Any], proxy: Proxy, s3_server: S3Server
) -> None:
    with bergline.connect(**objects) as lake:
        table = lake.create_table("db.speculative", ORDERS, properties=SMALL_FILES)
        place = objects | {"properties": through(proxy, s3_server)}
        driver.run("cluster_jobs:append_with_a_hanging_task", place, rows=20_000)
        assert ids_of(table) == list(range(20_000))
        assert writers_of(table) == {"parquet-mr"}
        wait_for_files(table, set(files_of(table)))


def test_executor_that_dies_while_spark_writes_objects_loses_and_doubles_nothing(
    cluster: SparkCluster,
    driver: ClusterDriver,
    objects: dict[str, Any],
    proxy: Proxy,
    s3_server: S3Server,
) -> None:
    with bergline.connect(**objects) as lake:
        table = lake.create_table("db.many", ORDERS)
        proxy.hold_answers_to("PUT", r"/part-[^/]*\.parquet$")
        place = objects | {"properties": through(proxy, s3_server)}
        driver.start("cluster_jobs:append_in_tasks", place, rows=20_000)
        begun = wait_for_two_tasks(driver, lambda: {f"s3:/{path}" for path in proxy.held})
        cluster.kill_executor()
        proxy.release()
        driver.answer()
        assert ids_of(table) == list(range(20_000))
        assert len(files_of(table)) == 4
        assert writers_of(table) == {"parquet-mr"}
        assert len(begun - set(files_of(table))) == 1
        wait_for_files(table, set(files_of(table)))
