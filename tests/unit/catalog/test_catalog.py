"""The catalogs that need no server, by the suite that all catalogs keep."""

from pathlib import Path

import msgspec
import pytest

from bergline.catalog.catalog import Catalog, check_changed_tables, shows_all_since
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.memory import MemoryFileIO
from bergline.lake.opening import CatalogConfig, open_catalog
from bergline.testing.catalog_suite import CatalogViewsSuite
from support.fixtures.catalog_files import new_catalog_uri


class TestCatalogInMemory(CatalogViewsSuite):
    @pytest.fixture
    def place(self) -> None:
        self._store, self._io = MemoryPointerStore(), MemoryFileIO()

    def make_catalog(self) -> Catalog:
        return PointerCatalog(self._store, self._io, "memory://warehouse")


class TestSqliteCatalog(CatalogViewsSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> None:
        self._uri = new_catalog_uri(tmp_path / "catalog.db")

    def make_catalog(self) -> Catalog:
        return open_catalog(CatalogConfig(self._uri, None, "lake", {}, 10, create=True))


def test_commit_names_each_table_once() -> None:
    one, other = TableName(("db",), "a"), TableName(("db",), "b")
    check_changed_tables([one], "the store", atomic=False)
    check_changed_tables([one, other], "the store", atomic=True)
    for names in ([], [one, one]):
        with pytest.raises(InvalidInputError, match="each table once"):
            check_changed_tables(names, "the store", atomic=True)
    with pytest.raises(UnsupportedError, match="found 2: the store moves one at a time"):
        check_changed_tables([one, other], "the store", atomic=False)


def test_snapshots_that_were_expired_hide_what_came_since(metadata: TableMetadata) -> None:
    fewer = msgspec.structs.replace(metadata, snapshots=metadata.snapshots[1:])
    assert shows_all_since(metadata, metadata)
    assert shows_all_since(fewer, metadata)
    numbers = [s.sequence_number for s in metadata.snapshots]
    grown = msgspec.structs.replace(metadata, last_sequence_number=max(numbers) + 2)
    assert not shows_all_since(metadata, grown)
