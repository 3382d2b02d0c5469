"""Every store passes the same suite."""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.testing.pointer_store_suite import NestedNamespacesSuite, PointerStoreSuite, ViewPointersSuite

pytestmark = pytest.mark.long


class _Memory:
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self._opened = MemoryPointerStore()

    def make_store(self) -> PointerStore:
        return self._opened


class _Sqlite:
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> None:
        self._database = str(tmp_path / "catalog.db")

    def make_store(self) -> PointerStore:
        return SqlitePointerStore(self._database)


class _Postgres:
    @pytest.fixture(autouse=True)
    def _catalog(self, postgres: str) -> Iterator[None]:
        self._uri, self._name = postgres, uuid4().hex
        self._stores: list[PointerStore] = []
        yield
        for store in self._stores:
            store.close()

    def make_store(self) -> PointerStore:
        self._stores.append(PostgresPointerStore(self._uri, catalog_name=self._name))
        return self._stores[-1]


class TestMemoryPointerStore(_Memory, PointerStoreSuite): ...


class TestSqlitePointerStore(_Sqlite, PointerStoreSuite): ...


class TestPostgresPointerStore(_Postgres, PointerStoreSuite): ...


class TestMemoryViews(_Memory, ViewPointersSuite): ...


class TestSqliteViews(_Sqlite, ViewPointersSuite): ...


class TestPostgresViews(_Postgres, ViewPointersSuite): ...


class TestMemoryNestedNamespaces(_Memory, NestedNamespacesSuite): ...


class TestSqliteNestedNamespaces(_Sqlite, NestedNamespacesSuite): ...


class TestPostgresNestedNamespaces(_Postgres, NestedNamespacesSuite): ...
