"""Namespaces over the protocol."""

from urllib.parse import quote

import pytest

from support.servers.asgi_client import SCHEMA, AsgiClient

AWKWARD = ["a b", "a+b", "ä€", "a%20b", "a/b", "x" * 200, "a?b", "#", "&=", "A"]


def test_namespace_is_created_loaded_and_dropped(client: AsgiClient) -> None:
    made = client("POST", "/v1/namespaces", {"namespace": ["db"], "properties": {"owner": "ann"}})
    assert made.json["namespace"] == ["db"]
    assert made.json["properties"]["owner"] == "ann"
    assert client("GET", "/v1/namespaces/db").json == made.json
    assert client("HEAD", "/v1/namespaces/db").status == 204
    dropped = client("DELETE", "/v1/namespaces/db")
    assert (dropped.status, dropped.body) == (204, b"")
    assert client("HEAD", "/v1/namespaces/db").status == 404
    assert client("GET", "/v1/namespaces/db").error == (404, "NoSuchNamespaceException")


def test_taken_and_filled_namespaces_are_refused(client: AsgiClient) -> None:
    client.namespace("db")
    assert client("POST", "/v1/namespaces", {"namespace": ["db"]}).error == (409, "AlreadyExistsException")
    client.table()
    assert client("DELETE", "/v1/namespaces/db").error == (409, "NamespaceNotEmptyException")
    assert client("DELETE", "/v1/namespaces/other").error == (404, "NoSuchNamespaceException")


def test_list_shows_one_level(client: AsgiClient) -> None:
    for levels in (["a"], ["a", "b"], ["a", "b", "c"], ["z"]):
        client.namespace(*levels)
    assert client("GET", "/v1/namespaces").json == {"namespaces": [["a"], ["z"]], "next-page-token": None}
    assert client("GET", "/v1/namespaces", query={"parent": "a\x1fb"}).json["namespaces"] == [["a", "b", "c"]]
    assert client("GET", "/v1/namespaces", query={"parent": "no"}).error == (404, "NoSuchNamespaceException")
    assert client("GET", "/v1/namespaces/a%1Fb%1fc").status == 200


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_found_by_its_encoded_path(client: AsgiClient, name: str) -> None:
    client.namespace(name, "in")
    path = f"/v1/namespaces/{quote(name, safe='')}%1Fin"
    assert client("GET", path).json["namespace"] == [name, "in"]
    client("POST", f"{path}/tables", {"name": name, "schema": {"type": "struct", "fields": []}})
    assert client("DELETE", path).status in {204, 409}


def test_namespace_says_where_its_new_tables_go(client: AsgiClient) -> None:
    made = client("POST", "/v1/namespaces", {"namespace": ["db", "a b"], "properties": {"location": ""}}).json
    home = made["properties"]["location"]
    client("POST", "/v1/namespaces/db%1Fa%20b/tables", {"name": "t", "schema": SCHEMA})
    assert client("GET", "/v1/namespaces/db%1Fa%20b/tables/t").json["metadata"]["location"] == f"{home}/t"
    client("POST", "/v1/namespaces/db%1Fa%20b/properties", {"updates": {"location": f"{home}/else"}})
    assert client("GET", "/v1/namespaces/db%1Fa%20b").json["properties"] == {"location": f"{home}/else"}


def test_properties_are_set_and_removed(client: AsgiClient) -> None:
    client("POST", "/v1/namespaces", {"namespace": ["db"], "properties": {"a": "1", "b": "2"}})
    response = client("POST", "/v1/namespaces/db/properties", {"removals": ["a", "x"], "updates": {"c": "3"}})
    assert response.json == {"updated": ["c"], "removed": ["a"], "missing": ["x"]}
    properties = client("GET", "/v1/namespaces/db").json["properties"]
    assert properties == {"b": "2", "c": "3", "location": properties["location"]}
    both = client("POST", "/v1/namespaces/db/properties", {"removals": ["a"], "updates": {"a": "3"}})
    assert both.error == (422, "UnprocessableEntityException")
    assert client("POST", "/v1/namespaces/no/properties", {"updates": {"c": "3"}}).status == 404


def test_level_with_a_dot_is_refused_with_the_reason(client: AsgiClient) -> None:
    response = client("POST", "/v1/namespaces", {"namespace": ["db", "a.b"]})
    assert response.status == 400
    assert "without dots, found `a.b`" in response.message
    assert "levels joined by dots, a layout that they share with Java and PyIceberg" in response.message
    assert client("GET", "/v1/namespaces").json["namespaces"] == []


@pytest.mark.parametrize("level", ["a\x1fb", "\x1f"])
def test_level_that_no_address_could_name_is_refused(client: AsgiClient, level: str) -> None:
    assert client("POST", "/v1/namespaces", {"namespace": [level]}).status == 400
    assert client("GET", "/v1/namespaces").json["namespaces"] == []
