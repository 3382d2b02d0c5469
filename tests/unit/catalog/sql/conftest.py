"""Pointer stores in databases."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from support.fixtures.catalog_files import new_catalog_file


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.server)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlPointerStore]:
    """A catalog of its own in SQLite, and in PostgreSQL."""
    name = uuid4().hex
    opened: SqlPointerStore
    if request.param == "sqlite":
        opened = SqlitePointerStore(str(new_catalog_file(tmp_path / "c.db")), catalog_name=name)
    else:
        opened = PostgresPointerStore(request.getfixturevalue("postgres"), catalog_name=name)
    yield opened
    opened.close()
