"""A server that answers as it is told, and a client of it that notes its waits instead of waiting."""

from collections.abc import Iterator

import pytest

from bergline.catalog.rest.client.rest_catalog import RestCatalog
from support.servers.scripted_rest_server import RestScript


@pytest.fixture
def server() -> Iterator[RestScript]:
    with RestScript() as script:
        yield script


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def catalog(server: RestScript, waits: list[float]) -> Iterator[RestCatalog]:
    opened = RestCatalog(server.uri, {}, sleep=waits.append)
    yield opened
    opened.close()
