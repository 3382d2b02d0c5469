"""A server with grants."""

from collections.abc import Iterator

import pytest
from asgi_client import SCHEMA
from granted_server import GrantedServer

from bergline.server.handlers.context import ServerContext


@pytest.fixture
def granted(context: ServerContext) -> Iterator[GrantedServer]:
    """A server with `db.orders` of `root`, and callers without a grant."""
    server = GrantedServer(context, "ann", "bob")
    server("root", "POST", "/v1/namespaces", {"namespace": ["db"]})
    server("root", "POST", "/v1/namespaces/db/tables", {"name": "orders", "schema": SCHEMA})
    yield server
    server.client.application.close()
