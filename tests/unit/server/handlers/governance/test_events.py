"""The endpoint of the event log."""

import asyncio
import datetime as dt
import time
from typing import Any

import msgspec
import pytest

from bergline.server.context.context import ServerContext
from support.servers.asgi_client import SCHEMA, AsgiClient, set_property
from support.servers.granted_server import GrantedServer

pytestmark = pytest.mark.long

EVENTS = "/bergline/v1/events"


@pytest.fixture
def changed(client: AsgiClient) -> AsgiClient:
    """After four events."""
    client.namespace("db")
    client.table()
    client.commit(set_property("a", "b"))
    client.table("others")
    return client


def ids(client: AsgiClient, **query: str) -> list[int]:
    response = client("GET", EVENTS, query=query)
    assert response.status == 200, response
    return [int(event["id"]) for event in response.json]


def test_events_are_a_batch_of_cloud_events(changed: AsgiClient) -> None:
    response = changed("GET", EVENTS, query={"after": "2", "limit": "1"})
    assert response.headers["content-type"] == "application/cloudevents-batch+json"
    (event,) = response.json
    data = event.pop("data")
    moment = dt.datetime.fromisoformat(event.pop("time"))
    assert abs(moment.timestamp() - time.time()) < 60
    assert event == {
        "id": "3",
        "source": "/catalogs/lake",
        "type": "org.bergline.table.commit",
        "subject": "table/db/orders",
        "sequence": "00000000000000000003",
        "specversion": "1.0",
        "datacontenttype": "application/json",
    }
    assert data.keys() == {"principal", "table-uuid", "table", "metadata-location"}
    assert (response.headers["bergline-position"], response.headers["bergline-newest-position"]) == ("3", "4")


def test_cursor_limit_and_filters(changed: AsgiClient) -> None:
    assert ids(changed) == [1, 2, 3, 4]
    assert ids(changed, after="00000000000000000003") == [4]
    assert ids(changed, after="4") == []
    assert ids(changed, limit="2") == [1, 2]
    assert ids(changed, type="org.bergline.table.create") == [2, 4]
    assert ids(changed, type="table.*", subject="table/db/orders") == [2, 3]
    several = asyncio.run(changed.send("GET", EVENTS, [b""], query={"type": "namespace.create"}))
    assert len(several.json) == 1


@pytest.mark.parametrize(
    "query",
    [
        {"after": "-1"},
        {"after": "x"},
        {"after": "5"},
        {"after": "9" * 30},
        {"limit": "0"},
        {"limit": "1.5"},
        {"wait": "x"},
        {"wait": "-1"},
        {"type": "a*b"},
        {"subject": ""},
        {"subject": "a\0"},
    ],
)
def test_wrong_queries_are_refused(changed: AsgiClient, query: dict[str, str]) -> None:
    assert changed("GET", EVENTS, query=query).error == (400, "IllegalArgumentException")


def test_cursor_behind_what_is_kept_is_gone(changed: AsgiClient, context: ServerContext) -> None:
    far = time.time_ns() // 1_000_000 + 60_000
    context.events.prune(far, most=2)
    gone = changed("GET", EVENTS, query={"after": "1"})
    assert gone.error == (410, "EventsGoneException")
    assert "the oldest is at 3" in gone.message
    assert ids(changed) == ids(changed, after="2") == [3, 4]


def test_wait_ends_with_the_first_event_and_holds_no_thread(changed: AsgiClient, context: ServerContext) -> None:
    async def scene() -> tuple[list[Any], float]:
        started = time.monotonic()
        waiting = [
            asyncio.create_task(changed.send("GET", EVENTS, [b""], query={"after": "4", "wait": "20"}))
            for _ in range(context.settings.threads * 2)
        ]
        await asyncio.sleep(0.1)
        body = b'{"namespace": ["more"]}'
        assert (await changed.send("POST", "/v1/namespaces", [body])).status == 200
        return await asyncio.gather(*waiting), time.monotonic() - started

    responses, took = asyncio.run(scene())
    assert all([int(event["id"]) for event in response.json] == [5] for response in responses)
    assert took < 10


def test_wait_without_events_ends(changed: AsgiClient) -> None:
    started = time.monotonic()
    assert ids(changed, after="4", wait="1") == []
    assert time.monotonic() - started >= 1


def seen(granted: GrantedServer, who: str, table: str = "t") -> list[str]:
    """The types of a table's events, as a caller sees them."""
    found = granted(who, "GET", EVENTS, query={"subject": f"table/db/{table}"})
    assert found.status == 200, found
    assert found.json == granted(who, "GET", EVENTS, query={"subject": f"table/db/{table}", "newest": "9"}).json
    return [event["type"].removeprefix("org.bergline.table.") for event in found.json]


TABLES = "/v1/namespaces/db/tables"


def make(granted: GrantedServer, who: str, name: str = "t") -> None:
    assert granted(who, "POST", TABLES, {"name": name, "schema": SCHEMA}).status == 200


def rename(granted: GrantedServer, who: str, old: str, new: str) -> None:
    names = {"source": {"namespace": ["db"], "name": old}, "destination": {"namespace": ["db"], "name": new}}
    assert granted(who, "POST", "/v1/tables/rename", names).status == 204


def test_events_of_a_name_end_with_its_table(granted: GrantedServer) -> None:
    granted.grant("create", "namespace db", "ann")
    make(granted, "root")
    assert granted("root", "DELETE", f"{TABLES}/t").status == 204
    make(granted, "ann")
    assert seen(granted, "ann") == ["create"]
    assert seen(granted, "root") == ["create", "drop", "create"]
    rename(granted, "ann", "t", "u")
    make(granted, "root")
    granted.grant("read", "table db.t", "ann")
    assert seen(granted, "ann") == ["create"]
    assert seen(granted, "ann", "u") == ["rename"]
    assert granted("root", "DELETE", f"{TABLES}/t").status == 204
    assert seen(granted, "ann") == ["create", "drop"]
    rename(granted, "ann", "u", "t")
    assert seen(granted, "ann") == ["rename"]
    assert len(seen(granted, "root")) == 7


def test_table_that_came_back_has_its_events(context: ServerContext) -> None:
    context.settings = msgspec.structs.replace(context.settings, drop_retention_s=3600)
    granted = GrantedServer(context, "ann")
    granted("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    granted.grant("create", "namespace db", "ann")
    for name in ("t", "u"):
        make(granted, "ann", name)
        assert granted("ann", "DELETE", f"{TABLES}/{name}").status == 204
    assert granted("ann", "POST", "/bergline/v1/namespaces/db/tables/t/undrop", {}).status == 200
    assert seen(granted, "ann") == ["create", "drop", "undrop"]
    to = {"destination": {"namespace": ["db"], "name": "v"}}
    granted("root", "POST", TABLES, {"name": "v", "schema": SCHEMA})
    rename(granted, "root", "v", "w")
    assert granted("ann", "POST", "/bergline/v1/namespaces/db/tables/u/undrop", to).status == 200
    assert seen(granted, "ann", "v") == ["undrop"]
    granted.client.application.close()
