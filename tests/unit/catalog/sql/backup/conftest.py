"""Databases of several kinds, each of its own."""

from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import sqlalchemy as sa

from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from support.fixtures.catalog_files import new_catalog_file

OpenStore = Callable[..., SqlPointerStore]


@pytest.fixture
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens a store in a new database of a kind; its catalog has the name `lake`, or another."""
    stores: list[SqlPointerStore] = []
    databases: list[str] = []

    def make(kind: str, catalog_name: str = "lake") -> SqlPointerStore:
        if kind == "sqlite":
            stores.append(
                SqlitePointerStore(str(new_catalog_file(tmp_path / f"{uuid4().hex}.db")), catalog_name=catalog_name)
            )
        else:
            databases.append(f"d{uuid4().hex}")
            run(f"CREATE DATABASE {databases[-1]}")
            url = server().set(drivername="postgresql", database=databases[-1]).render_as_string(hide_password=False)
            stores.append(PostgresPointerStore(url, catalog_name=catalog_name))
        return stores[-1]

    def server() -> sa.URL:
        return sa.make_url(request.getfixturevalue("postgres")).set(drivername="postgresql+psycopg")

    def run(statement: str) -> None:
        engine = sa.create_engine(server(), poolclass=sa.NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql(statement)

    yield make
    for store in stores:
        store.close()
    for name in databases:
        run(f"DROP DATABASE {name} WITH (FORCE)")
