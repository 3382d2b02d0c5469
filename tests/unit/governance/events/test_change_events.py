"""The events of changes through the server."""

from pathlib import Path
from typing import Any

import pytest

from bergline.catalog.identifiers import TableName
from bergline.governance.events.model import LoggedEvent
from bergline.governance.events.store import SqlEvents
from bergline.server.console.served import ServedLake
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.servers.asgi_client import AsgiClient, set_branch, set_property, snapshot

TABLE = "/v1/namespaces/db/tables/orders"


def events(context: ServerContext, after: int = 0) -> list[LoggedEvent]:
    return list(SqlEvents(context.records.database, context.records.catalog_name).read(after).events)


def kinds(found: list[LoggedEvent]) -> list[tuple[str, str]]:
    return [(event.type, event.subject) for event in found]


@pytest.fixture
def orders(client: AsgiClient) -> str:
    """A table with one snapshot on main; its uuid."""
    client.namespace("db")
    created = client.table()
    assert client.commit(snapshot(1, 1), set_branch("main", 1)).status == 200
    uuid: str = created.json["metadata"]["table-uuid"]
    return uuid


def test_commit_is_an_event_and_so_is_the_move_of_its_branch(
    client: AsgiClient, context: ServerContext, orders: str
) -> None:
    committed = client.commit(snapshot(2, 2, parent=1), set_branch("main", 2))
    first, second = events(context, 4)
    assert kinds([first, second]) == [("table.commit", "table/db/orders"), ("ref.move", "table/db/orders")]
    move = {
        "ref": "main",
        "ref-type": "branch",
        "change": "move",
        "from-snapshot-id": "1",
        "to-snapshot-id": "2",
        "forward": True,
    }
    assert first.data == {
        "table": "db.orders",
        "metadata-location": committed.json["metadata-location"],
        "snapshot-id": "2",
        "refs": [move],
        "operations": ["append"],
    }
    assert second.data == {"table": "db.orders"} | move
    assert (first.table_uuid, first.principal) == (orders, "anonymous")


def test_every_kind_of_change_has_an_event(client: AsgiClient, context: ServerContext, orders: str) -> None:
    assert kinds(events(context)) == [
        ("namespace.create", "namespace/db"),
        ("table.create", "table/db/orders"),
        ("table.commit", "table/db/orders"),
        ("ref.create", "table/db/orders"),
    ]
    client("POST", "/v1/namespaces/db/properties", {"updates": {"a": "b"}})
    rename = {
        "source": {"namespace": ["db"], "name": "orders"},
        "destination": {"namespace": ["db"], "name": "old"},
    }
    assert client("POST", "/v1/tables/rename", rename).status == 204
    location = client("GET", "/v1/namespaces/db/tables/old").json["metadata-location"]
    assert client("POST", "/v1/namespaces/db/tables/old/unregister").status == 200
    again = {"name": "old", "metadata-location": location}
    assert client("POST", "/v1/namespaces/db/register", again).status == 200
    assert client("DELETE", "/v1/namespaces/db/tables/old").status == 204
    assert client("DELETE", "/v1/namespaces/db").status == 204
    found = events(context, 4)
    assert kinds(found) == [
        ("namespace.update", "namespace/db"),
        ("table.rename", "table/db/orders"),
        ("table.rename", "table/db/old"),
        ("table.unregister", "table/db/old"),
        ("table.register", "table/db/old"),
        ("table.drop", "table/db/old"),
        ("namespace.drop", "namespace/db"),
    ]
    assert {event.table_uuid for event in found if event.subject.startswith("table/")} == {orders}
    assert found[1].data == {"from": "db.orders", "to": "db.old"}


def test_refs_that_are_dropped_rolled_back_or_kept_longer(
    client: AsgiClient, context: ServerContext, orders: str
) -> None:
    client.commit(snapshot(2, 2, parent=1), set_branch("main", 2), set_branch("dev", 2))
    start = events(context)[-1].position
    client.commit(
        set_branch("main", 1),
        {**set_branch("dev", 2), "max-ref-age-ms": 5000},
    )
    client.commit({"action": "remove-snapshot-ref", "ref-name": "dev"})
    found = [(e.type, e.data["ref"], e.data.get("forward")) for e in events(context, start) if e.type[:3] == "ref"]
    assert found == [("ref.retain", "dev", None), ("ref.move", "main", False), ("ref.drop", "dev", None)]


def test_maintenance_is_told_from_other_commits(client: AsgiClient, context: ServerContext, orders: str) -> None:
    compacted: dict[str, Any] = snapshot(2, 2, parent=1)
    compacted["snapshot"]["summary"]["operation"] = "replace"
    client.commit(compacted, set_branch("main", 2))
    client.commit({"action": "remove-snapshots", "snapshot-ids": [1]})
    found = [e.data["maintenance"] for e in events(context) if e.type == "table.maintenance"]
    assert found == ["compaction", "expiry"]


def test_transaction_has_events_of_each_table_and_a_lost_conflict_has_none(
    client: AsgiClient, context: ServerContext, orders: str
) -> None:
    client.table("others")
    start = events(context)[-1].position
    changes = [
        {
            "identifier": {"namespace": ["db"], "name": name},
            "requirements": [],
            "updates": [set_property("a", "b")],
        }
        for name in ("orders", "others")
    ]
    assert client("POST", "/v1/transactions/commit", {"table-changes": changes}).status == 204
    stale = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 77}
    assert client.commit(set_property("a", "c"), requirements=[stale]).status == 409
    assert kinds(events(context, start)) == [("table.commit", "table/db/orders"), ("table.commit", "table/db/others")]


def test_bypassed_rule_is_an_event(client: AsgiClient, context: ServerContext, orders: str) -> None:
    rule = "fast-forward-only; bypass=anonymous"
    assert client.commit(set_property("bergline.ref-rules.main", rule)).status == 200
    client.commit(snapshot(2, 2, parent=1), set_branch("main", 2))
    assert client.commit(set_branch("main", 1)).status == 200
    found = [(e.type, e.data["rule"]) for e in events(context) if e.type.startswith("rule.")]
    assert found == [("rule.change", "main"), ("rule.bypass", "main")]


def test_views_have_events(client: AsgiClient, context: ServerContext) -> None:
    client.namespace("db")
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": []}
    body = {"name": "v", "schema": schema, "view-version": version, "properties": {}}
    assert client("POST", "/v1/namespaces/db/views", body).status == 200
    assert client("DELETE", "/v1/namespaces/db/views/v").status == 204
    assert kinds(events(context, 1)) == [("view.create", "view/db/v"), ("view.drop", "view/db/v")]


def test_table_that_comes_back_from_the_trash_has_an_event(tmp_path: Path) -> None:
    kept = open_server(f"sqlite:///{tmp_path}/kept/catalog.db", limits=ServerSettings(drop_retention_s=60))
    with AsgiClient(kept) as client:
        client.namespace("db")
        uuid = client.table().json["metadata"]["table-uuid"]
        assert client("DELETE", TABLE, query={"purgeRequested": "true"}).status == 204
        assert client("POST", "/bergline/v1/namespaces/db/tables/orders/undrop", {}).status == 200
        found = events(kept, 2)
    kept.catalog.close()
    assert [(e.type, e.table_uuid) for e in found] == [("table.drop", uuid), ("table.undrop", uuid)]


def test_number_of_refs_that_events_tell_of_is_bounded(client: AsgiClient, context: ServerContext, orders: str) -> None:
    assert client.commit(*(set_branch(f"b{number:03}", 1) for number in range(150))).status == 200
    commit, *refs = events(context, 4)
    assert (len(commit.data["refs"]), len(refs)) == (100, 100)


def test_repeated_request_has_no_second_event(client: AsgiClient, context: ServerContext, orders: str) -> None:
    key = {"Idempotency-Key": "01890a5d-ac96-774b-bcce-b302099a8057"}
    for _ in range(2):
        assert client.commit(set_property("a", "b"), headers=key).status == 200
    assert [e.type for e in events(context, 4)] == ["table.commit"]


def test_change_from_the_console_is_an_event(client: AsgiClient, context: ServerContext, orders: str) -> None:
    served = ServedLake(context)
    name = TableName(("db",), "orders")
    served.change("ann", "create tag", name, lambda: served.lake.load_table(name).refs.create_tag("v1"))
    found = events(context, 4)
    assert [(e.type, e.principal) for e in found] == [("table.commit", "ann"), ("ref.create", "ann")]
