"""The three outcomes of a commit, whatever happens to the swap's answer."""

from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Committed, LoadedTable, TableChange
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import InvalidInputError
from bergline.format.metadata.updates import SetProperties
from bergline.io.schemes import SchemeFileIO
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.rows import ORDERS, order_rows


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


def change(base: LoadedTable, key: str = "k") -> tuple[TableChange, ...]:
    return (TableChange(base, (), (SetProperties({key: "v"}),)),)


@pytest.mark.parametrize("uri", ["memory:", "sqlite:///{path}/closed.db"])
def test_closed_lake_refuses_calls(tmp_path: Path, uri: str) -> None:
    lake = bergline.connect(uri.format(path=tmp_path), create=True)
    lake.create_namespace("db")
    table = lake.create_table("db.t", ORDERS).append(order_rows(1))
    lake.close()
    lake.close()
    calls = (
        lambda: lake.load_table("db.t"),
        lake.list_namespaces,
        lambda: lake.create_table("db.u", ORDERS),
        lambda: lake.drop_table("db.t"),
        table.refresh,
        lambda: table.append(order_rows(2)),
    )
    for call in calls:
        with pytest.raises(InvalidInputError, match="expected an open lake, found one that was closed"):
            call()
    assert table.scan().to_arrow()["id"].to_pylist() == [1]


def test_bad_status_check_settings_of_others_do_not_hide_what_happened(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    bad = SetProperties({"commit.status-check.num-retries": "many"})
    outcome = catalog.commit((TableChange(base, (), (bad,)),))
    assert isinstance(outcome, Committed)
    store._faults = [Fault.LANDS_BUT_ANSWER_IS_LOST]
    assert isinstance(catalog.commit(change(outcome.tables[0])), Committed)
