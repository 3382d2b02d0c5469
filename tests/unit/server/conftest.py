"""A server in this process."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.server.access.authenticator import Authenticator
from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import SCHEMA, TOKEN, AsgiClient
from support.servers.glue_server import GlueServer
from support.servers.granted_server import GrantedServer


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A catalog in SQLite, behind its fence."""
    opened = open_server(new_catalog_uri(tmp_path / "lake/catalog.db"))
    yield opened
    opened.catalog.close()


@pytest.fixture
def client(context: ServerContext) -> Iterator[AsgiClient]:
    """A client of the server."""
    with AsgiClient(context) as asking:
        yield asking


@pytest.fixture
def guarded(context: ServerContext) -> ServerContext:
    """A server that needs a token; `old` has expired."""
    now = time.time_ns() // 1_000_000
    context.records.tokens.create("ann", TOKEN, now, None)
    context.records.tokens.create("old", "bl_old", now - 2, now - 1)
    context.authenticator = Authenticator(context.records)
    return context


@pytest.fixture
def sts(glue_server: GlueServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS STS, by moto."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", f"http://127.0.0.1:{glue_server.port}")


@pytest.fixture
def granted(context: ServerContext) -> Iterator[GrantedServer]:
    """A server with grants: `db.orders` of `root`, who administers the catalog, and callers without a grant."""
    server = GrantedServer(context, "ann", "bob")
    server("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    server("root", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    yield server
    server.client.application.close()
