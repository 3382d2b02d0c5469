"""Every store passes the same suite."""

from pathlib import Path

import pytest

from bergline.catalog.memory import MemoryPointerStore
from bergline.catalog.pointer_store import PointerStore
from bergline.catalog.sqlite import SqlitePointerStore
from bergline.testing.pointer_store_suite import PointerStoreSuite


class TestMemoryPointerStore(PointerStoreSuite):
    @pytest.fixture(autouse=True)
    def _store(self) -> None:
        self._opened = MemoryPointerStore()

    def make_store(self) -> PointerStore:
        return self._opened


class TestSqlitePointerStore(PointerStoreSuite):
    @pytest.fixture(autouse=True)
    def _path(self, tmp_path: Path) -> None:
        self._database = str(tmp_path / "catalog.db")

    def make_store(self) -> PointerStore:
        return SqlitePointerStore(self._database)
