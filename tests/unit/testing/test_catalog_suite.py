"""The suite for catalogs, and the changes that it is made of."""

import pytest

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import ConflictError
from bergline.io.memory import MemoryFileIO
from bergline.testing.catalog_suite import added_id, append, committed, table_metadata

ORDERS = TableName(("db",), "orders")


@pytest.fixture
def loaded() -> LoadedTable:
    catalog = PointerCatalog(MemoryPointerStore(), MemoryFileIO(), "memory:/warehouse")
    catalog.create_namespace(("db",), {})
    return catalog.create_table(ORDERS, table_metadata("memory:/warehouse/db/orders"))


def test_change_adds_its_snapshot_once(loaded: LoadedTable) -> None:
    change = append(loaded)
    assert isinstance(change, TableChange)
    assert change.base is loaded
    assert added_id(change) != added_id(append(loaded))


def test_outcome_that_is_no_commit_fails_the_test(loaded: LoadedTable) -> None:
    assert committed(Committed((loaded,))) is loaded
    with pytest.raises(AssertionError):
        committed(Conflicted(ConflictError("another came first")))
