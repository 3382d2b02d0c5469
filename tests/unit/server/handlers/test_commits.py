"""Commits over the protocol."""

from typing import Any
from uuid import uuid4

import pytest
from asgi_client import SCHEMA, AsgiClient, AsgiResponse, set_branch, set_property, snapshot
from concurrency import run_for_each

from bergline.catalog.identifiers import TableName
from bergline.errors import StorageError
from bergline.lake.lake import connect
from bergline.server.handlers.context import ServerContext

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _orders(ask: AsgiClient) -> None:
    ask.namespace("db")
    ask.table()


def test_commit_answers_with_the_table(ask: AsgiClient) -> None:
    told = ask.commit(set_property("a", "b"))
    assert told.json == ask("GET", ORDERS).json
    assert told.headers["etag"] == ask("GET", ORDERS).headers["etag"]


def test_failed_requirement_says_who_came_first(ask: AsgiClient) -> None:
    ask.commit(snapshot(1, 1), set_branch("main", 1))
    assertion = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    told = ask.commit(snapshot(2, 2), set_branch("main", 2), requirements=[assertion])
    assert told.error == (409, "CommitFailedException")
    assert "Requirement failed: branch main has changed" in told.message
    assert "snapshot 1 (append on `main` by tester 7, 2027-01-15T08:00:00.001+00:00) came first" in told.message


def test_stale_sequence_number_is_a_conflict(ask: AsgiClient) -> None:
    ask.commit(snapshot(1, 1), set_branch("main", 1))
    ask.commit(snapshot(2, 2, 1), set_branch("dev", 2))
    told = ask.commit(snapshot(3, 2, 1), set_branch("main", 3))
    assert told.error == (409, "CommitFailedException")
    assert "the newest is snapshot 2" in told.message


def test_commit_sent_twice_happens_once(ask: AsgiClient) -> None:
    requirements = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}]
    first, second = (ask.commit(snapshot(1, 1), set_branch("main", 1), requirements=requirements) for _ in range(2))
    assert first.status == second.status == 200
    assert first.json["metadata-location"] == second.json["metadata-location"]


def test_commit_without_updates_changes_nothing(ask: AsgiClient) -> None:
    before = ask("GET", ORDERS).json["metadata-location"]
    assert ask.commit().json["metadata-location"] == before
    assert ask.commit(requirements=[{"type": "assert-current-schema-id", "current-schema-id": 7}]).status == 409


def test_many_writers_at_once_all_succeed(ask: AsgiClient, context: ServerContext) -> None:
    """Each sets a property of its own: no requirement stands between them."""
    other = AsgiClient(context)
    told: list[int] = []

    def write(number: int) -> None:
        told.append((ask, other)[number % 2].commit(set_property(f"p{number}", "x")).status)

    run_for_each(write, range(12))
    other.application.close()
    assert told == [200] * 12
    properties = ask("GET", ORDERS).json["metadata"]["properties"]
    assert {f"p{n}" for n in range(12)} <= properties.keys()


def test_writer_beside_the_server_is_not_overwritten(
    ask: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process commits between the server's load and its swap: the server tries again on the newer table."""
    swap = context.catalog.store.swap
    raced: list[bool] = []

    def racing(table: TableName, expected: str, new: str) -> bool:
        if not raced:
            raced.append(True)
            with connect(f"sqlite:///{context.catalog.store.database.name}") as lake:
                lake.load_table("db.orders").set_properties({"theirs": "1"})
        return swap(table, expected, new)

    monkeypatch.setattr(context.catalog.store, "swap", racing)
    told = ask.commit(set_property("ours", "2"))
    assert told.status == 200
    assert {"theirs", "ours"} <= told.json["metadata"]["properties"].keys()


def test_transaction_moves_all_or_none(ask: AsgiClient) -> None:
    ask.table("items")

    def change(name: str, *requirements: object) -> dict[str, object]:
        identifier = {"namespace": ["db"], "name": name}
        return {"identifier": identifier, "requirements": requirements, "updates": [set_property("a", "b")]}

    wrong = {"type": "assert-current-schema-id", "current-schema-id": 7}
    refused = ask("POST", "/v1/transactions/commit", {"table-changes": [change("orders"), change("items", wrong)]})
    assert refused.error == (409, "CommitFailedException")
    assert "a" not in ask("GET", ORDERS).json["metadata"]["properties"]
    assert ask("POST", "/v1/transactions/commit", {"table-changes": [change("orders"), change("items")]}).status == 204
    for name in ("orders", "items"):
        assert ask("GET", f"/v1/namespaces/db/tables/{name}").json["metadata"]["properties"]["a"] == "b"
    assert ask("POST", "/v1/transactions/commit", {"table-changes": [change("no")]}).status == 404
    assert ask("POST", "/v1/transactions/commit", {"table-changes": []}).status == 400
    nameless = {"requirements": [], "updates": []}
    assert ask("POST", "/v1/transactions/commit", {"table-changes": [nameless]}).status == 400


@pytest.mark.parametrize(
    ("body", "place"),
    [
        (b"{", "truncated"),
        (b"\xff", "at $"),
        (b"[]", "at $"),
        (b'{"requirements": [], "updates": [{"action": "fly"}]}', "$.updates[0].action"),
        (b'{"requirements": [{"type": "assert-weather"}], "updates": []}', "$.requirements[0].type"),
        (b'{"requirements": [], "updates": [{"action": "set-properties"}]}', "updates"),
        (b"[" * 100_000, "at $"),
    ],
)
def test_bodies_that_mean_nothing_are_refused_with_the_place(ask: AsgiClient, body: bytes, place: str) -> None:
    told = ask("POST", ORDERS, body)
    assert told.error == (400, "BadRequestException")
    assert place in told.message


def test_name_in_the_body_must_be_that_of_the_path(ask: AsgiClient) -> None:
    body = {"identifier": {"namespace": ["db"], "name": "items"}, "requirements": [], "updates": []}
    assert ask("POST", ORDERS, body).status == 400


def creation(ask: AsgiClient, name: str) -> dict[str, Any]:
    """A staged table as a part of a transaction."""
    body = {"name": name, "schema": SCHEMA, "stage-create": True}
    metadata = ask("POST", "/v1/namespaces/db/tables", body).json["metadata"]
    updates = [
        {"action": "assign-uuid", "uuid": metadata["table-uuid"]},
        {"action": "upgrade-format-version", "format-version": 2},
        {"action": "set-location", "location": metadata["location"]},
        {"action": "add-schema", "schema": metadata["schemas"][0]},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": metadata["partition-specs"][0]},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": metadata["sort-orders"][0]},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        snapshot(77, 1),
        set_branch("main", 77),
    ]
    return part(name, *updates, requirements=[{"type": "assert-create"}])


def part(name: str, *updates: Any, requirements: Any = ()) -> dict[str, Any]:
    return {"identifier": {"namespace": ["db"], "name": name}, "requirements": [*requirements], "updates": [*updates]}


def transact(ask: AsgiClient, *changes: dict[str, Any], **more: Any) -> AsgiResponse:
    return ask("POST", "/v1/transactions/commit", {"table-changes": changes}, **more)


def test_transaction_creates_tables_with_the_changes_of_others(ask: AsgiClient, context: ServerContext) -> None:
    changes = (part("orders", set_property("a", "b")), creation(ask, "items"), creation(ask, "parts"))
    headers = {"Idempotency-Key": str(uuid4())}
    for _ in range(2):
        assert transact(ask, *changes, headers=headers).status == 204
    for name in ("items", "parts"):
        table = ask("GET", f"/v1/namespaces/db/tables/{name}").json["metadata"]
        assert table["current-snapshot-id"] == 77
    assert ask("GET", ORDERS).json["metadata"]["properties"]["a"] == "b"
    names = [row.resource for row in context.records.audit() if row.operation == "commit_transaction"]
    assert sorted(names) == ["table/db/items", "table/db/orders", "table/db/parts"]


def test_transaction_that_cannot_create_its_table_changes_nothing(ask: AsgiClient, context: ServerContext) -> None:
    items = creation(ask, "items")
    ask.table("items")
    before = ask("GET", ORDERS).json
    files = set(context.catalog.io.list(context.settings.warehouse or ""))
    taken = transact(ask, part("orders", set_property("a", "b")), items, creation(ask, "parts"))
    assert taken.error == (409, "AlreadyExistsException")
    stale = [{"type": "assert-table-uuid", "uuid": "x"}]
    refused = transact(ask, part("orders", set_property("a", "b"), requirements=stale), creation(ask, "parts"))
    assert refused.error == (409, "CommitFailedException")
    elsewhere = creation(ask, "parts")
    elsewhere["identifier"]["namespace"] = ["nowhere"]
    assert transact(ask, part("orders", set_property("a", "b")), elsewhere).status == 404
    outside = creation(ask, "parts")
    outside["updates"].append({"action": "set-location", "location": "/etc/parts"})
    assert transact(ask, part("orders", set_property("a", "b")), outside).status == 403
    assert ask("GET", ORDERS).json == before
    assert ask("HEAD", "/v1/namespaces/db/tables/parts").status == 404
    assert set(context.catalog.io.list(context.settings.warehouse or "")) == files


def test_name_taken_at_the_last_moment_holds_the_whole_transaction(
    ask: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = (part("orders", set_property("a", "b")), creation(ask, "items"))
    swap_all = context.catalog.store.swap_all

    def late(swaps: Any) -> bool:
        monkeypatch.undo()
        ask.table("items")
        return swap_all(swaps)

    monkeypatch.setattr(context.catalog.store, "swap_all", late)
    assert transact(ask, *changes).status == 409
    assert "a" not in ask("GET", ORDERS).json["metadata"]["properties"]


def test_transaction_whose_answer_was_lost_is_found_out(
    ask: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap_all = context.catalog.store.swap_all

    def lose(swaps: Any) -> bool:
        assert swap_all(swaps)
        raise StorageError("the connection broke")

    changes = (part("orders", set_property("a", "b")), creation(ask, "items"))
    with monkeypatch.context() as patch:
        patch.setattr(context.catalog.store, "swap_all", lose)
        assert transact(ask, *changes).status == 204
    assert ask("HEAD", "/v1/namespaces/db/tables/items").status == 204


def test_snapshot_of_another_commit_with_a_known_id_is_a_conflict(ask: AsgiClient) -> None:
    assert ask.commit(snapshot(1, 1), set_branch("main", 1)).status == 200
    assert ask.commit(snapshot(1, 1), set_branch("main", 1)).status == 200
    other = snapshot(1, 2)
    other["snapshot"]["manifest-list"] = "file:///nowhere/other.avro"
    told = ask.commit(other, set_branch("main", 1))
    assert told.error == (409, "CommitFailedException")
    assert "snapshot id" in told.message


@pytest.mark.parametrize(
    ("update", "number"),
    [(set_property("a", "b"), 20_001), ({"action": "add-spec", "spec": {"spec-id": 1, "fields": []}}, 501)],
)
def test_more_updates_than_anybody_needs_are_refused(ask: AsgiClient, update: dict[str, Any], number: int) -> None:
    assert ask.commit(*[update] * number).error == (400, "IllegalArgumentException")
    assert ask.commit(*[update] * 400).status == 200


def test_many_snapshots_are_removed_one_by_one_in_one_commit(ask: AsgiClient) -> None:
    removals = [{"action": "remove-snapshots", "snapshot-ids": [n]} for n in range(2, 30_000)]
    assert ask.commit(snapshot(1, 1), set_branch("main", 1), snapshot(2, 2), snapshot(3, 3)).status == 200
    told = ask.commit(*removals)
    assert [s["snapshot-id"] for s in told.json["metadata"]["snapshots"]] == [1]
