"""What the client sends, and what it makes of answers."""

import gzip
import json
import pickle

import pytest
from scripted_rest_server import NO_ANSWER, Reply, RestScript, load_answer, refused

import bergline
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName
from bergline.catalog.rest.client.rest_catalog import RestCatalog
from bergline.catalog.rest.protocol.endpoints import ENDPOINTS
from bergline.errors import (
    AuthenticationError,
    BerglineError,
    CommitUnknownError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.io.object_store import ObjectStoreFileIO
from bergline.testing.catalog_suite import table_metadata

pytestmark = pytest.mark.long

ORDERS = TableName(("db",), "orders")
TABLE = "/v1/namespaces/db/tables/orders"
LOAD = f"GET {TABLE}"
SECRET = "s3cr3t-value"  # noqa: S105


def loaded(location: str = "file:///lake/orders", number: int = 0) -> LoadedTable:
    return LoadedTable(ORDERS, table_metadata(location), f"{location}/metadata/{number}.metadata.json")


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


def test_server_that_is_not_there_is_said_without_names_of_objects(server: RestScript) -> None:
    for uri, reason, hint in (
        ("http://127.0.0.1:9", "cannot reach http://127.0.0.1:9: connection refused", "is the server running"),
        (server.uri.replace("http:", "https:"), "SSL", "does not speak https"),
    ):
        with pytest.raises(UnavailableError, match=reason) as caught:
            RestCatalog(uri, {}, sleep=lambda _: None)
        assert "HTTP" not in str(caught.value)
        assert hint in caught.value.hints[0]


def test_table_that_did_not_change_is_not_sent_again(server: RestScript, catalog: RestCatalog) -> None:
    table = loaded()
    server.on(LOAD, Reply(body=load_answer(table), headers={"ETag": '"one"'}), Reply(304))
    first = catalog.load_table(ORDERS)
    assert catalog.load_table(ORDERS) is first
    assert [r.headers.get("If-None-Match") for r in server.sent(LOAD)] == [None, '"one"']


def test_metadata_that_is_known_is_not_parsed_again(server: RestScript, catalog: RestCatalog) -> None:
    server.on(LOAD, Reply(body=load_answer(loaded())))
    assert catalog.load_table(ORDERS).metadata is catalog.load_table(ORDERS).metadata
    server.on(LOAD, Reply(body=load_answer(loaded(number=1))))
    assert catalog.load_table(ORDERS).metadata_location.endswith("/1.metadata.json")


def test_compressed_answer_is_read(server: RestScript, catalog: RestCatalog) -> None:
    data = gzip.compress(json.dumps(load_answer(loaded())).encode())
    server.on(LOAD, Reply(body=data, headers={"Content-Encoding": "gzip"}))
    assert catalog.load_table(ORDERS).name == ORDERS


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"{}",
        b'{"metadata": {}}',
        b'{"metadata-location": "x", "metadata": {"format-version": 9}}',
        b"[" * 100_000,
        b'{"metadata": 1, "metadata-location": "\xff"}',
    ],
)
def test_answer_that_is_no_table_is_a_format_error(server: RestScript, catalog: RestCatalog, body: bytes) -> None:
    server.on(LOAD, Reply(body=body))
    with pytest.raises((FormatError, UnsupportedError)):
        catalog.load_table(ORDERS)


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


def test_server_without_head_is_asked_in_another_way() -> None:
    without = [str(e) for e in ENDPOINTS if e.method != "HEAD"]
    with RestScript(endpoints=without) as server:
        catalog = RestCatalog(server.uri, {})
        server.on("GET /v1/namespaces/db", Reply(body={"namespace": ["db"]}))
        assert catalog.namespace_exists(("db",))
        assert not catalog.namespace_exists(("other",))
        catalog.close()


@pytest.mark.parametrize(
    ("method", "path", "change", "look", "done"),
    [
        ("POST", "", "create", Reply(body={"namespace": ["db"], "properties": {"a": "1"}}), True),
        ("POST", "", "create", refused(404, "NoSuchNamespaceException"), False),
        ("POST", "", "create", Reply(body={"namespace": ["db"], "properties": {"a": "2"}}), False),
        ("DELETE", "/db", "drop", refused(404, "NoSuchNamespaceException"), True),
        ("DELETE", "/db", "drop", Reply(body={"namespace": ["db"]}), False),
        ("POST", "/db/properties", "update", Reply(body={"namespace": ["db"], "properties": {"a": "1"}}), True),
        ("POST", "/db/properties", "update", Reply(body={"namespace": ["db"], "properties": {"b": "1"}}), False),
    ],
)
def test_lost_answers_about_namespaces_are_settled_by_looking(
    server: RestScript, catalog: RestCatalog, method: str, path: str, change: str, look: Reply, *, done: bool
) -> None:
    server.on(f"{method} /v1/namespaces{path}", NO_ANSWER)
    server.on("GET /v1/namespaces/db", look)
    calls = {
        "create": lambda: catalog.create_namespace(("db",), {"a": "1"}),
        "drop": lambda: catalog.drop_namespace(("db",)),
        "update": lambda: catalog.update_namespace(("db",), {"a": "1"}, ("b",)),
    }
    if done:
        calls[change]()
    else:
        with pytest.raises(CommitUnknownError):
            calls[change]()
    assert len(server.sent(f"{method} /v1/namespaces{path}")) == 1


def test_page_that_was_not_found_is_no_table_that_was_not_found(server: RestScript, catalog: RestCatalog) -> None:
    server.on(LOAD, Reply(404, b"<html>default backend - 404</html>"))
    with pytest.raises(UnavailableError, match="without an error of the protocol") as caught:
        catalog.load_table(ORDERS)
    assert "a proxy in between" in caught.value.hints[0]


@pytest.mark.parametrize("answer", [Reply(200, b"<html>"), Reply(204), Reply(302), Reply(530), Reply(404, b"<html>")])
def test_answers_about_namespaces_that_are_not_of_the_protocol_are_settled_by_looking(
    server: RestScript, catalog: RestCatalog, answer: Reply
) -> None:
    here, gone = Reply(body={"namespace": ["db"], "properties": {"a": "1"}}), refused(404, "NoSuchNamespaceException")
    for address, look, change in (
        ("POST /v1/namespaces", here, lambda: catalog.create_namespace(("db",), {"a": "1"})),
        ("POST /v1/namespaces/db/properties", here, lambda: catalog.update_namespace(("db",), {"a": "1"}, ())),
        ("DELETE /v1/namespaces/db", gone, lambda: catalog.drop_namespace(("db",))),
    ):
        server.on(address, answer)
        server.on("GET /v1/namespaces/db", look)
        change()
        server.on("GET /v1/namespaces/db", gone if look is here else here)
        with pytest.raises((CommitUnknownError, NotFoundError)):
            change()


def test_closed_catalog_takes_no_calls(server: RestScript) -> None:
    catalog = RestCatalog(server.uri, {})
    catalog.close()
    with pytest.raises(UnavailableError, match="closed"):
        catalog.list_namespaces()


def test_headers_of_the_user_stand_in_every_request_and_files_come_with_credentials(server: RestScript) -> None:
    RestCatalog(server.uri, {"header.X-Team": "ours"}).close()
    assert server.requests[-1].headers["X-Team"] == "ours"
    assert server.requests[-1].headers["X-Iceberg-Access-Delegation"] == "vended-credentials"
    RestCatalog(server.uri, {"header.x-iceberg-access-delegation": "remote-signing"}).close()
    assert server.requests[-1].headers["x-iceberg-access-delegation"] == "remote-signing"


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"tokn": SECRET}, r"found `tokn`"),
        ({"token": 7}, "expected text for property `token`"),
        ({"token": "two\nlines"}, "printable ASCII characters in property `token`"),
        ({"header.Bad Name": "x"}, r"header in property `header\.Bad Name`"),
        ({"header.Name": "x\r\nY: z"}, r"header in property `header\.Name`"),
        ({"rest-page-size": "0"}, "from 1 to"),
        ({"rest.client.socket-timeout-ms": "long"}, "from 1 to"),
        ({"rest.auth.type": "magic"}, "none or basic or oauth2"),
        ({"prefix": "a?b"}, "part of a path"),
        ({"token-refresh-enabled": "maybe"}, "true or false"),
        ({"s3.endpont": "x"}, r"found `s3\.endpont`"),
    ],
)
def test_properties_that_mean_nothing_are_refused_and_secrets_not_shown(
    server: RestScript, properties: dict[str, str], text: str
) -> None:
    with pytest.raises(InvalidInputError, match=text) as caught:
        bergline.connect(server.uri, properties=properties)
    assert SECRET not in str(caught.value)
    assert not server.requests


@pytest.mark.parametrize("uri", ["http://", "https://user:pw@host", "http://host:99999", "http://host/a b"])
def test_bad_addresses_are_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError, match="expected an address like"):
        bergline.connect(uri)


def test_secrets_stand_in_no_error(server: RestScript) -> None:
    server.on("GET /v1/config", refused(403, "ForbiddenException", f"bad token {SECRET} and {SECRET}-header"))
    with pytest.raises(RefusedError, match="bad token … and …") as caught:
        RestCatalog(server.uri, {"token": SECRET, "header.X-Key": f"{SECRET}-header"})
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value)


def vended(key: str, **more: str) -> dict[str, str]:
    return {"s3.access-key-id": key, "s3.secret-access-key": "x", "s3.region": "r", **more}


def settings(catalog: RestCatalog, location: str) -> dict[str, str]:
    """The properties that count for a location."""
    storage = catalog._files.storage_for(location)
    assert isinstance(storage, ObjectStoreFileIO)
    return storage._properties


def test_files_use_what_the_server_hands_out_for_their_table(server: RestScript) -> None:
    catalog = RestCatalog(
        server.uri, {"s3.endpoint": "http://own:1", "s3.access-key-id": "a", "s3.secret-access-key": "b"}
    )
    credentials = [
        {"prefix": "s3", "config": vended("wide")},
        {"prefix": "s3://b/orders/data/", "config": vended("narrow")},
    ]
    answer = load_answer(
        loaded("s3://b/orders"), config={"s3.region": "table", "token": "none"}, **{"storage-credentials": credentials}
    )
    server.on(LOAD, Reply(body=answer))
    assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "a"
    catalog.load_table(ORDERS)
    assert settings(catalog, "s3://b/orders/metadata/x")["s3.access-key-id"] == "wide"
    assert settings(catalog, "s3://b/orders")["s3.access-key-id"] == "wide"  # the table's directory, to be listed
    assert settings(catalog, "s3a://b/orders/data/x")["s3.access-key-id"] == "narrow"
    assert settings(catalog, "s3://b/orders/data")["s3.access-key-id"] == "narrow"
    assert settings(catalog, "s3://b/orders/data/x")["s3.endpoint"] == "http://own:1"
    assert settings(catalog, "gs://b/other")["s3.access-key-id"] == "a"
    assert "token" not in settings(catalog, "s3://b/orders/x")
    assert catalog._files.storage_for("s3://b/orders/x") is catalog._files.storage_for("s3://b/orders/y")
    sent = pickle.loads(pickle.dumps(catalog.io))  # noqa: S301
    assert sent.storage_for("s3://b/orders/data/x")._properties["s3.access-key-id"] == "narrow"
    catalog.close()


def test_new_table_has_the_credentials_that_come_with_its_load(server: RestScript, catalog: RestCatalog) -> None:
    created = load_answer(loaded("s3://b/orders"))
    credentials = [{"prefix": "s3://b/orders", "config": vended("its")}]
    server.on(f"POST {TABLE}", Reply(body=created))
    server.on(LOAD, Reply(body={**created, "storage-credentials": credentials}))
    catalog.create_table(ORDERS, loaded("s3://b/orders").metadata)
    assert settings(catalog, "s3://b/orders/data/x")["s3.access-key-id"] == "its"


@pytest.mark.parametrize("has_endpoint", [True, False])
def test_credentials_that_expire_are_renewed(*, has_endpoint: bool) -> None:
    endpoints = [str(e) for e in ENDPOINTS if has_endpoint or e.name != "load_credentials"]
    clock = [1000.0]

    def answer(key: str, expires_s: int) -> dict[str, object]:
        config = vended(key, **{"s3.session-token": "t", "s3.session-token-expires-at-ms": str(expires_s * 1000)})
        return {"storage-credentials": [{"prefix": "s3://b", "config": config}]}

    with RestScript(endpoints=endpoints) as server:
        catalog = RestCatalog(server.uri, {}, clock_s=lambda: clock[0])
        table = load_answer(loaded("s3://b/orders"))
        server.on(LOAD, Reply(body={**table, **answer("old", 5000)}), Reply(body={**table, **answer("new", 9000)}))
        server.on(f"GET {TABLE}/credentials", Reply(body=answer("new", 9000)))
        catalog.load_table(ORDERS)
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "old"
        clock[0] = 4800
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "new"
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "new"
        assert len(server.sent(f"GET {TABLE}/credentials")) == has_endpoint
        server.on(f"GET {TABLE}/credentials", Reply(403))
        server.on(LOAD, Reply(403))
        clock[0] = 8900
        assert settings(catalog, "s3://b/orders/x")["s3.access-key-id"] == "new"
        catalog.close()


def test_clock_that_is_fast_does_not_make_every_file_ask_for_credentials() -> None:
    """Credentials for a quarter of an hour, as a machine sees them whose clock is ahead by an hour."""
    clock = [3600.0]

    def answer(key: str) -> dict[str, object]:
        config = vended(key, **{"s3.session-token": "t", "s3.session-token-expires-at-ms": "900000"})
        return {"storage-credentials": [{"prefix": "s3://b", "config": config}]}

    with RestScript() as server:
        catalog = RestCatalog(server.uri, {}, clock_s=lambda: clock[0])
        table = load_answer(loaded("s3://b/orders"), config={"s3.endpoint": "http://table:1", "s3.session-token": "o"})
        server.on(LOAD, Reply(body={**table, **answer("old")}))
        renewals = f"GET {TABLE}/credentials"
        server.on(renewals, Reply(body=answer("new")), Reply(503))
        catalog.load_table(ORDERS)
        for number in range(100):
            found = settings(catalog, f"s3://b/orders/{number}")
            assert (found["s3.access-key-id"], found["s3.endpoint"]) == ("new", "http://table:1")
        assert len(server.sent(renewals)) == 1
        assert "s3.session-token" not in settings(catalog, "s3://c/other")
        clock[0] += 31
        for number in range(100):
            assert settings(catalog, f"s3://b/orders/{number}")["s3.access-key-id"] == "new"
        assert len(server.sent(renewals)) == 5  # one more, which is tried four times
        catalog.close()
