"""Commits by name: retried while their requirements hold, and recognized when they are sent again."""

from typing import Any

import pytest

from bergline.catalog.identifiers import TableName
from bergline.lake.lake import connect
from bergline.server.context.context import ServerContext
from support.fixtures.concurrency import run_for_each
from support.servers.asgi_client import AsgiClient, set_branch, set_property, snapshot

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _orders(client: AsgiClient) -> None:
    client.namespace("db")
    client.table()


def test_failed_requirement_says_who_came_first(client: AsgiClient) -> None:
    client.commit(snapshot(1, 1), set_branch("main", 1))
    assertion = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}
    response = client.commit(snapshot(2, 2), set_branch("main", 2), requirements=[assertion])
    assert response.error == (409, "CommitFailedException")
    assert "Requirement failed: branch main has changed" in response.message
    assert "snapshot 1 (append on `main` by tester 7, 2027-01-15T08:00:00.001+00:00) came first" in response.message


def test_commit_sent_twice_happens_once(client: AsgiClient) -> None:
    requirements = [{"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": None}]
    first, second = (client.commit(snapshot(1, 1), set_branch("main", 1), requirements=requirements) for _ in range(2))
    assert first.status == second.status == 200
    assert first.json["metadata-location"] == second.json["metadata-location"]


def test_many_writers_at_once_all_succeed(client: AsgiClient, context: ServerContext) -> None:
    """Each sets a property of its own: no requirement stands between them."""
    other = AsgiClient(context)
    response: list[int] = []

    def write(number: int) -> None:
        response.append((client, other)[number % 2].commit(set_property(f"p{number}", "x")).status)

    run_for_each(write, range(12))
    other.application.close()
    assert response == [200] * 12
    properties = client("GET", ORDERS).json["metadata"]["properties"]
    assert {f"p{n}" for n in range(12)} <= properties.keys()


def test_writer_beside_the_server_is_not_overwritten(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
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
    response = client.commit(set_property("ours", "2"))
    assert response.status == 200
    assert {"theirs", "ours"} <= response.json["metadata"]["properties"].keys()


def test_snapshot_of_another_commit_with_a_known_id_is_a_conflict(client: AsgiClient) -> None:
    assert client.commit(snapshot(1, 1), set_branch("main", 1)).status == 200
    assert client.commit(snapshot(1, 1), set_branch("main", 1)).status == 200
    other = snapshot(1, 2)
    other["snapshot"]["manifest-list"] = "file:///nowhere/other.avro"
    response = client.commit(other, set_branch("main", 1))
    assert response.error == (409, "CommitFailedException")
    assert "snapshot id" in response.message


@pytest.mark.parametrize(
    ("update", "number"),
    [(set_property("a", "b"), 20_001), ({"action": "add-spec", "spec": {"spec-id": 1, "fields": []}}, 501)],
)
def test_more_updates_than_anybody_needs_are_refused(client: AsgiClient, update: dict[str, Any], number: int) -> None:
    assert client.commit(*[update] * number).error == (400, "IllegalArgumentException")
    assert client.commit(*[update] * 400).status == 200


def test_many_snapshots_are_removed_one_by_one_in_one_commit(client: AsgiClient) -> None:
    removals = [{"action": "remove-snapshots", "snapshot-ids": [n]} for n in range(2, 30_000)]
    assert client.commit(snapshot(1, 1), set_branch("main", 1), snapshot(2, 2), snapshot(3, 3)).status == 200
    response = client.commit(*removals)
    assert [s["snapshot-id"] for s in response.json["metadata"]["snapshots"]] == [1]
