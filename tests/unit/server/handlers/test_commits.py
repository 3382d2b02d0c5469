"""Commits over the protocol."""

from typing import Any
from uuid import uuid4

import pytest

from bergline.errors import StorageError
from bergline.server.context.context import ServerContext
from support.servers.asgi_client import SCHEMA, AsgiClient, AsgiResponse, set_branch, set_property, snapshot

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _orders(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()


def test_commit_answers_with_the_table(client: AsgiClient) -> None:
    response = client.commit(set_property("a", "b"))
    assert response.json == client("GET", ORDERS).json
    assert response.headers["etag"] == client("GET", ORDERS).headers["etag"]


def test_stale_sequence_number_is_a_conflict(client: AsgiClient) -> None:
    client.commit(snapshot(1, 1), set_branch("main", 1))
    client.commit(snapshot(2, 2, 1), set_branch("dev", 2))
    response = client.commit(snapshot(3, 2, 1), set_branch("main", 3))
    assert response.error == (409, "CommitFailedException")
    assert "the newest is snapshot 2" in response.message


def test_commit_without_updates_changes_nothing(client: AsgiClient) -> None:
    before = client("GET", ORDERS).json["metadata-location"]
    assert client.commit().json["metadata-location"] == before
    assert client.commit(requirements=[{"type": "assert-current-schema-id", "current-schema-id": 7}]).status == 409


def test_transaction_moves_all_or_none(client: AsgiClient) -> None:
    client.table("items")

    def change(name: str, *requirements: object) -> dict[str, object]:
        identifier = {"namespace": ["db"], "name": name}
        return {"identifier": identifier, "requirements": requirements, "updates": [set_property("a", "b")]}

    wrong = {"type": "assert-current-schema-id", "current-schema-id": 7}
    refused = client("POST", "/v1/transactions/commit", {"table-changes": [change("orders"), change("items", wrong)]})
    assert refused.error == (409, "CommitFailedException")
    assert "a" not in client("GET", ORDERS).json["metadata"]["properties"]
    assert (
        client("POST", "/v1/transactions/commit", {"table-changes": [change("orders"), change("items")]}).status == 204
    )
    for name in ("orders", "items"):
        assert client("GET", f"/v1/namespaces/db/tables/{name}").json["metadata"]["properties"]["a"] == "b"
    assert client("POST", "/v1/transactions/commit", {"table-changes": [change("no")]}).status == 404
    assert client("POST", "/v1/transactions/commit", {"table-changes": []}).status == 400
    nameless = {"requirements": [], "updates": []}
    assert client("POST", "/v1/transactions/commit", {"table-changes": [nameless]}).status == 400


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
def test_bodies_that_mean_nothing_are_refused_with_the_place(client: AsgiClient, body: bytes, place: str) -> None:
    response = client("POST", ORDERS, body)
    assert response.error == (400, "BadRequestException")
    assert place in response.message


def test_name_in_the_body_must_be_that_of_the_path(client: AsgiClient) -> None:
    body = {"identifier": {"namespace": ["db"], "name": "items"}, "requirements": [], "updates": []}
    assert client("POST", ORDERS, body).status == 400


def creation(client: AsgiClient, name: str) -> dict[str, Any]:
    """A staged table as a part of a transaction."""
    body = {"name": name, "schema": SCHEMA, "stage-create": True}
    metadata = client("POST", "/v1/namespaces/db/tables", body).json["metadata"]
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


def transact(client: AsgiClient, *changes: dict[str, Any], **more: Any) -> AsgiResponse:
    return client("POST", "/v1/transactions/commit", {"table-changes": changes}, **more)


def test_transaction_creates_tables_with_the_changes_of_others(client: AsgiClient, context: ServerContext) -> None:
    changes = (part("orders", set_property("a", "b")), creation(client, "items"), creation(client, "parts"))
    headers = {"Idempotency-Key": str(uuid4())}
    for _ in range(2):
        assert transact(client, *changes, headers=headers).status == 204
    for name in ("items", "parts"):
        table = client("GET", f"/v1/namespaces/db/tables/{name}").json["metadata"]
        assert table["current-snapshot-id"] == 77
    assert client("GET", ORDERS).json["metadata"]["properties"]["a"] == "b"
    names = [row.resource for row in context.records.audit() if row.operation == "commit_transaction"]
    assert sorted(names) == ["table/db/items", "table/db/orders", "table/db/parts"]


def test_transaction_that_cannot_create_its_table_changes_nothing(client: AsgiClient, context: ServerContext) -> None:
    items = creation(client, "items")
    client.table("items")
    before = client("GET", ORDERS).json
    files = set(context.catalog.io.list(context.settings.warehouse or ""))
    taken = transact(client, part("orders", set_property("a", "b")), items, creation(client, "parts"))
    assert taken.error == (409, "AlreadyExistsException")
    stale = [{"type": "assert-table-uuid", "uuid": "x"}]
    refused = transact(client, part("orders", set_property("a", "b"), requirements=stale), creation(client, "parts"))
    assert refused.error == (409, "CommitFailedException")
    elsewhere = creation(client, "parts")
    elsewhere["identifier"]["namespace"] = ["nowhere"]
    assert transact(client, part("orders", set_property("a", "b")), elsewhere).status == 404
    outside = creation(client, "parts")
    outside["updates"].append({"action": "set-location", "location": "/etc/parts"})
    assert transact(client, part("orders", set_property("a", "b")), outside).status == 403
    assert client("GET", ORDERS).json == before
    assert client("HEAD", "/v1/namespaces/db/tables/parts").status == 404
    assert set(context.catalog.io.list(context.settings.warehouse or "")) == files


def test_name_taken_at_the_last_moment_holds_the_whole_transaction(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = (part("orders", set_property("a", "b")), creation(client, "items"))
    swap_all = context.catalog.store.swap_all

    def late(swaps: Any) -> bool:
        monkeypatch.undo()
        client.table("items")
        return swap_all(swaps)

    monkeypatch.setattr(context.catalog.store, "swap_all", late)
    assert transact(client, *changes).status == 409
    assert "a" not in client("GET", ORDERS).json["metadata"]["properties"]


def test_transaction_whose_answer_was_lost_is_found_out(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    swap_all = context.catalog.store.swap_all

    def lose(swaps: Any) -> bool:
        assert swap_all(swaps)
        raise StorageError("the connection broke")

    changes = (part("orders", set_property("a", "b")), creation(client, "items"))
    with monkeypatch.context() as patch:
        patch.setattr(context.catalog.store, "swap_all", lose)
        assert transact(client, *changes).status == 204
    assert client("HEAD", "/v1/namespaces/db/tables/items").status == 204
