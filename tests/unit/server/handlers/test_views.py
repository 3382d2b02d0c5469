"""Views over the protocol."""

from typing import Any

import pytest
from asgi_client import SCHEMA, AsgiClient

VIEW = "/v1/namespaces/db/views/v"


def view(name: str = "v", *dialects: str) -> dict[str, Any]:
    queries = [{"type": "sql", "sql": "select 1", "dialect": d} for d in dialects or ("spark",)]
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": queries,
    }
    return {"name": name, "schema": SCHEMA, "view-version": version, "properties": {"a": "b"}}


@pytest.fixture(autouse=True)
def _db(ask: AsgiClient) -> None:
    ask.namespace("db")
    assert ask("POST", "/v1/namespaces/db/views", view()).status == 200


def test_view_is_loaded_listed_and_dropped(ask: AsgiClient) -> None:
    loaded = ask("GET", VIEW).json
    assert loaded["metadata"]["properties"] == {"a": "b"}
    assert ask("GET", "/v1/namespaces/db/views").json["identifiers"] == [{"namespace": ["db"], "name": "v"}]
    assert ask("HEAD", VIEW).status == 204
    assert ask("DELETE", VIEW).status == 204
    assert ask("HEAD", VIEW).status == 404
    assert ask("GET", VIEW).error == (404, "NoSuchViewException")


def test_names_are_shared_with_tables(ask: AsgiClient) -> None:
    ask.table()
    assert ask("POST", "/v1/namespaces/db/views", view("orders")).message.startswith("Table with same name already")
    told = ask("POST", "/v1/namespaces/db/tables", {"name": "v", "schema": SCHEMA})
    assert told.message.startswith("View with same name already exists")
    told = ask("GET", "/v1/namespaces/db/views/orders")
    assert (told.error, told.message) == ((404, "NoSuchViewException"), "View does not exist: db.orders; it is a table")
    assert ask("GET", "/v1/namespaces/db/tables/v").message == "Table does not exist: db.v; it is a view"


def test_view_is_changed_where_its_uuid_is_right(ask: AsgiClient) -> None:
    uuid = ask("GET", VIEW).json["metadata"]["view-uuid"]
    body = {"updates": [{"action": "set-properties", "updates": {"c": "d"}}]}
    right = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], **body}
    wrong = {"requirements": [{"type": "assert-view-uuid", "uuid": "0"}], **body}
    assert ask("POST", VIEW, right).json["metadata"]["properties"]["c"] == "d"
    assert ask("POST", VIEW, wrong).error == (409, "CommitFailedException")
    assert ask("POST", VIEW, body).status == 200


def test_view_is_renamed_and_registered(ask: AsgiClient) -> None:
    location = ask("GET", VIEW).json["metadata-location"]
    names = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "w"}}
    assert ask("POST", "/v1/views/rename", names).status == 204
    assert ask("POST", "/v1/views/rename", names).error == (404, "NoSuchViewException")
    register = {"name": "v", "metadata-location": location}
    assert ask("POST", "/v1/namespaces/db/register-view", register).status == 200
    assert ask("POST", "/v1/namespaces/db/register-view", register).error == (409, "AlreadyExistsException")


def test_two_queries_in_one_dialect_are_refused(ask: AsgiClient) -> None:
    told = ask("POST", "/v1/namespaces/db/views", view("x", "spark", "Spark"))
    assert told.error == (400, "IllegalArgumentException")


def test_views_stay_in_the_warehouse(ask: AsgiClient) -> None:
    assert ask("POST", "/v1/namespaces/db/views", view("x") | {"location": "/etc"}).status == 403
    assert ask("POST", VIEW, {"updates": [{"action": "set-location", "location": "/etc"}]}).status == 403
