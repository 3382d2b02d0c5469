"""A server in this process, and small things to ask of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from asgi_client import AsgiClient

from bergline.server.handlers.context import ServerContext
from bergline.server.opening import open_server


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A catalog in SQLite, behind its fence."""
    opened = open_server(f"sqlite:///{tmp_path}/lake/catalog.db")
    yield opened
    opened.catalog.close()


@pytest.fixture
def ask(context: ServerContext) -> Iterator[AsgiClient]:
    """The server's answers."""
    with AsgiClient(context) as asking:
        yield asking
