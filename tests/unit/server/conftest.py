"""A server in this process, and small things to ask of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from asked import Asking

from bergline.server.handlers.context import Served
from bergline.server.opening import open_served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A catalog in SQLite, behind its fence."""
    opened = open_served(f"sqlite:///{tmp_path}/lake/catalog.db")
    yield opened
    opened.catalog.close()


@pytest.fixture
def ask(served: Served) -> Iterator[Asking]:
    """The server's answers."""
    with Asking(served) as asking:
        yield asking
