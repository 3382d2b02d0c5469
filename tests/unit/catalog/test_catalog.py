"""The catalogs that need no server, by the suite that all catalogs keep."""

from pathlib import Path

import pytest

from bergline.catalog.catalog import Catalog
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.io.memory import MemoryFileIO
from bergline.lake.opening import CatalogConfig, open_catalog
from bergline.testing.catalog_suite import CatalogViewsSuite


class TestCatalogInMemory(CatalogViewsSuite):
    @pytest.fixture
    def place(self) -> None:
        self._store, self._io = MemoryPointerStore(), MemoryFileIO()

    def make_catalog(self) -> Catalog:
        return PointerCatalog(self._store, self._io, "memory://warehouse")


class TestSqliteCatalog(CatalogViewsSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> None:
        self._uri = f"sqlite:///{tmp_path}/catalog.db"

    def make_catalog(self) -> Catalog:
        return open_catalog(CatalogConfig(self._uri, None, "lake", {}, 10, create=True))
