"""Commits that wait for one table: one metadata file for all, and an answer for each."""

import asyncio
import json
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.table_rules import property_of
from bergline.catalog.rest.protocol.may_move import MAY_MOVE_HEADER
from bergline.errors import StorageError
from bergline.format.manifest.avro import parse_manifest_list, render_manifest, render_manifest_list
from bergline.format.manifest.inheritance import added_entry, assign_numbers
from bergline.format.manifest.manifest import DataFile, ManifestContent
from bergline.format.manifest.summary import describe_manifest
from bergline.lake.lake import connect
from bergline.scan.manifest_cache import MANIFEST_LISTS
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.requests.idempotency import RecordedChange
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient, bearer, set_branch, set_property, snapshot
from support.servers.granted_server import GrantedServer
from support.servers.waiting_commits import ORDERS, body_of, commit_all, queued, send_commit

NO_MAIN = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
LONG_S = 60.0


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def context(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ServerContext]:
    """A catalog in SQLite and in PostgreSQL."""
    uri = (
        new_catalog_uri(tmp_path / "lake/catalog.db")
        if request.param == "sqlite"
        else request.getfixturevalue("postgres")
    )
    opened = open_server(uri, warehouse=f"file://{tmp_path}/warehouse", name=f"grouped-{tmp_path.name}")
    yield opened
    opened.catalog.close()


@pytest.fixture
def orders(client: AsgiClient) -> AsgiClient:
    """A client of a server with table `db.orders`."""
    client.namespace("db")
    client.table(properties={"commit.status-check.min-wait-ms": "1"})
    return client


def append(number: int, sequence_number: int, parent: int | None = None, branch: str = "main") -> dict[str, Any]:
    """A commit of a snapshot, which requires that its branch did not move."""
    requirement = {"type": "assert-ref-snapshot-id", "ref": branch, "snapshot-id": parent}
    return body_of(snapshot(number, sequence_number, parent), set_branch(branch, number), requirements=[requirement])


def keyed(body: Any, key: str | None = None) -> tuple[Any, dict[str, str]]:
    return body, {"Idempotency-Key": key or str(uuid.uuid4())}


def test_all_get_the_table_that_they_made_together(orders: AsgiClient, context: ServerContext) -> None:
    before = len(context.records.audit())
    answers = commit_all(
        orders,
        (body_of(set_property("a", "1")), {"User-Agent": "first"}),
        append(1, 1),
        (append(2, 2, 1), {"User-Agent": "third"}),
        body_of(set_property("a", "2")),
    )
    assert [a.status for a in answers] == [200] * 4
    assert len({a.headers["etag"] for a in answers}) == 1
    loaded = orders("GET", ORDERS).json
    assert all(a.json == loaded for a in answers)
    metadata = loaded["metadata"]
    assert len(metadata["metadata-log"]) == 1
    assert [entry["snapshot-id"] for entry in metadata["snapshot-log"]] == [1, 2]
    assert metadata["properties"]["a"] == "2"
    audit = context.records.audit()[before:]
    assert [(e.agent, e.metadata_location) for e in audit] == [
        (agent, loaded["metadata-location"]) for agent in ("first", None, "third", None)
    ]
    events = [e.data.get("snapshot-id") for e in context.events.read().events if e.type == "table.commit"]
    assert events == [None, "1", "2", "2"]


def test_refused_commits_are_answered_and_recorded_by_themselves(orders: AsgiClient, context: ServerContext) -> None:
    answers = commit_all(
        orders,
        append(1, 1),
        append(2, 2),
        keyed(append(3, 2)),
        body_of({"action": "no-such"}),
        {"identifier": {"namespace": ["db"], "name": "other"}, "requirements": [], "updates": []},
        body_of({"action": "set-current-schema", "schema-id": 7}),
        (body_of(set_property("a", "1")), {"Idempotency-Key": "none"}),
        append(4, 2, 1),
        body_of(),
    )
    assert [a.status for a in answers] == [200, 409, 409, 400, 400, 400, 400, 200, 200]
    assert "Requirement failed: branch main has changed" in answers[1].message
    assert "snapshot 1 (append on `main` by tester 7" in answers[1].message
    metadata = orders("GET", ORDERS).json["metadata"]
    assert [s["snapshot-id"] for s in metadata["snapshots"]] == [1, 4]
    assert len(metadata["metadata-log"]) == 1
    lost = [e for e in context.records.newest_audit(10, conflicts=True) if e.conflict]
    assert len(lost) == 2


def test_property_with_which_no_metadata_can_be_written_is_the_fault_of_who_sets_it(orders: AsgiClient) -> None:
    codec = body_of(set_property("write.metadata.compression-codec", "zip"))
    answers = commit_all(orders, body_of(set_property("a", "1")), append(1, 1), codec, append(2, 2, 1))
    assert [a.status for a in answers] == [200, 200, 400, 200]
    metadata = orders("GET", ORDERS).json["metadata"]
    assert [s["snapshot-id"] for s in metadata["snapshots"]] == [1, 2]


@pytest.mark.parametrize("context", [pytest.param("postgres", marks=pytest.mark.server)], indirect=True)
def test_texts_that_the_database_cannot_hold_are_the_fault_of_who_sent_them(orders: AsgiClient) -> None:
    bad = [body_of(set_property(property_of(f"a\0{number}"), "writers=ann")) for number in range(3)]
    answers = commit_all(orders, *bad, body_of(set_property("good", "1")))
    assert [a.status for a in answers] == [400, 400, 400, 200]


def test_sequence_number_that_another_took_is_a_conflict_with_what_came_last(orders: AsgiClient) -> None:
    first, second = commit_all(orders, append(1, 1), append(2, 1, branch="dev"))
    assert (first.status, second.status) == (200, 200)  # one without a parent may have an old number
    third, fourth = commit_all(orders, append(3, 2, 1), append(4, 2, 2, branch="dev"))
    assert (third.status, fourth.error) == (200, (409, "CommitFailedException"))
    assert "snapshot 3 (append on `main` by tester 7" in fourth.message


def test_same_key_twice_is_one_change_and_one_answer(orders: AsgiClient, context: ServerContext) -> None:
    key, before = str(uuid.uuid4()), len(context.records.audit())
    twice = keyed(append(1, 1), key)
    answers = commit_all(orders, twice, body_of(set_property("a", "1")), twice, keyed(append(9, 2, 1), key))
    assert [a.status for a in answers] == [200, 200, 200, 422]
    assert answers[0].json["metadata-location"] == answers[2].json["metadata-location"]
    assert len(context.records.audit()) == before + 2
    assert commit_all(orders, twice)[0].json == answers[0].json


def test_same_key_of_a_refused_request_is_refused_again(orders: AsgiClient) -> None:
    twice = keyed(append(1, 1, 7))
    answers = commit_all(orders, twice, append(1, 1), twice)
    assert [a.status for a in answers] == [409, 200, 409]
    assert answers[0].body == answers[2].body


def test_same_snapshot_twice_is_one_change(orders: AsgiClient, context: ServerContext) -> None:
    before = len(context.records.audit())
    answers = commit_all(orders, append(1, 1), append(1, 1), keyed(append(1, 1)))
    assert [a.status for a in answers] == [200] * 3
    assert len(context.records.audit()) == before + 1


def test_staged_tables_are_created_one_at_a_time(client: AsgiClient, context: ServerContext) -> None:
    client.namespace("db")
    staged = client.table(**{"stage-create": True}).json["metadata"]
    create = {
        "requirements": [{"type": "assert-create"}],
        "updates": [
            {"action": "assign-uuid", "uuid": staged["table-uuid"]},
            {"action": "upgrade-format-version", "format-version": 2},
            {"action": "add-schema", "schema": staged["schemas"][0]},
            {"action": "set-current-schema", "schema-id": -1},
            {"action": "add-spec", "spec": staged["partition-specs"][0]},
            {"action": "set-default-spec", "spec-id": -1},
            {"action": "add-sort-order", "sort-order": staged["sort-orders"][0]},
            {"action": "set-default-sort-order", "sort-order-id": -1},
            {"action": "set-location", "location": staged["location"]},
        ],
    }
    answers = commit_all(client, body_of(set_property("a", "1")), create, create, body_of(set_property("b", "1")))
    assert [a.status for a in answers] == [404, 200, 409, 200], answers
    assert client("GET", ORDERS).json["metadata"]["properties"].keys() >= {"b"}
    assert [e.operation for e in context.records.audit()] == ["create_namespace", "commit_table", "commit_table"]


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_each_is_checked_as_its_own_caller(granted: GrantedServer) -> None:
    for who in ("ann", "bob"):
        granted.grant("read", "table db.orders", who)
    granted.grant("write", "table db.orders", "ann", ref="main")
    main = body_of(*granted.with_lists(snapshot(1, 1), set_branch("main", 1)))
    dev = body_of(*granted.with_lists(snapshot(2, 2), set_branch("dev", 2)))
    answers = commit_all(
        granted.client,
        (main, bearer("bl_bob")),
        (main, bearer("bl_ann")),
        (dev, bearer("bl_ann")),
        (dev, bearer("bl_root")),
    )
    assert [a.status for a in answers] == [403, 200, 403, 200]
    assert [e.principal for e in granted.context.records.audit()[-2:]] == ["ann", "root"]


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_rule_binds_and_is_bypassed_by_its_own_caller(granted: GrantedServer) -> None:
    granted.grant("write, manage_refs", "table db.orders", "ann")
    rule = set_property(property_of("main"), "writers=ann; bypass=root")
    assert granted.commit("root", rule).status == 200
    answers = commit_all(
        granted.client,
        (body_of(*granted.with_lists(snapshot(1, 1), set_branch("main", 1))), bearer("bl_root")),
        (body_of(*granted.with_lists(snapshot(2, 2, 1), set_branch("main", 2))), bearer("bl_ann")),
    )
    assert [a.status for a in answers] == [200, 200]
    noted = [(e.principal, e.operation) for e in granted.context.records.audit()[-3:]]
    assert noted == [("root", "commit_table"), ("root", "bypass_ref_rule:main"), ("ann", "commit_table")]


def test_group_that_lost_to_another_server_is_worked_out_again(
    orders: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    swap, raced = context.catalog.store.swap, []

    def racing(table: TableName, expected: str, new: str) -> bool:
        if not raced:
            raced.append(new)
            uri = str(context.store.database.name)
            uri = uri if "://" in uri else f"sqlite:///{uri}"
            with connect(uri, warehouse=tmp_path / "warehouse", name=context.store.catalog_name) as lake:
                lake.load_table("db.orders").refs.create_branch("theirs")
        return swap(table, expected, new)

    assert commit_all(orders, append(1, 1))[0].status == 200
    monkeypatch.setattr(context.catalog.store, "swap", racing)
    theirs = {"type": "assert-ref-snapshot-id", "ref": "theirs", "snapshot-id": None}
    answers = commit_all(
        orders,
        body_of(set_property("a", "1"), requirements=[theirs]),
        append(2, 2, 1),
        body_of(set_property("b", "1")),
    )
    assert [a.status for a in answers] == [409, 200, 200]
    metadata = orders("GET", ORDERS).json["metadata"]
    assert set(metadata["refs"]) == {"main", "theirs"}
    assert "b" in metadata["properties"]
    assert "a" not in metadata["properties"]
    assert not context.catalog.io.exists(raced[0])


def test_answer_lost_on_the_way_from_the_database_is_unknown_to_all_without_a_key(
    orders: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap, read, lost = context.catalog.store.swap, context.catalog.store.read, []

    def lose(table: TableName, expected: str, new: str) -> bool:
        assert swap(table, expected, new)
        lost.append(new)
        raise StorageError("the connection broke")

    def unreadable(table: TableName) -> str | None:
        if lost:
            raise StorageError("the connection broke")
        return read(table)

    with monkeypatch.context() as patch:
        patch.setattr(context.catalog.store, "swap", lose)
        patch.setattr(context.catalog.store, "read", unreadable)
        answers = commit_all(
            orders, append(1, 1), keyed(append(2, 2, 1)), append(9, 9), body_of(set_property("a", "1"))
        )
    assert [a.status for a in answers] == [500, 200, 409, 500]
    assert answers[0].error == (500, "CommitStateUnknownException")
    metadata = orders("GET", ORDERS).json["metadata"]
    assert [s["snapshot-id"] for s in metadata["snapshots"]] == [1, 2]


def late_append(context: ServerContext, number: int, parent: int | None = None) -> tuple[Any, dict[str, str]]:
    """An append with manifests of its own, which may be put on another head than it was written for."""
    metadata = context.catalog.load_table(TableName(("db",), "orders")).metadata
    directory, spec, schema = f"{metadata.location}/metadata", metadata.spec, metadata.schema
    entries = [added_entry(DataFile(f"{metadata.location}/data/{number}.parquet", "PARQUET", (), 1, 100))]
    data = render_manifest(entries, schema, spec)
    path = f"{directory}/{number}-m0.avro"
    context.catalog.io.create(path, data)
    content = ManifestContent.DATA
    listed = describe_manifest(path, len(data), entries, spec=spec, schema=schema, content=content, snapshot_id=number)
    sequence_number = metadata.last_sequence_number + 1
    manifests = render_manifest_list(assign_numbers([listed], number, sequence_number), number, parent, sequence_number)
    context.catalog.io.create(f"{directory}/snap-{number}.avro", manifests)
    body = append(number, sequence_number, parent)
    body["updates"][0]["snapshot"]["manifest-list"] = f"{directory}/snap-{number}.avro"
    return body, {MAY_MOVE_HEADER: "true"}


def test_appends_that_wait_together_are_put_on_each_other(orders: AsgiClient, context: ServerContext) -> None:
    answers = commit_all(orders, *(late_append(context, number) for number in range(1, 6)))
    assert [a.status for a in answers] == [200] * 5, answers
    metadata = context.catalog.load_table(TableName(("db",), "orders")).metadata
    assert [(s.snapshot_id, s.parent_snapshot_id, s.sequence_number) for s in metadata.snapshots] == [
        (number, number - 1 or None, number) for number in range(1, 6)
    ]
    assert len(metadata.metadata_log) == 1
    head = metadata.snapshots[-1]
    listed = parse_manifest_list(context.catalog.io.read(head.manifest_list or ""), "the head's")
    assert [(m.added_snapshot_id, m.sequence_number) for m in listed] == [(n, n) for n in range(5, 0, -1)]


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_appends_are_put_on_each_other_though_no_manifest_list_fits_the_cache(
    orders: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [late_append(context, number) for number in range(1, 5)]
    create, never = context.catalog.io.create, threading.Event()

    def late(location: str, data: bytes) -> None:
        never.wait(0.05)  # the next one would read it by then
        create(location, data)

    monkeypatch.setattr(context.catalog.io, "create", late)
    monkeypatch.setattr(MANIFEST_LISTS, "_limit", 0)
    answers = commit_all(orders, *requests)
    assert [a.status for a in answers] == [200] * 4, answers
    metadata = context.catalog.load_table(TableName(("db",), "orders")).metadata
    assert [(s.snapshot_id, s.parent_snapshot_id) for s in metadata.snapshots] == [(1, None), (2, 1), (3, 2), (4, 3)]


def test_append_whose_manifest_list_cannot_be_written_is_refused_alone(
    orders: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [late_append(context, number) for number in range(1, 5)]
    create = context.catalog.io.create

    def fail(location: str, data: bytes) -> None:
        if "snap-3-" in location:
            raise StorageError("the disk is broken")
        create(location, data)

    monkeypatch.setattr(context.catalog.io, "create", fail)
    answers = commit_all(orders, *requests)
    assert [a.status for a in answers] == [200, 200, 500, 200]
    metadata = context.catalog.load_table(TableName(("db",), "orders")).metadata
    assert [(s.snapshot_id, s.parent_snapshot_id) for s in metadata.snapshots] == [(1, None), (2, 1), (4, 2)]
    head = metadata.snapshots[-1]
    listed = parse_manifest_list(context.catalog.io.read(head.manifest_list or ""), "the head's")
    assert [m.added_snapshot_id for m in listed] == [4, 2, 1]


def test_transaction_that_waits_between_them_has_its_turn(orders: AsgiClient, context: ServerContext) -> None:
    orders.table("items")
    identifier = {"namespace": ["db"], "name": "orders"}
    changes = {"table-changes": [{"identifier": identifier, **body_of(set_property("t", "1"))}]}

    async def run() -> list[int]:
        release = await context.locks.take([TableName(("db",), "orders")])
        tasks = []
        for number in range(1, 6):
            body, path = (changes, "/v1/transactions/commit") if number == 3 else (append(number, 1), ORDERS)
            if number != 3:
                body = body_of(set_property(f"p{number}", "x"))
            tasks.append(asyncio.create_task(send_commit(orders, body, path=path)))
            await queued(orders, number)
        release()
        return [answer.status for answer in await asyncio.gather(*tasks)]

    assert asyncio.run(run()) == [200, 200, 204, 200, 200]
    metadata = orders("GET", ORDERS).json["metadata"]
    assert len(metadata["metadata-log"]) == 3


def test_two_hundred_that_wait_for_one_table_hold_no_thread(tmp_path: Path) -> None:
    limits = ServerSettings(threads=2, max_queued=4)
    context = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=limits)

    async def run(client: AsgiClient) -> list[int]:
        release = await context.locks.take([TableName(("db",), "orders")])
        bodies = [body_of(set_property(f"p{number}", "x")) for number in range(200)]
        tasks = [asyncio.create_task(send_commit(client, body)) for body in bodies]
        await queued(client, 200)
        other = await send_commit(client, body_of(set_property("a", "1")), path=ORDERS.replace("orders", "items"))
        loaded = await client.send("GET", ORDERS, [])
        assert (other.status, loaded.status) == (200, 200)
        release()
        return [answer.status for answer in await asyncio.gather(*tasks)]

    with AsgiClient(context) as client:
        client.namespace("db")
        client.table()
        client.table("items")
        assert asyncio.run(run(client)) == [200] * 200
        metadata = client("GET", ORDERS).json["metadata"]
    context.catalog.close()
    assert {f"p{number}" for number in range(200)} <= metadata["properties"].keys()
    assert len(metadata["metadata-log"]) == 4  # 64 at a time


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_whoever_waited_too_long_changes_nothing_and_the_others_go_on(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.namespace("db")
    client.table()
    begun, let_on, write = threading.Event(), threading.Event(), context.catalog.tables.files.write

    def slow(*arguments: Any) -> str:
        begun.set()
        assert let_on.wait(LONG_S)
        return write(*arguments)

    monkeypatch.setattr(context.catalog.tables.files, "write", slow)

    async def run() -> list[int]:
        first = asyncio.create_task(send_commit(client, body_of(set_property("first", "x"))))
        assert await asyncio.to_thread(begun.wait, LONG_S)
        hasty = context.settings
        context.settings = msgspec.structs.replace(hasty, request_timeout_s=0.01)
        second = asyncio.create_task(send_commit(client, body_of(set_property("second", "x"))))
        await queued(client, 1)
        assert (await second).error == (503, "ServiceUnavailableException")
        context.settings = hasty
        third = asyncio.create_task(send_commit(client, body_of(set_property("third", "x"))))
        await queued(client, 2)
        let_on.set()
        return [(await first).status, (await third).status]

    assert asyncio.run(run()) == [200, 200]
    properties = client("GET", ORDERS).json["metadata"]["properties"]
    assert {"first", "third"} <= properties.keys()
    assert "second" not in properties


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_whoever_hangs_up_leaves_the_others_alone(orders: AsgiClient, context: ServerContext) -> None:
    async def run() -> int:
        release = await context.locks.take([TableName(("db",), "orders")])
        gone = asyncio.create_task(send_commit(orders, body_of(set_property("gone", "x"))))
        await queued(orders, 1)
        stays = asyncio.create_task(send_commit(orders, body_of(set_property("stays", "x"))))
        await queued(orders, 2)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        release()
        return (await stays).status

    assert asyncio.run(run()) == 200
    assert "stays" in orders("GET", ORDERS).json["metadata"]["properties"]


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_failure_of_the_server_over_one_leaves_the_others_alone(
    orders: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    check = context.locations.check_properties

    def fail(properties: dict[str, str]) -> None:
        if "bad" in properties:
            raise KeyError("bad")
        check(properties)

    monkeypatch.setattr(context.locations, "check_properties", fail)
    answers = commit_all(orders, body_of(set_property("bad", "1")), body_of(set_property("good", "1")))
    assert [a.status for a in answers] == [500, 200]


def test_failure_of_the_server_over_the_rows_of_one_leaves_the_others_alone(
    orders: AsgiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = RecordedChange.note

    def fail(change: RecordedChange, *arguments: Any) -> None:
        if change.request.headers.get("user-agent") == "bad":
            raise KeyError("bad")
        note(change, *arguments)

    monkeypatch.setattr(RecordedChange, "note", fail)
    bad = body_of(set_property("bad", "1")), {"User-Agent": "bad"}
    answers = commit_all(orders, append(1, 1), bad, body_of(set_property("good", "1")))
    assert [a.status for a in answers] == [200, 500, 200]
    assert "bad" not in orders("GET", ORDERS).json["metadata"]["properties"]


@pytest.mark.parametrize("context", ["sqlite"], indirect=True)
def test_pool_without_room_puts_all_of_them_off(orders: AsgiClient, context: ServerContext) -> None:
    pool = orders.application.runner.threads.changes
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "_room", threading.Semaphore(0))
        answers = commit_all(orders, append(1, 1), append(2, 2))
    assert [a.error for a in answers] == [(503, "ServiceUnavailableException")] * 2
    assert json.loads(orders("GET", ORDERS).body)["metadata"]["snapshots"] == []
    assert commit_all(orders, append(1, 1))[0].status == 200
