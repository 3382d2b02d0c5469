"""A catalog of 100,000 tables: what a request costs does not grow with them, and one hot table is in nobody's way."""

import asyncio
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.reserved_directories import Claim, DirectoryKind
from bergline.catalog.sql.directories.table_directories import TableDirectories
from bergline.catalog.sql.records import AuditEntry
from bergline.errors import NotFoundError, RefusedError
from bergline.io.fileio import FileIO
from bergline.lake.lake import connect
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from bergline.table.orphans.purge import purge_table
from support.fixtures.concurrency import LONG_S
from support.fixtures.many_tables import BIG, TABLES, Work, fill, plans, watched
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, set_property
from support.servers.waiting_commits import queued

pytestmark = pytest.mark.long

CLIENTS = 64
IN_BIG = f"/v1/namespaces/{BIG}"
VIEWS = TABLES // 1000


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def many(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerContext]:
    """A server over a catalog of very many tables in one namespace, and of few in another."""
    place = tmp_path_factory.mktemp("many")
    uri = f"sqlite:///{place}/lake/catalog.db"
    if request.param == "postgresql":
        uri = request.getfixturevalue("postgres")
    context = open_server(uri, warehouse=str(place / "warehouse"), name=uuid4().hex)
    with AsgiClient(context) as client:
        for namespace in ("db", BIG, f"{BIG}-2"):
            client.namespace(namespace)
        for table in ("orders", "items"):
            client.table(table)
    fill(context)
    if request.param == "postgresql":
        with context.store.database.writing() as connection:
            connection.exec_driver_sql("ANALYZE")  # as autovacuum does
    yield context
    context.catalog.close()


@pytest.fixture
def many_client(many: ServerContext) -> Iterator[AsgiClient]:
    with AsgiClient(many) as asking:
        yield asking


def asked(many: ServerContext, client: AsgiClient, path: str, **more: Any) -> tuple[AsgiResponse, Work]:
    """The answer, and the database's work for it."""
    client("GET", "/v1/config")  # so that who asks is known, and nothing else is looked up
    with watched(many.store.database) as work:
        response = client("GET", path, **more)
    return response, work


def most_rows(lines: list[str]) -> int:
    """The most rows that a step of a PostgreSQL plan looked at, those that a filter removed included."""
    found = [re.search(r"actual.* rows=([0-9.]+) loops=([0-9]+)", line) for line in lines]
    removed = [re.search(r"Rows Removed by Filter: ([0-9]+)", line) for line in lines]
    rows = [float(m[1]) * float(m[2]) for m in found if m] + [float(m[1]) for m in removed if m]
    return int(max(rows, default=0))


def check_work(many: ServerContext, work: Work, most: int) -> None:
    """No more rows than `most` are looked at, and none is sorted that stands in order in an index."""
    assert work.statements
    lines = plans(many.store.database, work)
    if many.store.database.engine.dialect.name == "sqlite":
        assert not [line for line in lines if line.startswith("SCAN iceberg") or "TEMP B-TREE" in line], lines
        assert work.thousands * 1000 <= most * 30, lines
    else:
        assert most_rows(lines) <= most, "\n".join(lines)


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_missing_name_looks_at_its_neighbours_alone(many: ServerContext, many_client: AsgiClient, method: str) -> None:
    response, work = asked(many, many_client, f"{IN_BIG}/tables/t050000x")
    assert response.error == (404, "NoSuchTableException")
    assert "did you mean `big.t050000`" in response.message
    check_work(many, work, 300)
    assert many_client(method, f"{IN_BIG}/tables/t050000x").status == 404


def test_missing_view_looks_at_its_neighbours_alone(many: ServerContext, many_client: AsgiClient) -> None:
    response, work = asked(many, many_client, f"{IN_BIG}/views/t05x")
    assert response.error == (404, "NoSuchViewException")
    check_work(many, work, 300)


def test_missing_name_in_the_library_looks_at_its_neighbours_alone(many: ServerContext) -> None:
    with watched(many.store.database) as work, pytest.raises(NotFoundError) as caught:
        many.catalog.load_table(TableName((BIG,), "t050000x"))
    assert f"{BIG}.t050000" in caught.value.near
    check_work(many, work, 300)


def test_near_namespaces_are_found_among_neighbours(many: ServerContext, many_client: AsgiClient) -> None:
    response = many_client("GET", "/v1/namespaces/bigg")
    assert response.error == (404, "NoSuchNamespaceException")
    assert "did you mean `big`" in response.message
    check_work(many, asked(many, many_client, "/v1/namespaces/bigg")[1], 300)


def test_readiness_looks_at_next_to_nothing(many: ServerContext, many_client: AsgiClient) -> None:
    response, work = asked(many, many_client, "/ready")
    assert response.status == 200
    assert work.thousands <= 1
    if many.store.database.engine.dialect.name == "postgresql":
        check_work(many, work, 10)


def paged(client: AsgiClient, path: str, size: int, key: str) -> Iterator[list[Any]]:
    token: str | None = ""
    while token is not None:
        response = client("GET", path, query={"pageToken": token, "pageSize": str(size)})
        assert response.status == 200, response
        yield response.json[key]
        token = response.json["next-page-token"]


def test_page_reads_its_own_rows_and_sorts_nothing(many: ServerContext, many_client: AsgiClient) -> None:
    pages = paged(many_client, f"{IN_BIG}/tables", 1000, "identifiers")
    next(itertools.islice(pages, 20, None))
    with watched(many.store.database) as work:
        assert len(next(pages)) == 1000
    check_work(many, work, 1100)


def test_names_that_may_be_seen_are_looked_up(many: ServerContext) -> None:
    some = {f"t{number:06}" for number in range(99_000, 99_250)} | {"gone"}
    with watched(many.store.database) as work:
        assert len(many.store.names_among((BIG,), some, None, 101)) == 101
        assert len(many.store.names_among((BIG,), some, "t099199", None)) == 50
    check_work(many, work, 300)


@pytest.mark.parametrize(("kind", "number"), [("tables", TABLES - VIEWS), ("views", VIEWS)])
def test_pages_cover_all_names_once(many: ServerContext, many_client: AsgiClient, kind: str, number: int) -> None:
    path = f"{IN_BIG}/{kind}"
    with watched(many.store.database) as whole:
        response = many_client("GET", path).json["identifiers"]
    with watched(many.store.database) as work:
        pages = list(paged(many_client, path, 5000 if kind == "tables" else 10, "identifiers"))
    assert [name for page in pages for name in page] == response
    assert len(response) == number
    assert len(pages) == (20 if kind == "tables" else 10)
    assert work.thousands <= 3 * whole.thousands


def test_pages_of_namespaces_read_their_own_alone(many: ServerContext, many_client: AsgiClient) -> None:
    """That one of them has very many tables makes no difference."""
    with watched(many.store.database) as work:
        first = next(paged(many_client, "/v1/namespaces", 2, "namespaces"))
    assert first == [[BIG], [f"{BIG}-2"]]
    check_work(many, work, 300)
    assert [n for page in paged(many_client, "/v1/namespaces", 2, "namespaces") for n in page] == [
        [BIG],
        [f"{BIG}-2"],
        ["db"],
    ]


def test_page_of_views_is_found_among_tables(many: ServerContext, many_client: AsgiClient) -> None:
    response, work = asked(many, many_client, f"{IN_BIG}/views", query={"pageSize": "10", "pageToken": ""})
    assert len(response.json["identifiers"]) == 10
    check_work(many, work, 300)


def test_namespace_that_only_its_descendants_show_is_listed_without_reading_them(
    many: ServerContext, many_client: AsgiClient
) -> None:
    fill(many, "deep.down", 3000)
    try:
        with watched(many.store.database) as work:
            found = [n for page in paged(many_client, "/v1/namespaces", 3, "namespaces") for n in page]
        assert found == [[BIG], [f"{BIG}-2"], ["db"], ["deep"]]
        check_work(many, work, 300)
        with watched(many.store.database) as work:
            assert many.store.list_namespaces() == [(BIG,), (f"{BIG}-2",), ("db",), ("deep",), ("deep", "down")]
        check_work(many, work, 300)
        with watched(many.store.database) as work:
            assert not many.store.drop_namespace(("deep",))
        check_work(many, work, 300)
    finally:
        with many.store.database.writing() as connection:
            connection.exec_driver_sql("DELETE FROM iceberg_tables WHERE table_namespace = 'deep.down'")


def test_directories_of_other_tables_are_found_by_an_index(many: ServerContext) -> None:
    directories = TableDirectories(many.records, lambda _, name: [f"s3://nowhere/{BIG}/{name.name}"])
    claim = Claim(DirectoryKind.TABLE, TableName(("db",), "new"))
    directories.check_apart(claim, ["s3://nowhere/new"])
    if many.store.database.engine.dialect.name == "postgresql":
        with many.store.database.writing() as connection:
            connection.exec_driver_sql("ANALYZE iceberg_tables")
    with watched(many.store.database) as work:
        directories.check_apart(claim, ["s3://nowhere/new/deeper", "s3a://elsewhere/new"])
        assert many.store.names_with_metadata_in([f"s3://nowhere/{BIG}/t77"])
    check_work(many, work, 300)
    with pytest.raises(RefusedError, match="overlaps the files of table"):
        TableDirectories(many.records, lambda *_: [f"s3://nowhere/{BIG}/t77"]).check_apart(
            claim, [f"s3a://nowhere/{BIG}/t77/data"]
        )


def test_purge_reads_the_files_of_no_other_table(
    many: ServerContext, many_client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is kept of where files are is enough: their own metadata files are not even there."""
    many_client.namespace("purged")
    many_client("POST", "/v1/namespaces/purged/tables", {"name": "t", "schema": SCHEMA})
    with many.store.database.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO bergline_footprints SELECT catalog_name, metadata_location, 0, 1, table_namespace, table_name,"
            " NULL, 's3://nowhere/far', '/far/' FROM iceberg_tables WHERE table_namespace = 'big'"
        )
    read: list[str] = []
    reads = type(many.catalog.io).read

    def counted(io: FileIO, location: str, most_bytes: int | None = None) -> bytes:
        read.append(location)
        return reads(io, location, most_bytes)

    monkeypatch.setattr(type(many.catalog.io), "read", counted)
    with watched(many.store.database) as work:
        result = purge_table(many.catalog, TableName(("purged",), "t"))
    assert result.deleted_files == 1
    assert not [location for location in read if "/big/" in location]
    assert len(read) < 20
    assert len(work.statements) < 100


class SlowSwap:
    """Commits to `orders` wait until they are let on."""

    def __init__(self, context: ServerContext, monkeypatch: pytest.MonkeyPatch) -> None:
        self.waiting = 0
        self.most_at_once = 0
        self.begun, self.let_on = asyncio.Event(), asyncio.Event()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._swap = context.catalog.store.swap
        monkeypatch.setattr(context.catalog.store, "swap", self)

    def __call__(self, table: TableName, expected: str, new: str) -> bool:
        if table.name == "orders":
            assert self.loop
            self.waiting += 1
            self.loop.call_soon_threadsafe(self.begun.set)
            self.most_at_once = max(self.most_at_once, self.waiting)
            asyncio.run_coroutine_threadsafe(self.let_on.wait(), self.loop).result(LONG_S)
            self.waiting -= 1
        return bool(self._swap(table, expected, new))


async def commit(client: AsgiClient, name: str, key: str) -> AsgiResponse:
    body = {"requirements": [], "updates": [set_property(key, "x")]}
    return await client.send("POST", f"/v1/namespaces/db/tables/{name}", [json.dumps(body).encode()])


async def commit_both(client: AsgiClient) -> AsgiResponse:
    """A transaction on both tables."""
    changes = [
        {"identifier": {"namespace": ["db"], "name": name}, "requirements": [], "updates": [set_property("both", name)]}
        for name in ("items", "orders")
    ]
    return await client.send("POST", "/v1/transactions/commit", [json.dumps({"table-changes": changes}).encode()])


def test_hot_table_is_in_nobodys_way(
    many: ServerContext, many_client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """64 clients commit to one table, slowly; meanwhile others are loaded, listed, looked for and committed to.

    A transaction that waits for that table does not hold up the other one that it is about.
    """
    slow = SlowSwap(many, monkeypatch)

    async def meanwhile() -> tuple[list[int], list[int]]:
        slow.loop = asyncio.get_running_loop()
        hot = [asyncio.create_task(commit(many_client, "orders", f"hot{n}")) for n in range(CLIENTS)]
        await slow.begun.wait()
        both = asyncio.create_task(commit_both(many_client))
        await queued(many_client, 1, "items")
        response = [await commit(many_client, "items", f"other{n}") for n in range(5)]
        response += [await many_client.send("GET", "/v1/namespaces/db/tables/items", [])]
        response += [await many_client.send("GET", f"{IN_BIG}/tables", [], query={"pageSize": "10"})]
        response += [await many_client.send("GET", "/v1/namespaces/db/tables/orders", [])]
        response += [await many_client.send("HEAD", f"{IN_BIG}/tables/nope", [])]
        assert not any(task.done() for task in (*hot, both))
        slow.let_on.set()
        assert (await both).status == 204
        return [t.status for t in response], [(await task).status for task in hot]

    others, hot = asyncio.run(meanwhile())
    assert others == [200] * 8 + [404]
    assert hot == [200] * CLIENTS
    assert slow.most_at_once == 1
    properties = many_client("GET", "/v1/namespaces/db/tables/orders").json["metadata"]["properties"]
    assert {f"hot{n}" for n in range(CLIENTS)} <= properties.keys()


def test_audit_is_read_by_its_indexes(many: ServerContext) -> None:
    records, database = many.records, many.store.database
    with database.writing() as connection:
        for number in range(3000):
            entry = AuditEntry(number, f"who{number % 2}", "commit_table", f"table/db/t{number % 30}")
            records.add_audit(connection, entry)
        if connection.dialect.name == "postgresql":
            connection.exec_driver_sql("ANALYZE bergline_audit")
    for query, most in (
        ({}, 10),
        ({"resources": ("table/db/t3", "view/db/t3")}, 10),
        ({"principal": "who1"}, 10),
        ({"principal": "nobody"}, 10),
        ({"since_ms": 2990}, 10),
        ({"resources": ("table/db/none",), "since_ms": 5}, 10),
    ):
        with watched(database) as work:
            found = records.newest_audit(10, **query)  # type: ignore[arg-type]
        assert found == sorted(found, key=lambda e: e.at_ms, reverse=True)
        lines = plans(database, work)
        if database.engine.dialect.name == "sqlite":
            assert all("USING INDEX bergline_audit_" in line for line in lines), lines
            assert work.thousands <= 1
        else:
            assert most_rows(lines) <= most, "\n".join(lines)
    assert [e.at_ms for e in records.newest_audit(2, resources=("table/db/t3", "view/db/t3"))] == [2973, 2943]


def test_audit_is_pruned_in_pieces(many: ServerContext) -> None:
    records, database = many.records, many.store.database
    with database.writing() as connection:
        for number in range(2500):
            records.add_audit(connection, AuditEntry(-number, "old", "commit_table", "table/db/old"))
    for deleted in (1000, 1000, 500, 0):
        with watched(database) as work:
            assert records.prune_audit_piece(1) == deleted + (deleted == 500)
        lines = plans(database, work)
        if database.engine.dialect.name == "sqlite":
            assert lines[0].startswith("SEARCH bergline_audit USING")


def test_connected_lake_with_a_missing_name_is_as_cheap(many: ServerContext, tmp_path: Path) -> None:
    """The library opened by itself on the same database, as a client beside the server."""
    name = many.store.database.name
    if many.store.database.engine.dialect.name != "sqlite":
        pytest.skip("the URI is not kept with its password")
    with connect(f"sqlite:///{name}", warehouse=str(tmp_path), name=many.store.catalog_name, create=True) as lake:
        database = lake.catalog.store.database  # type: ignore[attr-defined]
        with watched(database) as work, pytest.raises(NotFoundError):
            lake.load_table(f"{BIG}.t050000x")
    check_work(many, work, 300)


def test_million_tables_make_no_difference(tmp_path: Path) -> None:
    million = open_server(f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    with AsgiClient(million) as client:
        client.namespace(BIG)
        client("POST", f"{IN_BIG}/tables", {"name": "t500000x", "schema": SCHEMA})
        fill(million, most=1_000_000, step=1)
        page = {"pageSize": "100", "pageToken": ""}
        for path, query, status in (
            ("/ready", {}, 200),
            (f"{IN_BIG}/tables/t500000x", {}, 200),
            (f"{IN_BIG}/tables/t500000y", {}, 404),
            (f"{IN_BIG}/tables", page, 200),
            (f"{IN_BIG}/views", page, 200),
            ("/v1/namespaces", page, 200),
            ("/v1/namespaces", {}, 200),
            (f"/v1/namespaces/{BIG}/tables/x/y", {}, 404),
            ("/v1/namespaces/bigger", {}, 404),
        ):
            with watched(million.store.database) as work:
                response = client("GET", path, query=query)
            assert response.status == status, response
            assert work.thousands <= 20, path
        with watched(million.store.database) as work:
            found = million.store.search_names([], None, 998_000, 10)
        assert (len(found.names), found.matching) == (10, 1_000_000 - 1000 + 1)
        assert not [line for line in plans(million.store.database, work) if "TEMP B-TREE" in line]
        with watched(million.store.database) as work:
            assert client("POST", f"{IN_BIG}/tables", {"name": "new", "schema": SCHEMA}).status == 200
            assert client("DELETE", f"{IN_BIG}/tables/new").status == 204
        assert work.thousands <= 20
    million.catalog.close()
