"""Whatever a client sends is bounded, before any work is done on it."""

import asyncio
import gzip
import json
import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.concurrency import LONG_S
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, set_branch, set_property, snapshot

pytestmark = pytest.mark.long

NAMESPACES = "/v1/namespaces"
TABLES = "/v1/namespaces/db/tables"
ORDERS = f"{TABLES}/orders"
HUGE = 4 * 1024 * 1024
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1,
    "schema-id": 0,
    "summary": {},
    "default-namespace": ["db"],
    "representations": [{"type": "sql", "sql": "SELECT 1", "dialect": "spark"}],
}


@pytest.fixture(autouse=True)
def _orders(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()


def named(namespace: list[str], name: str) -> dict[str, Any]:
    return {"namespace": namespace, "name": name}


BODIES: list[tuple[str, Callable[[str, list[str]], Any]]] = [
    (TABLES, lambda name, _: {"name": name, "schema": SCHEMA}),
    (f"{NAMESPACES}/db/views", lambda name, _: {"name": name, "schema": SCHEMA, "view-version": VERSION}),
    (NAMESPACES, lambda name, _: {"namespace": [name]}),
    (NAMESPACES, lambda _, levels: {"namespace": levels}),
    ("/v1/tables/rename", lambda name, _: {"source": named(["db"], name), "destination": named(["db"], "x")}),
    ("/v1/tables/rename", lambda name, _: {"source": named(["db"], "orders"), "destination": named([name], "x")}),
    (f"{NAMESPACES}/db/register", lambda name, _: {"name": name, "metadata-location": "file:///x.metadata.json"}),
    (ORDERS, lambda name, _: {"identifier": named(["db"], name), "requirements": [], "updates": []}),
    (ORDERS, lambda name, _: {"requirements": [{"type": "assert-table-uuid", "uuid": name}], "updates": []}),
    (ORDERS, lambda name, _: {"requirements": [], "updates": [{"action": name}]}),
    (
        "/v1/transactions/commit",
        lambda name, _: {"table-changes": [{"identifier": named(["db"], name), "requirements": [], "updates": []}]},
    ),
    (TABLES, lambda name, _: {"name": "new", "schema": SCHEMA, "location": f"file:///{name}"}),
    (f"{NAMESPACES}/db/properties", lambda name, _: {"updates": {name: "x"}}),
]


@pytest.mark.parametrize(("path", "body"), BODIES)
def test_name_of_megabytes_is_refused_in_few_words(
    client: AsgiClient, path: str, body: Callable[[str, list[str]], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches neither the database nor a comparison with other names, and is not repeated in the answer."""
    reached: list[object] = []
    monkeypatch.setattr("bergline.errors.difflib.get_close_matches", lambda name, *_, **__: reached.append(name) or [])
    sent = json.dumps(body("x" * HUGE, ["a"] * (HUGE // 5))).encode()
    response = client("POST", path, sent)
    assert response.status in {400, 409, 413}
    assert len(response.body) < 20_000
    if path in {TABLES, NAMESPACES, f"{NAMESPACES}/db/views"}:
        assert re.search("up to (8192 characters|4096 characters|1024 levels)", response.message)
    assert not reached


@pytest.mark.parametrize("name", ["x" * 256, "x" * 9000, "ä" * 256])
def test_name_that_the_database_cannot_hold_is_refused_before_anything_is_written(
    client: AsgiClient, context: ServerContext, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    monkeypatch.setattr(context.catalog.io, "create", lambda location, _data: written.append(location))
    place = f"{context.settings.warehouse}/elsewhere"
    assert client("POST", TABLES, {"name": name, "schema": SCHEMA, "location": place}).status == 400
    updates = [{"action": "set-location", "location": place}, {"action": "add-schema", "schema": SCHEMA}]
    create = {"requirements": [{"type": "assert-create"}], "updates": updates}
    assert client("POST", f"{TABLES}/{quote(name)}", create).status == 400
    assert not written


def test_path_of_very_many_levels_is_refused(client: AsgiClient) -> None:
    response = client("GET", f"{NAMESPACES}/{'%1F'.join(['a'] * 5000)}")
    assert response.error == (400, "IllegalArgumentException")
    assert "up to 1024 levels, found 5000" in response.message


DEEP = 1_000_000


@pytest.mark.parametrize("nested", [b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP])
@pytest.mark.parametrize(
    ("path", "before"),
    [
        (NAMESPACES, b'{"zz":'),
        (TABLES, b'{"name":"n","schema":{"type":"struct","fields":[{"id":1,"name":"a","required":true,"type":'),
        (ORDERS, b'{"requirements":[],"updates":[{"action":"add-schema","schema":'),
        (f"{ORDERS}/plan", b'{"filter":'),
    ],
)
def test_deeply_nested_json_is_refused_where_it_gets_too_deep(
    client: AsgiClient, path: str, before: bytes, nested: bytes
) -> None:
    response = client("POST", path, before + nested[: HUGE - 200])
    assert response.status == 400
    assert len(response.body) < 1000


def test_json_of_very_many_values_is_refused(context: ServerContext) -> None:
    context.settings = msgspec.structs.replace(context.settings, max_json_values=1000)
    with AsgiClient(context) as client:
        removals = [f"p{n}" for n in range(1001)]
        response = client("POST", f"{NAMESPACES}/db/properties", {"removals": removals})
        assert response.error == (413, "BadRequestException")
        assert "up to 1,000 values" in response.message
        assert client("POST", f"{NAMESPACES}/db/properties", {"removals": removals[1:]}).status == 200


def test_body_of_names_alone_is_small(client: AsgiClient) -> None:
    body = {"source": named(["db"], "orders"), "destination": named(["db"], "new"), "more": "x" * 70_000}
    assert client("POST", "/v1/tables/rename", body).status == 413
    assert client("HEAD", ORDERS).status == 204


def test_transaction_of_very_many_tables_is_refused(client: AsgiClient) -> None:
    change = {"identifier": named(["db"], "orders"), "requirements": [], "updates": []}
    response = client("POST", "/v1/transactions/commit", {"table-changes": [change] * 1001})
    assert response.error == (400, "IllegalArgumentException")
    assert "up to 1000 tables in a transaction, found 1001" in response.message


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd", "gzip, identity", "x"])
def test_encoding_of_a_body_that_is_not_known_is_said_so(client: AsgiClient, encoding: str) -> None:
    body = json.dumps({"namespace": ["new"]}).encode()
    for sent in (body, gzip.compress(body)):
        response = client("POST", NAMESPACES, sent, headers={"Content-Encoding": encoding})
        assert response.error == (415, "BadRequestException")
        assert response.headers["accept-encoding"] == "identity"
    assert client("HEAD", f"{NAMESPACES}/new").status == 404
    assert client("POST", NAMESPACES, body, headers={"Content-Encoding": "Identity"}).status == 200


def test_location_of_a_table_that_no_store_can_have_is_refused(client: AsgiClient) -> None:
    response = client("POST", TABLES, {"name": "new", "schema": SCHEMA, "location": f"s3://bucket/{'x' * 5000}"})
    assert response.error == (400, "IllegalArgumentException")
    assert "up to 4096 characters" in response.message


@pytest.fixture
def small(tmp_path: Path) -> Iterator[AsgiClient]:
    """A server that reads metadata files of 20,000 bytes at most."""
    opened = open_server(f"sqlite:///{tmp_path}/small/catalog.db", limits=ServerSettings(max_metadata_bytes=20_000))
    with AsgiClient(opened) as asking:
        asking.namespace("db")
        asking.table()
        yield asking
    opened.catalog.close()


def register(client: AsgiClient, name: str) -> AsgiResponse:
    return client("POST", f"{NAMESPACES}/db/register", {"name": "theirs", "metadata-location": name})


def test_metadata_file_of_gigabytes_is_refused_unread(small: AsgiClient) -> None:
    warehouse = small.application.context.settings.warehouse
    for endpoint in ("register", "register-view"):
        place = f"{warehouse}/{endpoint}/big.metadata.json"
        path = Path(place.removeprefix("file://"))
        path.parent.mkdir(parents=True)
        path.touch()
        os.truncate(path, 10 * 2**30)  # a hole: nothing is on the disk
        response = small("POST", f"{NAMESPACES}/db/{endpoint}", {"name": "theirs", "metadata-location": place})
        assert response.error == (422, "FormatException")
        assert f"expected at most 20,000 bytes, found 10,737,418,240 in {place}" in response.message
    assert small("HEAD", f"{TABLES}/theirs").status == 404


def test_metadata_file_that_unpacks_to_gigabytes_is_refused(small: AsgiClient) -> None:
    place = f"{small.application.context.settings.warehouse}/bomb.gz.metadata.json"
    small.application.context.catalog.io.create(place, gzip.compress(b" " * 10_000_000))
    response = register(small, place)
    assert response.error == (422, "FormatException")
    assert "expected at most 20,000 bytes of metadata, found more" in response.message


def test_table_does_not_grow_until_nobody_can_read_it(small: AsgiClient) -> None:
    context = small.application.context
    assert small.commit(set_property("a", "x" * 10_000)).status == 200
    before = context.catalog.io.list(context.settings.warehouse or "")
    response = small.commit(set_property("b", "x" * 10_000))
    assert response.error == (403, "ForbiddenException")
    assert "at most 20,000 are read" in response.message
    assert context.catalog.io.list(context.settings.warehouse or "") == before
    assert small("GET", ORDERS).json["metadata"]["properties"].keys() == {"a"} | set(
        small.commit({"action": "remove-properties", "removals": ["none"]}).json["metadata"]["properties"]
    )
    assert small.commit({"action": "remove-properties", "removals": ["a"]}).status == 200


def test_load_does_not_wait_for_a_writer_in_the_event_loop(context: ServerContext, client: AsgiClient) -> None:
    """Of a database that is not in WAL mode: while a writer keeps readers out, others are answered."""
    assert client("GET", ORDERS).status == 200  # from now on in memory
    context.store.database.close()
    with sqlite3.connect(context.store.database.name, isolation_level=None, check_same_thread=False) as writer:
        assert writer.execute("PRAGMA journal_mode=DELETE").fetchone() == ("delete",)
        assert client("GET", ORDERS).status == 200

        async def meanwhile() -> list[int]:
            writer.execute("BEGIN EXCLUSIVE")
            loads = [asyncio.create_task(client.send("GET", ORDERS, [])) for _ in range(5)]
            await asyncio.sleep(0)
            try:
                health = await client.send("GET", "/health", [])
            finally:
                writer.execute("ROLLBACK")
            return [health.status, *[(await load).status for load in loads]]

        assert asyncio.run(meanwhile()) == [200] * 6
    writer.close()


class SlowSwap:
    """Commits that wait until they are let on, and the order in which they came."""

    def __init__(self, context: ServerContext, monkeypatch: pytest.MonkeyPatch) -> None:
        self._swap = context.catalog.store.swap
        self.begun = threading.Semaphore(0)
        self.let_on = threading.Event()
        monkeypatch.setattr(context.catalog.store, "swap", self)

    def __call__(self, table: TableName, expected: str, new: str) -> bool:
        self.begun.release()
        assert self.let_on.wait(LONG_S)
        return bool(self._swap(table, expected, new))


async def send_commit(client: AsgiClient, number: int) -> AsgiResponse:
    body = {"requirements": [], "updates": [set_property(f"p{number}", "x")]}
    return await client.send("POST", ORDERS, [json.dumps(body).encode()])


def test_commits_beyond_those_that_may_wait_are_put_off(
    context: ServerContext, client: AsgiClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = ServerSettings(max_waiting_commits=3)
    opened = open_server(f"sqlite:///{context.store.database.name}", limits=limits)
    slow = SlowSwap(opened, monkeypatch)

    async def hammer(busy: AsgiClient) -> list[AsgiResponse]:
        tasks = [asyncio.create_task(send_commit(busy, number)) for number in range(8)]
        assert await asyncio.to_thread(slow.begun.acquire, timeout=LONG_S)
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert all(task.result().status == 503 for task in done)
        slow.let_on.set()
        return [await task for task in tasks]

    with AsgiClient(opened) as busy:
        response = asyncio.run(hammer(busy))
    opened.catalog.close()
    assert [t.status for t in response] == [200] * 4 + [503] * 4
    assert response[-1].error == (503, "ServiceUnavailableException")
    assert response[-1].headers["retry-after"] == "1"
    assert "nothing was changed" in response[-1].message
    properties = client("GET", ORDERS).json["metadata"]["properties"].keys()
    assert {name for name in properties if name.startswith("p")} == {f"p{n}" for n in range(4)}


def test_requests_beyond_those_that_may_wait_for_a_thread_are_put_off(
    context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.settings = msgspec.structs.replace(context.settings, threads=1, max_queued=2)
    over = threading.Event()

    def slow(_namespace: object) -> list[Any]:
        assert over.wait(LONG_S)
        return []

    monkeypatch.setattr(context.catalog, "list_namespaces", slow)

    async def crowd(client: AsgiClient) -> list[AsgiResponse]:
        tasks = [asyncio.create_task(client.send("GET", NAMESPACES, [])) for _ in range(6)]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        over.set()
        return [await task for task in tasks]

    with AsgiClient(context) as client:
        response = asyncio.run(crowd(client))
    assert sorted(t.status for t in response) == [200] * 3 + [503] * 3
    assert {t.headers.get("retry-after") for t in response if t.status == 503} == {"1"}


def test_however_many_ask_whether_it_is_ready_one_looks(
    context: ServerContext, client: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []
    let_on = threading.Event()
    check = context.store.database.check_ready

    def counted() -> None:
        looks.append(1)
        assert let_on.wait(LONG_S)
        check()

    monkeypatch.setattr(context.store.database, "check_ready", counted)

    async def crowd() -> list[int]:
        tasks = [asyncio.create_task(client.send("GET", "/ready", [])) for _ in range(64)]
        await asyncio.sleep(0.05)
        let_on.set()
        return [(await task).status for task in tasks]

    assert asyncio.run(crowd()) == [200] * 64
    assert len(looks) < 5


def test_writers_that_wait_for_the_database_are_in_no_readers_way(context: ServerContext) -> None:
    """Another program has the database locked for writing: more changes than there are threads wait, reads do not."""
    context.settings = msgspec.structs.replace(context.settings, threads=2)
    with sqlite3.connect(context.store.database.name, isolation_level=None, check_same_thread=False) as writer:

        async def meanwhile(client: AsgiClient) -> tuple[list[int], list[int]]:
            writer.execute("BEGIN IMMEDIATE")
            changes = [
                asyncio.create_task(client.send("POST", NAMESPACES, [json.dumps({"namespace": [f"n{n}"]}).encode()]))
                for n in range(6)
            ]
            await asyncio.sleep(0.05)
            try:
                reads = [await client.send("GET", path, []) for path in (NAMESPACES, TABLES, "/ready")]
                assert not any(change.done() for change in changes)
            finally:
                writer.execute("ROLLBACK")
            return [response.status for response in reads], [(await change).status for change in changes]

        with AsgiClient(context) as client:
            assert asyncio.run(meanwhile(client)) == ([200] * 3, [200] * 6)
    writer.close()


def test_manifest_list_of_gigabytes_is_refused_unread(client: AsgiClient, context: ServerContext) -> None:
    path = Path((context.settings.warehouse or "").removeprefix("file://")) / "big.avro"
    path.touch()
    os.truncate(path, 10 * 2**30)
    added = snapshot(1, 1)
    added["snapshot"]["manifest-list"] = f"file://{path}"
    assert client.commit(added, set_branch("main", 1)).status == 200
    response = client("POST", f"{ORDERS}/plan", {})
    assert response.error == (422, "FormatException")
    assert "found 10,737,418,240 in" in response.message
