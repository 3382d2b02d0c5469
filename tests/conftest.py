"""Fixtures for all tests: lakes on disk, one Spark session without any Iceberg jar, and the peers beside it."""

import gc
import os
import re
import shutil
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

import bergline
import bergline.spark
from bergline import Lake, Table
from bergline.spark.reads import relations
from support.fixtures.rows import ORDERS
from support.servers.bergline_server import BerglineServer
from support.servers.glue_server import GlueProxy, GlueServer
from support.servers.java_rest_server import JavaRestServer, needs_java_rest
from support.servers.peers import OfficialRuntime, needs_java, pyiceberg_catalog
from support.servers.postgres_server import running_postgres
from support.servers.s3_server import S3Server, s3_server_program

# how long it takes to make examples says something about the machine, and nothing about us
settings.register_profile(
    "bergline", max_examples=50, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("bergline")

# queries of tests run once or twice: compiling them well costs more than a third of all the time, and in the cache that
# Java gives its first compiler, code of many queries is thrown out and compiled again for another seventh
_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
# a heap that need not grow, of which half is for what is new: a third as many collections
_JAVA += " -XX:InitialRAMPercentage=100 -XX:NewRatio=1 -XX:MetaspaceSize=256m"
if sys.platform == "linux":  # Hadoop starts `chmod` for each file that it writes, by default in two steps
    _JAVA += " -Djdk.lang.Process.launchMechanism=VFORK"
_CLASSES = Path(sys.prefix, "tools", "spark.jsa")
if _CLASSES.exists():  # made by `make test`; Java is not to say in the output of tests that it does not fit
    _JAVA += f" -XX:SharedArchiveFile={_CLASSES} -Xlog:disable"
for _options in ("SPARK_SUBMIT_OPTS", "SPARK_DAEMON_JAVA_OPTS"):
    os.environ.setdefault(_options, _JAVA)

_SERVERS = {"postgres", "glue_server", "s3_server", "java_rest_server", "bergline_server"}
_ENGINES = {"spark_session", "official_runtime"}
_MAKEFILE = Path(__file__).parent.with_name("Makefile").read_text()
_WITHOUT_ENGINE = {
    Path(__file__).parent / name
    for line in re.findall(r"^WITHOUT_ENGINE := (.+)$", _MAKEFILE, re.MULTILINE)
    for name in line.split()
}
"""Folders that `make test` does not look into for tests with an engine: such a test there runs with the others."""
_KINDS_WITH_ENGINE, _KINDS_WITH_SERVER = 4, 4


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that start a server, which `make check` leaves to `make test`, and those that share an engine.

    `make test` runs the latter in a process of their own: a Spark session and an official runtime are enough.
    """
    fixtures = set(getattr(item, "fixturenames", ()))
    if fixtures & _SERVERS:
        item.add_marker("server")
    if fixtures & _ENGINES and _WITHOUT_ENGINE.isdisjoint(item.path.parents):
        item.add_marker("engine")


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as `thorough` what is one kind more of a test on an engine or a server than `make test` has time for.

    A test runs with some of its parameters, spread over all of them; `pytest.mark.kinds(n)` says how many.
    """
    by_test: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("thorough") is None:
            by_test.setdefault((item.path, item.nodeid.partition("[")[0]), []).append(item)
    for kinds in by_test.values():
        limit = _kinds_in_make_test(kinds[0])
        if limit is None or len(kinds) <= limit:
            continue
        chosen = {round(place * (len(kinds) - 1) / max(limit - 1, 1)) for place in range(limit)}
        for place, item in enumerate(kinds):
            if place not in chosen:
                item.add_marker("thorough")


def pytest_sessionstart() -> None:
    """Leave garbage alone while tests are collected: there is next to none among them."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking over modules and tests again and again: they stay to the end."""
    gc.collect()
    gc.freeze()
    gc.enable()


def _kinds_in_make_test(item: pytest.Item) -> int | None:
    """How many kinds of the item's test run in `make test`; None for all."""
    if (said := item.get_closest_marker("kinds")) is not None:
        return int(said.args[0])
    if item.get_closest_marker("engine") is not None:
        return _KINDS_WITH_ENGINE
    if {"s3", "stateful"} & set(item.path.parts):
        return _KINDS_WITH_SERVER
    return None


@pytest.fixture(scope="session")
def new_catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a lake with namespace `db`, to be copied: that takes a third of the time to make one."""
    path = tmp_path_factory.mktemp("new") / "catalog.db"
    with bergline.connect(f"sqlite:///{path}", create=True) as made:
        made.create_namespace("db")
    return path


@pytest.fixture
def lake(tmp_path: Path, new_catalog: Path) -> Iterator[Lake]:
    """A lake in a directory of its own, with namespace `db`."""
    shutil.copyfile(new_catalog, tmp_path / "catalog.db")
    with bergline.connect(f"sqlite:///{tmp_path}/catalog.db") as opened:
        yield opened


@pytest.fixture
def orders(lake: Lake) -> Table:
    """An empty table of orders."""
    return lake.create_table("db.orders", ORDERS)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URI of a PostgreSQL server of this run's own."""
    with running_postgres() as uri:
        yield uri


@pytest.fixture(scope="session")
def glue_server() -> Iterator[GlueServer]:
    """One AWS Glue for all tests."""
    with GlueServer() as server:
        yield server


@pytest.fixture
def glue(glue_server: GlueServer) -> Iterator[GlueProxy]:
    """An empty AWS Glue."""
    with GlueProxy(glue_server) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server of this run's own."""
    with S3Server(s3_server_program(), tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def bucket(s3_server: S3Server) -> str:
    """The location of a new bucket."""
    return s3_server.make_bucket(f"test-{uuid.uuid4().hex[:12]}")


@pytest.fixture(scope="session")
def java_rest_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaRestServer]:
    """Iceberg's reference REST server, one for all tests."""
    needs_java_rest()
    with JavaRestServer(tmp_path_factory.mktemp("java-rest")) as server:
        yield server


@pytest.fixture(scope="session")
def bergline_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    """`bergline serve`, one for all tests."""
    with BerglineServer(tmp_path_factory.mktemp("bergline-serve")) as server:
        yield server


@pytest.fixture(scope="session")
def spark_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests; no Iceberg jar in it."""
    needs_java()
    spark = (
        SparkSession.builder.master("local[2,2]")  # a task that fails is tried once more
        .appName("bergline-tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("spark-warehouse")))
        .config("spark.sql.ui.explainMode", "simple")  # no page shows the plans that Spark writes down for its own
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    yield spark
    spark.stop()


@pytest.fixture
def spark(spark_session: SparkSession, lake: Lake) -> Iterator[SparkSession]:
    """The session with this test's lake attached."""
    bergline.spark.attach(spark_session, lake)
    yield spark_session
    spark_session.conf.unset("spark.wap.branch")
    bergline.spark.detach(spark_session)
    spark_session._jsparkSession.sessionState().catalog().clearTempTables()  # views would show in the next test


@pytest.fixture
def pruned_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few files a table has, only those are read that a query needs."""
    monkeypatch.setattr(relations, "MOST_FILES_UNFILTERED", -1)
    relations.KEPT.clear()


@pytest.fixture(scope="session")
def official_runtime(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OfficialRuntime]:
    """The official Iceberg Spark runtime in a process of its own."""
    needs_java()
    with OfficialRuntime(tmp_path_factory.mktemp("official") / "log.txt") as runtime:
        yield runtime


@pytest.fixture
def official(official_runtime: OfficialRuntime, tmp_path: Path, lake: Lake) -> Callable[[str], list[tuple[Any, ...]]]:
    """Runs SQL in the official runtime, with this test's lake as the current catalog."""
    official_runtime.use_catalog(tmp_path / "catalog.db", tmp_path / "warehouse", lake.name)
    return official_runtime.sql


@pytest.fixture
def pyiceberg(tmp_path: Path, lake: Lake) -> Iterator[Any]:
    """PyIceberg's SQL catalog on this test's lake."""
    catalog = pyiceberg_catalog(tmp_path / "catalog.db", tmp_path / "warehouse", lake.name)
    yield catalog
    catalog.close()
