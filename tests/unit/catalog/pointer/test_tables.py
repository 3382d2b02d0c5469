"""Tables of a pointer catalog by name."""

from pathlib import Path

import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import LoadedTable, TableChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import AlreadyExistsError, CommitUnknownError, ConflictError, NotFoundError
from bergline.format.metadata.updates import SetProperties
from bergline.io.schemes import SchemeFileIO
from bergline.testing.catalog_suite import table_metadata
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


def change(base: LoadedTable, key: str = "k") -> tuple[TableChange, ...]:
    return (TableChange(base, (), (SetProperties({key: "v"}),)),)


def test_create_of_an_existing_table_is_refused(lake: Lake, orders: Table) -> None:
    with pytest.raises(AlreadyExistsError, match=r"table `db\.orders` exists already"):
        lake.create_table("db.orders", orders.schema)


def test_missing_table_lists_near_names(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError, match=r"no table `db\.ordres`") as caught:
        lake.load_table("db.ordres")
    assert caught.value.near == (str(orders.name),)


def test_pointer_to_a_missing_file_says_so(lake: Lake, orders: Table) -> None:
    Path(orders.metadata_location.removeprefix("file://")).unlink()
    database = Path(orders.location.removeprefix("file://")).parents[2] / "catalog.db"
    message = r"table `db\.orders` points to .* which does not exist"
    with bergline.connect(f"sqlite:///{database}") as again, pytest.raises(NotFoundError, match=message):
        again.load_table("db.orders")


def test_unregistered_table_is_given_away_only_when_it_is_certain_that_we_took_it(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path, Fault.NEVER_ARRIVES)
    assert catalog.unregister_table(base.name) == base.metadata_location
    catalog.register_table(base.name, base.metadata_location)
    store._faults = [Fault.LANDS_BUT_ANSWER_IS_LOST]
    with pytest.raises(CommitUnknownError, match=r"whether table `db\.orders` was dropped"):
        catalog.unregister_table(base.name)


def test_drop_of_an_expected_pointer_that_moved_on_is_a_conflict(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path)
    catalog.commit(change(base))
    with pytest.raises(ConflictError, match=r"table `db\.orders` moved on"):
        catalog.drop_table(base.name, base.metadata_location)
    assert catalog.list_tables(("db",)) == [base.name]


def test_table_that_a_twin_created_is_answered_with_the_twins_file(tmp_path: Path) -> None:
    """Two servers were sent the same request, to create a table with content."""
    store = MemoryPointerStore()
    twin = PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}")
    twin.create_namespace(("db",), {})
    losing = FaultyStore(store)
    name = TableName(("db",), "orders")
    metadata = table_metadata(f"file://{tmp_path}/orders")

    def refused_for_the_twin(*_: str) -> bool:
        twin.create_table(name, metadata)
        return False

    losing.create = refused_for_the_twin  # type: ignore[method-assign, assignment]
    created = PointerCatalog(losing, twin.io, f"file://{tmp_path}").create_table(name, metadata)
    assert created == twin.load_table(name)
