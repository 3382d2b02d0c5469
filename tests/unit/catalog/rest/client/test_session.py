"""A session with a server: its configuration, and names as it encodes them."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.errors import (
    AuthenticationError,
    BerglineError,
    FormatError,
    NotFoundError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from support.servers.scripted_rest_server import Reply, RestScript, refused

pytestmark = pytest.mark.long


ORDERS = TableName(("db",), "orders")


def test_configuration_is_asked_for_the_warehouse_and_counts() -> None:
    config = {"defaults": {"prefix": "low", "rest-page-size": "7", "nobody": "knows"}, "overrides": {"prefix": "top"}}
    with RestScript(**config) as server:
        catalog = RestCatalog(f"{server.uri}/v1/", {"prefix": "mine", "rest-page-size": "9"}, "wh")
        server.on("GET /v1/top/namespaces/db/tables", Reply(body={"identifiers": []}))
        assert catalog.list_tables(("db",)) == []
        assert server.requests[0].query == {"warehouse": "wh"}
        assert server.requests[1].query == {"pageSize": "9", "pageToken": ""}
        catalog.close()


def test_configuration_may_hold_nulls() -> None:
    with RestScript(defaults=None, overrides={"a": None, "b": 7}, endpoints=None) as server:
        catalog = RestCatalog(server.uri, {})
        assert catalog.atomic_tables
        with pytest.raises(UnsupportedError, match=r"GET /v1/\{prefix\}/namespaces/\{namespace\}/views"):
            catalog.load_view(ORDERS)
        catalog.close()
        told = RestCatalog(server.uri, {"view-endpoints-supported": "true"})
        with pytest.raises(NotFoundError):
            told.load_view(ORDERS)
        told.close()


@pytest.mark.parametrize(
    ("reply", "error", "text", "hint"),
    [
        (
            Reply(body=b"<html>hello"),
            FormatError,
            "the server's response for the catalog's configuration",
            "before /v1",
        ),
        (Reply(body=[]), FormatError, "expected `object`", "before /v1"),
        (Reply(404, b"<html>"), NotFoundError, "no Iceberg REST catalog at http://127.0.0.1.*: status 404", "/v1"),
        (refused(404, "NoSuchWarehouseException", "no warehouse wh"), NotFoundError, "^no warehouse wh$", ""),
        (refused(401, "NotAuthorizedException", "who are you"), AuthenticationError, "who are you", "`token`"),
        (Reply(500, b"oops"), StorageError, "status 500", ""),
        (Reply(200, b"x" * 100, cut=True), UnavailableError, "no response", ""),
        (Reply(301, headers={"Location": "https://elsewhere"}), StorageError, "status 301", "there: https://elsewhere"),
    ],
)
def test_server_that_is_none_is_said_at_once_with_what_to_do(
    server: RestScript, reply: Reply, error: type[BerglineError], text: str, hint: str
) -> None:
    server.on("GET /v1/config", reply)
    with pytest.raises(error, match=text) as caught:
        RestCatalog(server.uri, {}, sleep=lambda _: None)
    assert hint in " ".join(caught.value.hints)
    assert bool(hint) == bool(caught.value.hints)


def test_names_are_encoded_and_levels_joined_by_the_separator_of_the_server() -> None:
    with RestScript(overrides={"namespace-separator": "%2E"}) as server:
        catalog = RestCatalog(server.uri, {})
        for namespace, path in ((("a", "b c"), "a.b%20c"), (("a.b", "c"), "a.b%1Fc"), (("..",), "%2E%2E")):
            with pytest.raises(NotFoundError):
                catalog.load_table(TableName(namespace, "x/y%"))
            assert server.requests[-1].path == f"/v1/namespaces/{path}/tables/x%2Fy%25"
        catalog.close()


def test_lists_come_page_by_page_and_namespaces_level_by_level(server: RestScript, catalog: RestCatalog) -> None:
    server.on(
        "GET /v1/namespaces",
        Reply(body={"namespaces": [["a"]], "next-page-token": "2"}),
        Reply(body={"namespaces": [["b"]], "next-page-token": None}),
        Reply(body={"namespaces": []}),
        Reply(body={"namespaces": [["a", "x"]]}),
        Reply(body={"namespaces": []}),
    )
    assert catalog.list_namespaces() == [("a",), ("a", "x"), ("b",)]
    asked = [(r.query.get("parent"), r.query["pageToken"]) for r in server.requests[1:]]
    assert asked == [(None, ""), (None, "2"), ("b", ""), ("a", ""), ("a\x1fx", "")]


def test_pages_without_end_are_an_error(server: RestScript, catalog: RestCatalog) -> None:
    server.on("GET /v1/namespaces/db/tables", Reply(body={"identifiers": [], "next-page-token": "again"}))
    with pytest.raises(FormatError, match="pages that come to an end"):
        catalog.list_tables(("db",))
