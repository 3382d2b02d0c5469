"""Views over the protocol."""

from typing import Any

import pytest

from support.servers.asgi_client import SCHEMA, AsgiClient

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
def _db(client: AsgiClient) -> None:
    client.namespace("db")
    assert client("POST", "/v1/namespaces/db/views", view()).status == 200


def test_view_is_loaded_listed_and_dropped(client: AsgiClient) -> None:
    loaded = client("GET", VIEW).json
    assert loaded["metadata"]["properties"] == {"a": "b"}
    assert client("GET", "/v1/namespaces/db/views").json["identifiers"] == [{"namespace": ["db"], "name": "v"}]
    assert client("HEAD", VIEW).status == 204
    assert client("DELETE", VIEW).status == 204
    assert client("HEAD", VIEW).status == 404
    assert client("GET", VIEW).error == (404, "NoSuchViewException")


def test_names_are_shared_with_tables(client: AsgiClient) -> None:
    client.table()
    assert client("POST", "/v1/namespaces/db/views", view("orders")).message.startswith("Table with same name already")
    response = client("POST", "/v1/namespaces/db/tables", {"name": "v", "schema": SCHEMA})
    assert response.message.startswith("View with same name already exists")
    response = client("GET", "/v1/namespaces/db/views/orders")
    assert (response.error, response.message) == (
        (404, "NoSuchViewException"),
        "View does not exist: db.orders; it is a table",
    )
    assert client("GET", "/v1/namespaces/db/tables/v").message == "Table does not exist: db.v; it is a view"


def test_view_is_changed_where_its_uuid_is_right(client: AsgiClient) -> None:
    uuid = client("GET", VIEW).json["metadata"]["view-uuid"]
    body = {"updates": [{"action": "set-properties", "updates": {"c": "d"}}]}
    right = {"requirements": [{"type": "assert-view-uuid", "uuid": uuid}], **body}
    wrong = {"requirements": [{"type": "assert-view-uuid", "uuid": "0"}], **body}
    assert client("POST", VIEW, right).json["metadata"]["properties"]["c"] == "d"
    assert client("POST", VIEW, wrong).error == (409, "CommitFailedException")
    assert client("POST", VIEW, body).status == 200


def test_view_is_renamed_and_registered(client: AsgiClient) -> None:
    location = client("GET", VIEW).json["metadata-location"]
    names = {"source": {"namespace": ["db"], "name": "v"}, "destination": {"namespace": ["db"], "name": "w"}}
    assert client("POST", "/v1/views/rename", names).status == 204
    assert client("POST", "/v1/views/rename", names).error == (404, "NoSuchViewException")
    register = {"name": "v", "metadata-location": location}
    assert client("POST", "/v1/namespaces/db/register-view", register).status == 200
    assert client("POST", "/v1/namespaces/db/register-view", register).error == (409, "AlreadyExistsException")


def test_two_queries_in_one_dialect_are_refused(client: AsgiClient) -> None:
    response = client("POST", "/v1/namespaces/db/views", view("x", "spark", "Spark"))
    assert response.error == (400, "IllegalArgumentException")


def test_views_stay_in_the_warehouse(client: AsgiClient) -> None:
    assert client("POST", "/v1/namespaces/db/views", view("x") | {"location": "/etc"}).status == 403
    assert client("POST", VIEW, {"updates": [{"action": "set-location", "location": "/etc"}]}).status == 403
