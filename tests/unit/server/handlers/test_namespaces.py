"""Namespaces over the protocol."""

from urllib.parse import quote

import pytest
from asgi_client import SCHEMA, AsgiClient

AWKWARD = ["a b", "a+b", "ä€", "a%20b", "a/b", "x" * 200, "a?b", "#", "&=", "A"]


def test_namespace_is_created_loaded_and_dropped(ask: AsgiClient) -> None:
    made = ask("POST", "/v1/namespaces", {"namespace": ["db"], "properties": {"owner": "ann"}})
    assert made.json["namespace"] == ["db"]
    assert made.json["properties"]["owner"] == "ann"
    assert ask("GET", "/v1/namespaces/db").json == made.json
    assert ask("HEAD", "/v1/namespaces/db").status == 204
    dropped = ask("DELETE", "/v1/namespaces/db")
    assert (dropped.status, dropped.body) == (204, b"")
    assert ask("HEAD", "/v1/namespaces/db").status == 404
    assert ask("GET", "/v1/namespaces/db").error == (404, "NoSuchNamespaceException")


def test_taken_and_filled_namespaces_are_refused(ask: AsgiClient) -> None:
    ask.namespace("db")
    assert ask("POST", "/v1/namespaces", {"namespace": ["db"]}).error == (409, "AlreadyExistsException")
    ask.table()
    assert ask("DELETE", "/v1/namespaces/db").error == (409, "NamespaceNotEmptyException")
    assert ask("DELETE", "/v1/namespaces/other").error == (404, "NoSuchNamespaceException")


def test_list_shows_one_level(ask: AsgiClient) -> None:
    for levels in (["a"], ["a", "b"], ["a", "b", "c"], ["z"]):
        ask.namespace(*levels)
    assert ask("GET", "/v1/namespaces").json == {"namespaces": [["a"], ["z"]], "next-page-token": None}
    assert ask("GET", "/v1/namespaces", query={"parent": "a\x1fb"}).json["namespaces"] == [["a", "b", "c"]]
    assert ask("GET", "/v1/namespaces", query={"parent": "no"}).error == (404, "NoSuchNamespaceException")
    assert ask("GET", "/v1/namespaces/a%1Fb%1fc").status == 200


@pytest.mark.parametrize("name", AWKWARD)
def test_any_name_is_found_by_its_encoded_path(ask: AsgiClient, name: str) -> None:
    ask.namespace(name, "in")
    path = f"/v1/namespaces/{quote(name, safe='')}%1Fin"
    assert ask("GET", path).json["namespace"] == [name, "in"]
    ask("POST", f"{path}/tables", {"name": name, "schema": {"type": "struct", "fields": []}})
    assert ask("DELETE", path).status in {204, 409}


def test_pages_cover_everything_once(ask: AsgiClient) -> None:
    names = [f"n{i}" for i in range(7)]
    for name in names:
        ask.namespace(name)
    seen: list[str] = []
    token = ""
    while token is not None:
        page = ask("GET", "/v1/namespaces", query={"pageToken": token, "pageSize": "3"}).json
        assert len(page["namespaces"]) <= 3
        seen += [n for (n,) in page["namespaces"]]
        token = page["next-page-token"]
    assert seen == names


@pytest.mark.parametrize("query", [{"pageSize": "0"}, {"pageSize": "x"}, {"pageToken": "§"}, {"pageToken": "!"}])
def test_bad_pages_are_refused(ask: AsgiClient, query: dict[str, str]) -> None:
    assert ask("GET", "/v1/namespaces", query=query).status == 400


def test_namespace_says_where_its_new_tables_go(ask: AsgiClient) -> None:
    made = ask("POST", "/v1/namespaces", {"namespace": ["db", "a b"], "properties": {"location": ""}}).json
    home = made["properties"]["location"]
    ask("POST", "/v1/namespaces/db%1Fa%20b/tables", {"name": "t", "schema": SCHEMA})
    assert ask("GET", "/v1/namespaces/db%1Fa%20b/tables/t").json["metadata"]["location"] == f"{home}/t"
    ask("POST", "/v1/namespaces/db%1Fa%20b/properties", {"updates": {"location": f"{home}/else"}})
    assert ask("GET", "/v1/namespaces/db%1Fa%20b").json["properties"] == {"location": f"{home}/else"}


def test_properties_are_set_and_removed(ask: AsgiClient) -> None:
    ask("POST", "/v1/namespaces", {"namespace": ["db"], "properties": {"a": "1", "b": "2"}})
    told = ask("POST", "/v1/namespaces/db/properties", {"removals": ["a", "x"], "updates": {"c": "3"}})
    assert told.json == {"updated": ["c"], "removed": ["a"], "missing": ["x"]}
    properties = ask("GET", "/v1/namespaces/db").json["properties"]
    assert properties == {"b": "2", "c": "3", "location": properties["location"]}
    both = ask("POST", "/v1/namespaces/db/properties", {"removals": ["a"], "updates": {"a": "3"}})
    assert both.error == (422, "UnprocessableEntityException")
    assert ask("POST", "/v1/namespaces/no/properties", {"updates": {"c": "3"}}).status == 404


def test_level_with_a_dot_is_refused_with_the_reason(ask: AsgiClient) -> None:
    told = ask("POST", "/v1/namespaces", {"namespace": ["db", "a.b"]})
    assert told.status == 400
    assert "without dots, found `a.b`" in told.message
    assert "levels joined by dots, a layout that they share with Java and PyIceberg" in told.message
    assert ask("GET", "/v1/namespaces").json["namespaces"] == []


@pytest.mark.parametrize("level", ["a\x1fb", "\x1f"])
def test_level_that_no_address_could_name_is_refused(ask: AsgiClient, level: str) -> None:
    assert ask("POST", "/v1/namespaces", {"namespace": [level]}).status == 400
    assert ask("GET", "/v1/namespaces").json["namespaces"] == []
