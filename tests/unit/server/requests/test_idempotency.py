"""IdempotentChanges happen once, and are written down with themselves."""

import threading
from typing import Any
from uuid import uuid4

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.protection.caller import RuleNote, acting_as
from bergline.catalog.rest.protocol.final_refusal import REFUSED_KEY_HEADER
from bergline.catalog.sql.records import AuditEntry
from bergline.errors import StorageError
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from bergline.server.requests.idempotency import audit_rules
from support.fixtures.concurrency import LONG_S, run_for_each
from support.servers.asgi_client import SCHEMA, AsgiClient, set_property

pytestmark = pytest.mark.long

ORDERS = "/v1/namespaces/db/tables/orders"
TABLE = TableName(("db",), "orders")


@pytest.fixture(autouse=True)
def _db(client: AsgiClient) -> None:
    client.namespace("db")


def keyed(key: str | None = None) -> dict[str, str]:
    return {"Idempotency-Key": key or str(uuid4())}


def test_config_says_how_long_keys_are_known(client: AsgiClient) -> None:
    assert client("GET", "/v1/config").json["idempotency-key-lifetime"] == "PT1800S"


NAMES = {"source": {"namespace": ["db"], "name": "orders"}, "destination": {"namespace": ["db"], "name": "new"}}
CHANGES: list[tuple[str, str, Any]] = [
    ("POST", "/v1/namespaces", {"namespace": ["new"], "properties": {"a": "b"}}),
    ("DELETE", "/v1/namespaces/empty", None),
    ("POST", "/v1/namespaces/db/properties", {"updates": {"c": "d"}, "removals": ["never there"]}),
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
    client: AsgiClient, context: ServerContext, method: str, path: str, body: Any
) -> None:
    client.namespace("empty")
    client.table()
    before = len(context.records.audit())
    headers = keyed()
    first, second = (client(method, path, body, headers=headers) for _ in range(2))
    assert first.status in {200, 204}
    assert (second.status, second.body) == (first.status, first.body)
    rows = context.records.audit()[before:]
    assert len(rows) == (2 if "rename" in path else 1)
    assert {row.operation for row in rows} == {rows[0].operation}


def test_transaction_leaves_a_line_for_each_table(client: AsgiClient, context: ServerContext) -> None:
    pointers = {}
    for name in ("orders", "items"):
        client.table(name)
    changes = [
        {"identifier": {"namespace": ["db"], "name": name}, "requirements": [], "updates": [set_property("a", "b")]}
        for name in ("orders", "items")
    ]
    assert client("POST", "/v1/transactions/commit", {"table-changes": changes}).status == 204
    for name in ("orders", "items"):
        pointers[f"table/db/{name}"] = client("GET", f"/v1/namespaces/db/tables/{name}").json["metadata-location"]
    assert {row.resource: row.metadata_location for row in context.records.audit()[-2:]} == pointers


def test_request_that_changes_nothing_is_final_too(client: AsgiClient) -> None:
    headers, body = keyed(), {"name": "staged", "schema": SCHEMA, "stage-create": True}
    first, second = (client("POST", "/v1/namespaces/db/tables", body, headers=headers) for _ in range(2))
    assert first.status == 200
    assert first.json == second.json
    assert client("POST", "/v1/namespaces", {"namespace": ["x"]}, headers=headers).status == 422
    client.table()
    headers, hold = keyed(), [{"type": "assert-last-assigned-field-id", "last-assigned-field-id": 2}]
    response = client.commit(requirements=hold, headers=headers)
    assert response.status == 200
    more = SCHEMA | {"schema-id": 1, "fields": [{"id": 3, "name": "more", "type": "long", "required": False}]}
    assert client.commit({"action": "add-schema", "schema": more}).status == 200
    assert client.commit(requirements=hold).status == 409
    assert client.commit(requirements=hold, headers=headers).json == response.json


def test_key_tells_names_apart_that_look_the_same_when_joined(client: AsgiClient, context: ServerContext) -> None:
    for namespace in (("a",), ("a/b",)):
        client.namespace(*namespace)
    headers = keyed()
    assert client("POST", "/v1/namespaces/a%2Fb/tables", {"name": "c", "schema": SCHEMA}).status == 200
    assert client("POST", "/v1/namespaces/a/tables", {"name": "b/c", "schema": SCHEMA}).status == 200
    assert client("DELETE", "/v1/namespaces/a%2Fb/tables/c", headers=headers).status == 204
    assert client("DELETE", "/v1/namespaces/a/tables/b%2Fc", headers=headers).status == 422
    assert client("HEAD", "/v1/namespaces/a/tables/b%2Fc").status == 204


def test_refusal_that_cannot_be_recorded_is_not_told(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A twin with the same key may have changed what stands against it."""
    headers = keyed()

    def broken(*_: object) -> None:
        raise StorageError("the connection broke")

    with monkeypatch.context() as patch:
        patch.setattr(context.records, "finish_request", broken)
        assert client("DELETE", ORDERS, headers=headers).error == (500, "CommitStateUnknownException")
    assert client("DELETE", ORDERS, headers=headers).status == 404


def test_namespace_whose_answer_was_lost_is_found_by_its_key(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = context.catalog.store.create_namespace

    def lose(*given: Any) -> bool:
        assert create(*given)
        raise StorageError("the connection broke")

    monkeypatch.setattr(context.catalog.store, "create_namespace", lose)
    assert client("POST", "/v1/namespaces", {"namespace": ["new"]}, headers=keyed()).status == 200


def test_refusals_are_final_too(client: AsgiClient) -> None:
    headers = keyed()
    assert client("DELETE", ORDERS, headers=headers).status == 404
    client.table()
    assert client("DELETE", ORDERS, headers=headers).status == 404
    assert client("HEAD", ORDERS).status == 204
    assert client("DELETE", ORDERS, headers=keyed()).status == 204


def test_refusal_that_holds_for_every_request_with_its_key_says_so(client: AsgiClient) -> None:
    client.table()
    key, hold = str(uuid4()), [{"type": "assert-current-schema-id", "current-schema-id": 7}]
    for _ in range(2):
        answer = client.commit(requirements=hold, headers=keyed(key))
        assert (answer.status, answer.headers.get(REFUSED_KEY_HEADER)) == (409, key)
    assert REFUSED_KEY_HEADER not in client.commit(requirements=hold).headers
    assert REFUSED_KEY_HEADER not in client.commit(headers=keyed()).headers
    another = client("POST", "/v1/namespaces", {"namespace": ["x"]}, headers=keyed(key))
    assert (another.status, another.headers.get(REFUSED_KEY_HEADER)) == (422, None)


def test_failures_of_the_server_are_not_final(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    headers, body = keyed(), {"namespace": ["new"]}

    def fail(*_: object) -> bool:
        raise StorageError("the disk is on fire")

    with monkeypatch.context() as patch:
        patch.setattr(context.catalog.store, "create_namespace", fail)
        assert client("POST", "/v1/namespaces", body, headers=headers).status == 500
    assert client("POST", "/v1/namespaces", body, headers=headers).status == 200


def test_key_belongs_to_one_request(client: AsgiClient) -> None:
    headers = keyed()
    assert client("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=headers).status == 200
    for method, path, body in (
        ("POST", "/v1/namespaces", {"namespace": ["b"]}),
        ("DELETE", "/v1/namespaces/a", None),
        ("POST", "/v1/namespaces/a/properties", {"namespace": ["a"]}),
    ):
        assert client(method, path, body, headers=headers).error == (422, "UnprocessableEntityException")


@pytest.mark.parametrize(
    "key", ["", "x", "1" * 36, "0f8b5a52-4c1d-4d6e-9a3b-7f6f2a1c9d3", "0f8b5a52-4c1d-4d6e-9a3b-7f6f2a1c9d3e0"]
)
def test_key_must_be_a_uuid(client: AsgiClient, key: str) -> None:
    assert client("POST", "/v1/namespaces", {"namespace": ["a"]}, headers={"Idempotency-Key": key}).status == 400
    assert client("HEAD", "/v1/namespaces/a").status == 404


def test_twins_at_the_same_time_happen_once(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two servers find no answer to their key; the database lets one of them in."""
    client.table()
    headers = keyed()
    together = threading.Barrier(2, timeout=LONG_S)
    find = context.records.find_request
    waited: list[int] = []

    def find_together(key: str) -> Any:
        found = find(key)
        if len(waited) < 2:
            waited.append(1)
            together.wait()
        return found

    second = open_server(f"sqlite:///{context.store.database.name}")
    for server in (context, second):
        monkeypatch.setattr(server.records, "find_request", find_together)
    response: list[Any] = []

    def commit(asking: AsgiClient) -> None:
        response.append(asking.commit(set_property("a", "b"), headers=headers))

    with AsgiClient(second) as other:
        run_for_each(commit, (client, other))
    second.catalog.close()
    assert [t.status for t in response] == [200, 200]
    assert response[0].json == response[1].json
    assert len(response[0].json["metadata"]["metadata-log"]) == 1


def test_answer_lost_on_the_way_from_the_database_is_found_out(
    client: AsgiClient, context: ServerContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The swap happened, and the database said that it did not know: the client is told that it happened."""
    client.table(properties={"commit.status-check.min-wait-ms": "1"})
    swap = context.catalog.store.swap

    def lose(table: TableName, expected: str, new: str) -> bool:
        assert swap(table, expected, new)
        raise StorageError("the connection broke")

    headers = keyed()
    with monkeypatch.context() as patch:
        patch.setattr(context.catalog.store, "swap", lose)
        response = client.commit(set_property("a", "b"), headers=headers)
    assert response.status == 200
    assert client.commit(set_property("a", "b"), headers=headers).json == response.json
    assert client("GET", ORDERS).json == response.json


def test_every_change_leaves_a_line_with_who_and_what(client: AsgiClient, context: ServerContext) -> None:
    client.table()
    client.commit(set_property("a", "b"), headers={"User-Agent": "tester/1"})
    client("POST", "/v1/tables/rename", NAMES)
    assert client("GET", ORDERS).status == 404
    audit = context.records.audit()
    assert [(e.operation, e.resource) for e in audit] == [
        ("create_namespace", "namespace/db"),
        ("create_table", "table/db/orders"),
        ("commit_table", "table/db/orders"),
        ("rename_table", "table/db/orders"),
        ("rename_table", "table/db/new"),
    ]
    assert audit[2].agent == "tester/1"
    assert audit[2].principal == "anonymous"
    assert audit[2].metadata_location == client("GET", "/v1/namespaces/db/tables/new").json["metadata-location"]


def test_change_that_did_not_happen_leaves_no_line(client: AsgiClient, context: ServerContext) -> None:
    before = context.records.audit()
    assert client("DELETE", "/v1/namespaces/no").status == 404
    assert client("POST", "/v1/namespaces", {"namespace": ["db"]}).status == 409
    assert client.commit(set_property("a", "b")).status == 404
    assert context.records.audit() == before


def test_old_requests_are_forgotten(client: AsgiClient, context: ServerContext) -> None:
    headers = keyed()
    client("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=headers)
    context.records.forget_requests(2**62)
    assert client("POST", "/v1/namespaces", {"namespace": ["a"]}, headers=headers).status == 409


def test_answers_about_namespaces_are_given_again_as_they_were(client: AsgiClient) -> None:
    made = {"namespace": ["new"], "properties": {"a": "1", "b": "2"}}
    changed = {"updates": {"c": "3"}, "removals": ["a", "x", "a"]}
    headers = keyed(), keyed()
    response = [client("POST", "/v1/namespaces", made, headers=headers[0])]
    response += [client("POST", "/v1/namespaces/new/properties", changed, headers=headers[1])]
    assert response[0].json["properties"]["location"]
    assert response[1].json == {"updated": ["c"], "removed": ["a"], "missing": ["x"]}
    client("POST", "/v1/namespaces/new/properties", {"updates": {"x": "1", "a": "1"}, "removals": ["c"]})
    again = [client("POST", "/v1/namespaces", made, headers=headers[0])]
    again += [client("POST", "/v1/namespaces/new/properties", changed, headers=headers[1])]
    assert [t.body for t in again] == [t.body for t in response]
    assert client("GET", "/v1/namespaces/new").json["properties"].keys() == {"a", "b", "x", "location"}


def test_each_rule_that_was_bypassed_or_changed_has_a_row(context: ServerContext) -> None:
    change = AuditEntry(7, "ann", "commit_table", "table/db/orders", "spark")
    with acting_as("ann") as caller, context.records.database.changing() as connection:
        caller.notes[TABLE] = (RuleNote("bypass_ref_rule", "main"), RuleNote("change_ref_rule", "x" * 100))
        audit_rules(context.records, connection, change, {TABLE: "file:///m.json"})
    rows = [
        (e.at_ms, e.principal, e.operation, e.resource, e.agent, e.metadata_location)
        for e in context.records.audit()
        if e.at_ms == change.at_ms
    ]
    assert rows == [
        (7, "ann", "bypass_ref_rule:main", "table/db/orders", "spark", "file:///m.json"),
        (7, "ann", f"change_ref_rule:{'x' * 48}", "table/db/orders", "spark", "file:///m.json"),
    ]


def test_change_that_passed_no_rule_has_no_row(context: ServerContext) -> None:
    before = context.records.audit()
    with acting_as("ann"), context.records.database.changing() as connection:
        audit_rules(context.records, connection, AuditEntry(7, "ann", "commit_table", "table/db/orders"), {})
    assert context.records.audit() == before
