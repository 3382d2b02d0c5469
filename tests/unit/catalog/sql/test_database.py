"""The database of a SQL catalog: layout, transactions and notes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout_version import LAYOUT_VERSION
from bergline.catalog.sql.sqlite import SqliteDatabase, SqlitePointerStore
from bergline.errors import NotFoundError

ORDERS = TableName(("db",), "orders")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqlDatabase]:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    yield store.database
    store.close()


def test_missing_layout_is_created_only_on_request(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    path.touch()
    database = SqliteDatabase(str(path), 1.0)
    with pytest.raises(NotFoundError):
        database.open_layout(create=False)
    assert database.open_layout(create=True).version == LAYOUT_VERSION
    assert database.open_layout(create=False).version == LAYOUT_VERSION
    database.check_ready()
    database.close()


def test_change_that_fails_is_rolled_back(database: SqlDatabase) -> None:
    insert = sa.text("INSERT INTO iceberg_tables (catalog_name, table_namespace, table_name) VALUES ('c', 'a', 'b')")

    def fail() -> None:
        with database.changing() as connection:
            connection.execute(insert)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with database.reading() as connection:
        assert connection.execute(sa.text("SELECT count(*) FROM iceberg_tables")).scalar() == 0


def test_note_is_taken_in_the_transaction_of_the_change(tmp_path: Path) -> None:
    store = SqlitePointerStore(str(tmp_path / "c.db"))
    noted: list[Any] = []
    with store.database.before_commit(lambda _, changed: noted.append(changed)):
        store.create(ORDERS, "a")
        store.swap(ORDERS, "stale", "b")
    store.swap(ORDERS, "a", "b")
    assert noted == [((ORDERS, "a"),)]

    def refuse(*_: object) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError), store.database.before_commit(refuse):
        store.swap(ORDERS, "b", "c")
    assert store.read(ORDERS) == "b"
    store.close()
