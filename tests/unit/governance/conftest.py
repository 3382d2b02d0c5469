"""A server in this process, which keeps what governance is about."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bergline.server.context.context import ServerContext
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient


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
