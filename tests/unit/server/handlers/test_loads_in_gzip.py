"""Loads in gzip, over a real socket."""

import gzip
import http.client
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.server.cache import response_cache
from bergline.server.cache.response_cache import CompressedPrefix, compress_prefix
from bergline.server.context.context import ServerContext
from bergline.server.opening import VendingConfig, open_server
from support.servers.asgi_client import AsgiClient
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long

ORDERS = "/v1/namespaces/db/tables/orders"
GZIP = {"Accept-Encoding": "gzip, x-gzip, deflate"}
FAR = GZIP | {"X-Forwarded-For": "192.0.2.7"}


class Loaded:
    """An answer as it came."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.names = [name for name, _ in response.getheaders()]
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def is_gzip(self) -> bool:
        return self.headers.get("content-encoding") == "gzip"


@pytest.fixture
def port(context: ServerContext, client: AsgiClient) -> Iterator[int]:
    client.namespace("db")
    client.table(properties={f"key{number}": "some text" for number in range(400)})
    with on_socket(context) as found:
        yield found


def load(port: int, path: str = ORDERS, **headers: str) -> Loaded:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        return Loaded(connection.getresponse())
    finally:
        connection.close()


def test_those_who_take_gzip_get_it_and_the_same(port: int) -> None:
    plain = load(port)
    assert not plain.is_gzip
    packed = load(port, **FAR)
    assert packed.is_gzip
    assert gzip.decompress(packed.body) == plain.body
    assert len(packed.body) < len(plain.body) / 4
    assert packed.headers["content-length"] == str(len(packed.body))
    for loaded in (plain, packed):
        assert loaded.headers["vary"] == "Accept-Encoding"
        assert loaded.headers["content-type"] == "application/json"
    for no in ("identity", "gzip;q=0", "deflate"):
        assert load(port, **{**FAR, "Accept-Encoding": no}).body == plain.body


def test_clients_on_the_same_machine_get_the_bytes_as_they_are(port: int) -> None:
    assert [load(port, **headers).is_gzip for headers in (GZIP, FAR, GZIP)] == [False, True, False]


def test_all_encodings_have_one_weak_tag_which_each_matches(port: int) -> None:
    tags = {load(port, **headers).headers["etag"] for headers in ({}, GZIP, FAR, {})}
    assert len(tags) == 1
    (tag,) = tags
    assert tag.startswith('W/"')
    for headers in ({}, FAR):
        for text in (tag, tag.removeprefix("W/"), f'"other", {tag}'):
            same = load(port, **{**headers, "If-None-Match": text})
            assert (same.status, same.body, same.headers["etag"]) == (304, b"", tag)
            assert same.headers["vary"] == "Accept-Encoding"
            assert "content-encoding" not in same.headers


def test_java_1_11_finds_the_tag(port: int) -> None:
    assert "ETag" in load(port).names  # it looks for these letters alone


def test_small_tables_come_as_they_are(port: int, client: AsgiClient) -> None:
    client.table("small")
    path = "/v1/namespaces/db/tables/small"
    for _ in range(2):
        small = load(port, path, **FAR)
        assert not small.is_gzip
        assert json.loads(small.body)["metadata"]["location"].endswith("small")


def test_snapshots_of_refs_alone_have_a_form_of_their_own(port: int) -> None:
    refs = load(port, f"{ORDERS}?snapshots=refs", **FAR)
    assert refs.is_gzip
    assert refs.headers["etag"] != load(port).headers["etag"]


def test_large_views_come_in_gzip(port: int, client: AsgiClient) -> None:
    version = {
        "version-id": 1,
        "timestamp-ms": 1_800_000_000_000,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["db"],
        "representations": [{"type": "sql", "sql": "SELECT 1 AS id -- " + "x" * 9000, "dialect": "spark"}],
    }
    schema = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "type": "int", "required": False}]}
    body = {"name": "one", "schema": schema, "view-version": version, "properties": {}}
    assert client("POST", "/v1/namespaces/db/views", body).status == 200
    path = "/v1/namespaces/db/views/one"
    plain, packed = load(port, path), load(port, path, **FAR)
    assert packed.is_gzip
    assert gzip.decompress(packed.body) == plain.body
    assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"


def test_others_are_answered_while_an_answer_is_packed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slowly(data: bytes) -> CompressedPrefix:
        begun.set()
        assert go_on.wait(30)
        return compress_prefix(data)

    monkeypatch.setattr(response_cache, "compress_prefix", slowly)
    load(port)
    told: list[Loaded] = []
    thread = threading.Thread(target=lambda: told.append(load(port, **FAR)))
    thread.start()
    assert begun.wait(30)
    assert load(port).status == load(port, "/health").status == 200
    go_on.set()
    thread.join(30)
    assert told[0].is_gzip


def test_keys_are_put_behind_the_packed_bytes(tmp_path: Path) -> None:
    properties = {"s3.access-key-id": "key", "s3.secret-access-key": "very secret", "s3.region": "eu-west-1"}
    context = open_server(f"sqlite:///{tmp_path}/lake/catalog.db", properties=properties, vend=VendingConfig())
    with AsgiClient(context) as client, on_socket(context) as port:
        client.namespace("db")
        client.table(properties={f"key{number}": "some text" for number in range(400)})
        keys = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        pointer = client("GET", ORDERS).json["metadata-location"]
        context.loads.directories(pointer, lambda: ("s3://bucket/orders",))
        plain, packed = load(port, **keys), load(port, **FAR, **keys)
        assert packed.is_gzip
        assert gzip.decompress(packed.body) == plain.body
        assert json.loads(plain.body)["storage-credentials"][0]["config"]["s3.secret-access-key"] == "very secret"
        assert b"very secret" not in gzip.decompress(load(port, **FAR).body)
    context.catalog.close()
