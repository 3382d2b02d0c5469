"""PyIceberg, DuckDB and Java on a table of `bergline serve` where others overtake them: renumbered, or refused."""

import contextlib
import re
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException, ValidationException

import bergline
from bergline import Lake, Table
from bergline.format.metadata.snapshot import REBASED_FROM
from bergline.table.writes import write_data_files
from support.fixtures.concurrency import LONG_S, run_for_each
from support.java.java_manifests import JAVA, file_json
from support.models.table_invariants import check_nothing_is_missing, pointer_line, unneeded_files
from support.proxies.response_proxy import AnsweringProxy, Asked, Fate
from support.servers.bergline_server import BerglineServer
from support.servers.peers import OfficialRuntime, duckdb_connection

COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])
MERGING = {"commit.manifest.min-count-to-merge": "3"}

_APPEND = (
    JAVA
    + """
catalog = iceberg.rest.RESTCatalog()
catalog.initialize("late", {"uri": uri})
table = catalog.loadTable(iceberg.catalog.TableIdentifier.parse("db.java"))
node = mapper.readTree(json.dumps(file))
append = table.newFastAppend() if fast else table.newAppend()
append.appendFile(iceberg.ContentFileParser.fromJson(node, table.specs())).commit()
table.refresh()
result = table.currentSnapshot().manifestListLocation()
catalog.close()
"""
)


_APPEND_IN_THREADS = (
    JAVA
    + """
from concurrent.futures import ThreadPoolExecutor

catalog = iceberg.rest.RESTCatalog()
catalog.initialize("threads", {"uri": uri})
name = iceberg.catalog.TableIdentifier.parse("db.threads")
works = []
for described in files:
    table = catalog.loadTable(name)
    parsed = [iceberg.ContentFileParser.fromJson(mapper.readTree(json.dumps(f)), table.specs()) for f in described]
    works.append((table, parsed))

def run(work):
    table, parsed = work
    for number, file in enumerate(parsed):
        append = table.newFastAppend() if number % 2 else table.newAppend()
        append.appendFile(file).commit()

with ThreadPoolExecutor(len(works)) as pool:
    list(pool.map(run, works))
table = catalog.loadTable(name)
tasks = table.newScan().planFiles()
found = tasks.iterator()
result = []
while found.hasNext():
    result.append(found.next().file().location())
tasks.close()
catalog.close()
"""
)


class RacingProxy(AnsweringProxy):
    """Before it passes on a commit, a rival acts, if there is one."""

    rivals: list[Callable[[], object]]

    def _fate(self, asked: Asked) -> Fate | None:
        if asked.method == "POST" and not asked.path.endswith("/metrics") and self.rivals:
            self.rivals.pop()()
        return super()._fate(asked)


class GatheringProxy(AnsweringProxy):
    """Passes on the first commits to a table together, when all have come."""

    def __init__(self, uri: str, table: str, number: int) -> None:
        super().__init__(uri)
        self._path = f"/tables/{table}"
        self._first = threading.Semaphore(number)
        self._together = threading.Barrier(number, timeout=LONG_S)

    def _fate(self, asked: Asked) -> Fate | None:
        if asked.method == "POST" and asked.path.endswith(self._path) and self._first.acquire(blocking=False):
            self._together.wait()
        return super()._fate(asked)


@pytest.fixture(scope="module")
def own_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BerglineServer]:
    with BerglineServer(tmp_path_factory.mktemp("rebase")) as server:
        yield server


@pytest.fixture(scope="module")
def lake(own_server: BerglineServer) -> Iterator[Lake]:
    with bergline.connect(own_server.uri) as opened:
        opened.create_namespace("db")
        yield opened


@pytest.fixture(scope="module")
def peer(own_server: BerglineServer) -> Catalog:
    return load_catalog("late", type="rest", uri=own_server.uri)


def rows(*numbers: int) -> pa.Table:
    return pa.table({"id": numbers, "who": ["x"] * len(numbers)}, schema=COLUMNS)


def ids(found: Any) -> list[int]:
    return sorted(found["id"].to_pylist())


def conflicts(server: BerglineServer) -> int:
    with urllib.request.urlopen(f"{server.uri}/metrics") as told:  # noqa: S310
        found = re.search(r'operation="commit_table",status="409"} (\d+)', told.read().decode())
    return int(found[1]) if found else 0


def rebased(table: Table) -> int:
    return sum(REBASED_FROM in s.summary for s in table.metadata.snapshots)


@pytest.mark.parametrize("merges", ["true", "false"])
def test_pyiceberg_appends_on_old_states_of_a_table(
    own_server: BerglineServer, lake: Lake, peer: Catalog, merges: str
) -> None:
    """Where only its number is taken it gets another; where its branch has moved on it is refused, and tries again."""
    name = f"db.py_{merges}"
    table = lake.create_table(name, COLUMNS, properties={**MERGING, "commit.manifest-merge.enabled": merges})
    table.append(rows(0)).refs.create_branch("dev")
    on_dev, on_main = (peer.load_table(name) for _ in range(2))
    table.append(rows(1))
    before = conflicts(own_server)
    on_dev.append(rows(2), branch="dev")
    assert conflicts(own_server) == before
    on_main.append(rows(3))
    assert conflicts(own_server) == before + 1
    assert rebased(table.refresh()) == 1
    for branch, found in (("main", [0, 1, 3]), ("dev", [0, 2])):
        assert ids(table.scan(ref=branch).to_arrow()) == found
        assert ids(peer.load_table(name).scan().use_ref(branch).to_arrow()) == found
    check_nothing_is_missing(table)
    pointer_line(table)


def test_pyiceberg_gets_through_beside_clients_that_never_pause(own_server: BerglineServer, lake: Lake) -> None:
    """Their appends are moved, its own are not: it would lose every race."""
    lake.create_table("db.busy", COLUMNS)
    peer, end, written = load_catalog("busy", type="rest", uri=own_server.uri), threading.Event(), Counter[str]()

    def work(who: str) -> None:
        with bergline.connect(own_server.uri) as own:
            table = own.load_table("db.busy")
            while not end.is_set():
                table.append(rows(1))
                written[who] += 1

    def work_as_peer(who: str) -> None:
        try:
            for _ in range(10):
                with contextlib.suppress(CommitFailedException):
                    peer.load_table("db.busy").append(rows(1))
                    written[who] += 1
                if written[who] == 3:
                    return
        finally:
            end.set()

    run_for_each(lambda who: (work_as_peer if who == "peer" else work)(who), ["peer", "first", "second"])
    assert written["peer"] == 3
    assert min(written.values()) >= 3
    assert len(ids(lake.load_table("db.busy").scan().to_arrow())) == written.total()


@pytest.mark.filterwarnings("ignore:Delete operation did not match any records")
def test_pyiceberg_overwrites_of_the_same_rows_do_not_both_succeed(lake: Lake, peer: Catalog) -> None:
    """Where nothing is to be replaced PyIceberg sends a plain append, which nobody can tell from any other."""
    table = lake.create_table("db.overwrites", COLUMNS).append(rows(0))
    first, second = (peer.load_table("db.overwrites") for _ in range(2))
    first.overwrite(rows(5), "id = 5")
    with pytest.raises(ValidationException):  # once it was refused, it looks again
        second.overwrite(rows(5), "id = 5")
    assert ids(table.refresh().scan().to_arrow()) == [0, 5]
    second.refresh().overwrite(rows(5), "id = 5")
    assert ids(table.refresh().scan().to_arrow()) == [0, 5]


def test_duckdb_appends_in_a_transaction_that_others_overtake(own_server: BerglineServer, lake: Lake) -> None:
    table = lake.create_table("db.duck", COLUMNS, properties=MERGING).append(rows(0))
    table.refs.create_branch("dev")
    with duckdb_connection() as duck:
        duck.execute(own_server.connection_examples["DuckDB"].replace(" AS lake ", " AS ice "))
        duck.execute("BEGIN; INSERT INTO ice.db.duck VALUES (1, 'duck')")
        table.append(rows(2), branch="dev")
        duck.execute("COMMIT")
        duck.execute("BEGIN; INSERT INTO ice.db.duck VALUES (3, 'duck')")
        table.append(rows(4))
        with pytest.raises(duckdb.TransactionException):
            duck.execute("COMMIT")
        found = duck.sql("SELECT id FROM ice.db.duck ORDER BY id").fetchall()
    assert rebased(table.refresh()) == 1
    assert found == [(n,) for n in ids(table.scan().to_arrow())] == [(0,), (1,), (4,)]
    check_nothing_is_missing(table)


@pytest.mark.official
@pytest.mark.parametrize("version", ["2", "3"])
def test_java_appends_to_a_table_that_moves_on_before_every_commit(
    own_server: BerglineServer, lake: Lake, peer: Catalog, official_runtime: OfficialRuntime, version: str
) -> None:
    """Renumbered as it is and with a merged manifest; where a merged file is gone, refused, and tried again by Java."""
    table = lake.create_table("db.java", COLUMNS, properties={**MERGING, "format-version": version})
    table.append(rows(0), fast=True).refs.create_branch("dev")
    before = conflicts(own_server)
    rivals = [
        (True, lambda: table.append(rows(10), fast=True, branch="dev")),
        (False, lambda: table.append(rows(11), fast=True, branch="dev")),
        (False, lambda: table.delete("id = 0").append(rows(12), fast=True)),
    ]
    lists = []
    with RacingProxy(own_server.uri) as proxy:
        for number, (fast, rival) in enumerate(rivals, 1):
            (file,) = write_data_files(table.io, table.metadata, rows(number))
            proxy.rivals = [rival]
            described = file_json(file, table.spec.partition_type(table.schema))
            lists.append(official_runtime.python(_APPEND, uri=proxy.uri, file=described, fast=fast))
            table.refresh()
            assert table.current_snapshot is not None
            assert lists[-1] == table.current_snapshot.manifest_list
    assert conflicts(own_server) == before + 1
    assert rebased(table) == 2
    found = [1, 2, 3, 12]
    assert ids(table.scan().to_arrow()) == found
    if version == "2":
        assert ids(peer.load_table("db.java").scan().to_arrow()) == found
    read = f"""
spark.conf.set("spark.sql.catalog.late", "org.apache.iceberg.spark.SparkCatalog")
spark.conf.set("spark.sql.catalog.late.type", "rest")
spark.conf.set("spark.sql.catalog.late.uri", "{own_server.uri}")
spark.conf.set("spark.sql.catalog.late.cache-enabled", "false")
result = sorted(r.id for r in spark.table("late.db.java").collect())
"""
    assert official_runtime.python(read) == found
    check_nothing_is_missing(table)
    pointer_line(table)
    # Java has deleted its own lists, and the manifests that were not used
    assert {f for f in unneeded_files(table) if f.endswith(".avro")} == set()
    if version == "3":
        row_ids = table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
        assert len(set(row_ids)) == len(found)
    lake.drop_table("db.java")


@pytest.mark.official
@pytest.mark.parametrize("version", ["2", "3"])
def test_java_appends_from_threads_at_once(
    own_server: BerglineServer, lake: Lake, official_runtime: OfficialRuntime, version: str
) -> None:
    threads, each = 4, 5
    retries = {"commit.retry.num-retries": "100", "commit.retry.min-wait-ms": "10"}
    table = lake.create_table("db.threads", COLUMNS, properties={**MERGING, **retries, "format-version": version})
    numbers = [range(each * thread, each * (thread + 1)) for thread in range(threads)]
    files = [[write_data_files(table.io, table.metadata, rows(n))[0] for n in own] for own in numbers]
    partition = table.spec.partition_type(table.schema)
    described = [[file_json(file, partition) for file in own] for own in files]
    with GatheringProxy(own_server.uri, "threads", threads) as proxy:
        planned = official_runtime.python(_APPEND_IN_THREADS, uri=proxy.uri, files=described)
    table.refresh()
    assert sorted(planned) == sorted(file.file_path for own in files for file in own)
    assert ids(table.scan().to_arrow()) == list(range(threads * each))
    assert [s.summary["total-records"] for s in table.metadata.snapshots] == [str(n + 1) for n in range(threads * each)]
    states = [set(ids(table.scan(snapshot_id=s.snapshot_id).to_arrow())) for s in table.metadata.snapshots]
    landed = [n for before_it, after_it in pairwise([set(), *states]) for n in after_it - before_it]
    for own in numbers:  # in the order of their thread
        assert [n for n in landed if n in own] == list(own)
    check_nothing_is_missing(table)
    pointer_line(table)
    assert {f for f in unneeded_files(table) if f.endswith(".avro")} == set()
    if version == "3":
        row_ids = table.scan(columns=["_row_id"]).to_arrow()["_row_id"].to_pylist()
        assert len(set(row_ids)) == threads * each
    lake.drop_table("db.threads")
