"""Late appends of PyIceberg, DuckDB and Java to a table of `bergline serve` where they move: no 409, every row once."""

import re
import threading
import urllib.request
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from bergline_server import BerglineServer
from concurrency import LONG_S, run_for_each
from java_manifests import JAVA, file_json
from peers import OfficialRuntime, duckdb_connection
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import CommitFailedException
from response_proxy import AnsweringProxy, Asked, Fate
from table_invariants import check_nothing_is_missing, pointer_line, unneeded_files

import bergline
from bergline import Lake, Table
from bergline.format.metadata.snapshot import REBASED_FROM
from bergline.table.writes import write_data_files

COLUMNS = pa.schema([("id", pa.int64()), ("who", pa.string())])
APPENDS = {"commit.server-rebase": "appends", "commit.manifest.min-count-to-merge": "3"}

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
        if asked.method == "POST" and self.rivals:
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
    name = f"db.py_{merges}"
    table = lake.create_table(name, COLUMNS, properties={**APPENDS, "commit.manifest-merge.enabled": merges})
    table.append(rows(0))
    before = conflicts(own_server)
    run_for_each(lambda old: old[1].append(rows(old[0])), [(n, peer.load_table(name)) for n in range(1, 7)])
    late = peer.load_table(name)
    table.refresh().append(rows(7))
    late.append(rows(8))
    table.refresh()
    assert conflicts(own_server) == before
    assert rebased(table) >= 6
    assert ids(table.scan().to_arrow()) == ids(peer.load_table(name).scan().to_arrow()) == list(range(9))
    assert [s.summary["total-records"] for s in table.metadata.snapshots] == [str(n) for n in range(1, 10)]
    check_nothing_is_missing(table)
    pointer_line(table)


def test_pyiceberg_overwrites_of_the_same_rows_do_not_both_succeed(lake: Lake, peer: Catalog) -> None:
    """Where nothing is to be replaced PyIceberg sends a plain append, which nobody can tell from any other."""
    table = lake.create_table("db.overwrites", COLUMNS, properties={"commit.server-rebase": "appends"})
    table.append(rows(0))
    first, second = (peer.load_table("db.overwrites") for _ in range(2))
    first.overwrite(rows(5), "id = 5")
    with pytest.raises(CommitFailedException):
        second.overwrite(rows(5), "id = 5")
    assert ids(table.refresh().scan().to_arrow()) == [0, 5]
    second.refresh().overwrite(rows(5), "id = 5")
    assert ids(table.refresh().scan().to_arrow()) == [0, 5]


def test_duckdb_appends_in_a_transaction_that_others_overtake(own_server: BerglineServer, lake: Lake) -> None:
    table = lake.create_table("db.duck", COLUMNS, properties=APPENDS).append(rows(0))
    with duckdb_connection() as duck:
        duck.execute(own_server.connection_examples["DuckDB"].replace(" AS lake ", " AS ice "))
        duck.execute("BEGIN; INSERT INTO ice.db.duck VALUES (1, 'duck')")
        table.append(rows(2))
        duck.execute("COMMIT")
        found = duck.sql("SELECT id FROM ice.db.duck ORDER BY id").fetchall()
    assert rebased(table.refresh()) == 1
    assert found == [(n,) for n in ids(table.scan().to_arrow())] == [(0,), (1,), (2,)]
    check_nothing_is_missing(table)


@pytest.mark.official
@pytest.mark.parametrize("version", ["2", "3"])
def test_java_appends_to_a_table_that_moves_on_before_every_commit(
    own_server: BerglineServer, lake: Lake, peer: Catalog, official_runtime: OfficialRuntime, version: str
) -> None:
    """As it is, on the new head with its merged manifest, and on one where a merged file is gone."""
    table = lake.create_table("db.java", COLUMNS, properties={**APPENDS, "format-version": version})
    table.append(rows(0), fast=True)
    before = conflicts(own_server)
    rivals = [
        (True, lambda: table.append(rows(10), fast=True)),
        (False, lambda: table.append(rows(11), fast=True)),
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
    assert conflicts(own_server) == before
    assert rebased(table) == 3
    found = [1, 2, 3, 10, 11, 12]
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
    table = lake.create_table("db.threads", COLUMNS, properties={**APPENDS, "format-version": version})
    numbers = [range(each * thread, each * (thread + 1)) for thread in range(threads)]
    files = [[write_data_files(table.io, table.metadata, rows(n))[0] for n in own] for own in numbers]
    partition = table.spec.partition_type(table.schema)
    described = [[file_json(file, partition) for file in own] for own in files]
    before = conflicts(own_server)
    with GatheringProxy(own_server.uri, "threads", threads) as proxy:
        planned = official_runtime.python(_APPEND_IN_THREADS, uri=proxy.uri, files=described)
    table.refresh()
    assert conflicts(own_server) == before
    assert rebased(table) >= threads - 1
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
