"""The event log, as a lake offers it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import bergline
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.server.context.context import ServerContext
from bergline.server.http.settings import ServerSettings
from bergline.server.opening import open_server
from support.fixtures.catalog_files import new_catalog_uri
from support.servers.asgi_client import AsgiClient, set_property
from support.servers.server_on_socket import on_socket

pytestmark = pytest.mark.long


@pytest.fixture
def context(tmp_path: Path) -> Iterator[ServerContext]:
    """A server with four events."""
    limits = ServerSettings(webhook_allow=("127.0.0.1",))
    opened = open_server(new_catalog_uri(tmp_path / "catalog.db"), limits=limits)
    with AsgiClient(opened) as client:
        client.namespace("db")
        client.table()
        client.commit(set_property("a", "b"))
        client.table("others")
    yield opened
    opened.catalog.close()


@pytest.fixture
def server(context: ServerContext) -> Iterator[str]:
    with on_socket(context) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("of", ["server", "database"])
def test_events_are_followed_until_they_are_no_longer_kept(
    server: str, context: ServerContext, tmp_path: Path, of: str
) -> None:
    at = server if of == "server" else f"sqlite:///{tmp_path}/catalog.db"
    with bergline.connect(server) as writer, bergline.connect(at) as lake:
        following = lake.events(3, follow=True)
        assert next(following).subject == "table/db/others"
        writer.create_namespace("more")
        event = next(following)
        assert (event.position, event.type, event.data) == (5, "namespace.create", {"namespace": "more"})
        context.events.prune(2**60)
        with pytest.raises(NotFoundError, match="the oldest is at 6"):
            next(lake.events(1))
        for wrong in (-1, True, "5"):
            with pytest.raises(InvalidInputError, match="expected a position"):
                lake.events(wrong)


def test_database_without_a_log_says_so() -> None:
    with bergline.connect("memory:") as lake, pytest.raises(UnsupportedError, match="has no event log"):
        lake.events()
