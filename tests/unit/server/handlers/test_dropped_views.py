"""Views that are dropped into the trash, and come back."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from bergline.server.purge_job import PurgeJob
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import SCHEMA, AsgiClient

VIEW = "/v1/namespaces/db/views/v"
DROPPED = "/bergline/v1/dropped-views"
UNDROP = "/bergline/v1/namespaces/db/views/v/undrop"
KEY = {"Idempotency-Key": "0193f2a1-0000-7000-8000-000000000001"}


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server that keeps what is dropped for a day."""
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"), limits=ServerSettings(drop_retention_s=86_400))
    yield opened
    opened.catalog.close()


@pytest.fixture(autouse=True)
def _view(client: AsgiClient) -> None:
    client.namespace("db")
    create(client)


def create(client: AsgiClient) -> str:
    """Create the view; its UUID."""
    version: dict[str, Any] = {"version-id": 1, "timestamp-ms": 1, "schema-id": 0, "summary": {}}
    version |= {"default-namespace": ["db"]}
    version |= {"representations": [{"type": "sql", "sql": "select 1", "dialect": "spark"}]}
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    return str(client("POST", "/v1/namespaces/db/views", body).json["metadata"]["view-uuid"])


def test_dropped_view_comes_back(client: AsgiClient, context: ServerContext) -> None:
    before = client("GET", VIEW).json
    assert [client("DELETE", VIEW, headers=KEY).status for _ in range(2)] == [204, 204]
    assert client("GET", VIEW).status == 404
    (kept,) = client("GET", DROPPED).json["views"]
    assert kept["name"] == {"namespace": ["db"], "name": "v"}
    assert kept["metadata-location"] == before["metadata-location"]
    assert kept["keep-until-ms"] - kept["dropped-ms"] == 86_400_000
    assert client("POST", UNDROP, {}).json == before
    assert client("GET", VIEW).json == before
    assert client("GET", DROPPED).json["views"] == []
    operations = [(entry.operation, entry.resource) for entry in context.records.newest_audit(2)]
    assert operations == [("undrop_view", "view/db/v"), ("drop_view", "view/db/v")]


def test_view_comes_back_under_another_name_where_its_own_is_taken(client: AsgiClient) -> None:
    first = client("GET", VIEW).json["metadata"]["view-uuid"]
    client("DELETE", VIEW)
    create(client)
    assert client("POST", UNDROP, {}).error == (409, "AlreadyExistsException")
    other = client("POST", UNDROP, {"destination": {"namespace": ["db"], "name": "old"}})
    assert other.json["metadata"]["view-uuid"] == first


def test_pages_come_to_an_end(client: AsgiClient) -> None:
    client("DELETE", VIEW)
    for _ in range(2):
        create(client)
        client("DELETE", VIEW)
    everything = client("GET", DROPPED).json["views"]
    found, token = [], ""
    for _ in range(3):
        page = client("GET", DROPPED, query={"pageSize": "1", "pageToken": token}).json
        found += page["views"]
        token = page["next-page-token"]
    assert (found, token) == (everything, None)
    for wrong in ("x", "YQBi"):  # no token, and one of texts
        assert client("GET", DROPPED, query={"pageToken": wrong}).status == 400


def test_view_that_was_never_dropped_is_404_with_those_that_were(client: AsgiClient) -> None:
    client("DELETE", VIEW)
    missing = client("POST", UNDROP.replace("/v/", "/w/"), {})
    assert missing.status == 404
    assert "dropped: `db.v`" in missing.message


def test_view_whose_time_is_over_leaves_the_trash(client: AsgiClient, context: ServerContext) -> None:
    client("DELETE", VIEW)
    (kept,) = context.catalog.dropped_views()
    assert not PurgeJob(context, lambda: kept.keep_until_ms - 1).run_once()
    assert context.catalog.dropped_views() == [kept]
    assert not PurgeJob(context, lambda: kept.keep_until_ms).run_once()
    assert context.catalog.dropped_views() == []
    assert context.catalog.io.exists(kept.metadata_location)


def test_server_without_a_bin_keeps_no_views(tmp_path: Path) -> None:
    plain = open_server(new_catalog_uri(tmp_path / "plain/catalog.db"))
    with AsgiClient(plain) as client:
        client.namespace("db")
        create(client)
        client("DELETE", VIEW)
        assert client("GET", DROPPED).json["views"] == []
    plain.catalog.close()
