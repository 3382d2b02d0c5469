"""Changes happen once, and are written down with themselves."""

import threading
from typing import Any
from uuid import uuid4

import pytest
from asked import SCHEMA, Asking, set_property

from bergline.catalog.identifiers import TableName
from bergline.errors import StorageError
from bergline.server.served import Served

ORDERS = "/v1/namespaces/db/tables/orders"


@pytest.fixture(autouse=True)
def _db(ask: Asking) -> None:
    ask.namespace("db")


def keyed(key: str | None = None) -> dict[str, str]:
    return {"Idempotency-Key": key or str(uuid4())}


def test_config_says_how_long_keys_are_known(ask: Asking) -> None:
    assert ask("GET", "/v1/config").json["idempotency-key-lifetime"] == "PT1800S"


NAMES = {"source": {"namespace": ["db"], "name": "orders"}, "destination": {"namespace": ["db"], "name": "new"}}
CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/v1/namespaces", {"namespace": ["new"], "properties": {"a": "b"}}),
    ("DELETE", "/v1/namespaces/empty", None),
    ("POST", "/v1/namespaces/db/properties", {"updates": {"c": "d"}, "removals": []}),
    ("POST", "/v1/namespaces/db/tables", {"name": "new", "schema": SCHEMA}),
    ("POST", ORDERS, {"requirements": [], "updates": [set_property("a", "b")]}),
    ("DELETE", ORDERS, None),
    ("POST", f"{ORDERS}/unregister", None),
    ("POST", "/v1/tables/rename", NAMES),
    (
        "POST",
        "/v1/transactions/commit",
        {"table-changes": [{"identifier": NAMES["source"], "requirements": [], "updates": [set_property("a", "b")]}]},
    ),
]


@pytest.mark.parametrize(("method", "path", "body"), CHANGES)
def test_request_sent_twice_with_its_key_happens_once(
    ask: Asking, served: Served, method: str, path: str, body: Any
) -> None:
    ask.namespace("empty")
    ask.table()
    before = len(served.records.audit())
    headers = keyed()
    first, second = (ask(method, path, body, headers=headers) for _ in range(2))
    assert first.status in {200, 204}
    assert (second.status, second.body and second.json) == (first.status, first.body and first.json | {**second.json})
    assert len(served.records.audit()) == before + 1


def test_refusals_are_final_too(ask: Asking) -> None:
    headers = keyed()
    assert ask("DELETE", ORDERS, headers=headers).status == 404
    ask.table()
    assert ask("DELETE", ORDERS, headers=headers).status == 404
    assert ask("HEAD", ORDERS).status == 204
    assert ask("DELETE", ORDERS, headers=keyed()).status == 204


def test_failures_of_the_server_are_not_final(ask: Asking, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    headers, body = keyed(), {"namespace": ["new"]}

    def fail(*_: object) -> bool:
        raise StorageError("the disk is on fire")

    with monkeypatch.context() as patch:
        patch.setattr(served.catalog.store, "create_namespace", fail)
        assert ask("POST", "/v1/namespaces", body, headers=headers).status == 500
    assert ask("POST", "/v1/namespaces", body, headers=headers).status == 200


def test_key_belongs_to_one_request(ask: Asking) -> None:
    headers = keyed()
    assert ask("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=headers).status == 200
    for method, path, body in (
        ("POST", "/v1/namespaces", {"namespace": ["b"]}),
        ("DELETE", "/v1/namespaces/a", None),
        ("POST", "/v1/namespaces/a/properties", {"namespace": ["a"]}),
    ):
        assert ask(method, path, body, headers=headers).error == (422, "UnprocessableEntityException")


@pytest.mark.parametrize(
    "key", ["", "x", "1" * 36, "0f8b5a52-4c1d-4d6e-9a3b-7f6f2a1c9d3", "0f8b5a52-4c1d-4d6e-9a3b-7f6f2a1c9d3e0"]
)
def test_key_must_be_a_uuid(ask: Asking, key: str) -> None:
    assert ask("POST", "/v1/namespaces", {"namespace": ["a"]}, headers={"Idempotency-Key": key}).status == 400
    assert ask("HEAD", "/v1/namespaces/a").status == 404


def test_twins_at_the_same_time_happen_once(ask: Asking, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both find no answer to their key; the database lets one of them in."""
    ask.table()
    headers = keyed()
    together = threading.Barrier(2, timeout=10)
    find = served.records.find_request
    waited: list[int] = []

    def find_together(key: str) -> Any:
        found = find(key)
        if len(waited) < 2:
            waited.append(1)
            together.wait()
        return found

    monkeypatch.setattr(served.records, "find_request", find_together)
    told: list[Any] = []
    threads = [
        threading.Thread(target=lambda: told.append(ask.commit(set_property("a", "b"), headers=headers)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [t.status for t in told] == [200, 200]
    assert told[0].json == told[1].json
    assert len(told[0].json["metadata"]["metadata-log"]) == 1


def test_answer_lost_on_the_way_from_the_database_is_found_out(
    ask: Asking, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap happened, and the database said that it did not know: the client is told that it happened."""
    ask.table(properties={"commit.status-check.min-wait-ms": "1"})
    swap = served.catalog.store.swap

    def lose(table: TableName, expected: str, new: str) -> bool:
        assert swap(table, expected, new)
        raise StorageError("the connection broke")

    headers = keyed()
    with monkeypatch.context() as patch:
        patch.setattr(served.catalog.store, "swap", lose)
        told = ask.commit(set_property("a", "b"), headers=headers)
    assert told.status == 200
    assert ask.commit(set_property("a", "b"), headers=headers).json == told.json
    assert ask("GET", ORDERS).json == told.json


def test_every_change_leaves_a_line_with_who_and_what(ask: Asking, served: Served) -> None:
    ask.table()
    ask.commit(set_property("a", "b"), headers={"User-Agent": "tester/1"})
    ask("POST", "/v1/tables/rename", NAMES)
    assert ask("GET", ORDERS).status == 404
    audit = served.records.audit()
    assert [(e.operation, e.resource) for e in audit] == [
        ("create_namespace", "table"),
        ("create_table", "table/db"),
        ("commit_table", "table/db/orders"),
        ("rename_table", "table"),
    ]
    assert audit[2].agent == "tester/1"
    assert audit[2].principal == "anonymous"
    assert audit[2].metadata_location == ask("GET", "/v1/namespaces/db/tables/new").json["metadata-location"]


def test_change_that_did_not_happen_leaves_no_line(ask: Asking, served: Served) -> None:
    before = served.records.audit()
    assert ask("DELETE", "/v1/namespaces/no").status == 404
    assert ask("POST", "/v1/namespaces", {"namespace": ["db"]}).status == 409
    assert ask.commit(set_property("a", "b")).status == 404
    assert served.records.audit() == before


def test_old_requests_are_forgotten(ask: Asking, served: Served) -> None:
    headers = keyed()
    ask("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=headers)
    served.records.forget_requests(2**62)
    assert ask("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=headers).status == 409
