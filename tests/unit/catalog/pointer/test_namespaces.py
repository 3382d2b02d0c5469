"""Namespaces of a pointer catalog."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import LoadedTable
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import CommitUnknownError, NotFoundError, RefusedError
from bergline.io.schemes import SchemeFileIO
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.rows import ORDERS


def faulty_catalog(path: Path, *faults: Fault) -> tuple[PointerCatalog, LoadedTable, FaultyStore]:
    """A catalog with a table, whose next swaps go wrong."""
    store = MemoryPointerStore()
    table = _table(Lake(PointerCatalog(store, SchemeFileIO(), f"file://{path}"), "lake"))
    faulty = FaultyStore(store, *faults)
    catalog = PointerCatalog(faulty, SchemeFileIO(), f"file://{path}", sleep=lambda _: None)
    return catalog, catalog.load_table(table.name), faulty


def _table(lake: Lake) -> Table:
    lake.create_namespace("db")
    return lake.create_table("db.orders", ORDERS)


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES])
def test_lost_answer_to_a_change_of_a_namespace_is_settled(tmp_path: Path, fault: Fault) -> None:
    catalog, _, store = faulty_catalog(tmp_path)
    lake = Lake(catalog, "lake")
    store.namespaces.meet(fault)
    lake.create_namespace("sales", {"owner": "us"})
    store.namespaces.meet(fault)
    lake.update_namespace("sales", {"owner": "them"})
    assert lake.namespace_properties("sales") == {"owner": "them"}
    store.namespaces.meet(fault)
    lake.drop_namespace("sales")
    assert lake.list_namespaces() == ["db"]


def test_change_of_a_namespace_on_a_store_that_is_gone_is_unknown(tmp_path: Path) -> None:
    catalog, _, store = faulty_catalog(tmp_path)
    store.namespaces.meet(Fault.STORE_GOES_AWAY)
    with pytest.raises(CommitUnknownError, match="whether namespace `sales` was created"):
        Lake(catalog, "lake").create_namespace("sales")


def test_missing_namespace_lists_near_names(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="no namespace `dbx`") as caught:
        lake.create_table("dbx.orders", ORDERS)
    assert caught.value.near == ("db",)


def test_namespace_with_tables_is_not_dropped(lake: Lake, orders: Table) -> None:
    with pytest.raises(RefusedError, match="not empty"):
        lake.drop_namespace("db")
    lake.drop_table(orders.name)
    lake.drop_namespace("db")
    assert lake.list_namespaces() == []
