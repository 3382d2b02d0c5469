"""Commits of a pointer catalog."""

from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import InvalidInputError, UnavailableError, UnsupportedError
from bergline.format.metadata.updates import SetProperties
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


def change(base: LoadedTable, key: str = "k") -> tuple[TableChange, ...]:
    return (TableChange(base, (), (SetProperties({key: "v"}),)),)


def metadata_files(path: Path) -> int:
    return len(list(path.rglob("*.metadata.json")))


def test_swap_that_answers_is_committed(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path)
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Committed)
    assert catalog.load_table(base.name) == outcome.tables[0]
    assert outcome.tables[0].metadata.metadata_log[-1].metadata_file == base.metadata_location


def test_moved_base_is_conflicted_and_leaves_no_file(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path)
    catalog.commit(change(base))
    files = metadata_files(tmp_path)
    assert isinstance(catalog.commit(change(base)), Conflicted)
    assert metadata_files(tmp_path) == files


def test_unreachable_store_is_unknown_and_nothing_is_deleted(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Unknown)
    assert catalog.io.exists(outcome.metadata_location)


def test_locked_store_raises_unavailable_and_leaves_no_file(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path, Fault.REFUSED_AS_LOCKED)
    with pytest.raises(UnavailableError):
        catalog.commit(change(base))
    assert catalog.load_table(base.name).metadata_location == base.metadata_location
    assert metadata_files(tmp_path) == 1


def test_several_tables_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    other = with_another_table(catalog)
    store.atomic_tables = False
    catalog = PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}")
    with pytest.raises(UnsupportedError, match="found 2"):
        catalog.commit(change(base) + change(other))
    with pytest.raises(InvalidInputError, match="each table once"):
        catalog.commit(change(base) * 2)
    with pytest.raises(InvalidInputError, match="each table once"):
        catalog.commit(())
    assert metadata_files(tmp_path) == 2


def with_another_table(catalog: PointerCatalog) -> LoadedTable:
    return catalog.load_table(Lake(catalog, "lake").create_table("db.items", ORDERS).name)


def test_several_tables_change_in_one_commit(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    other = with_another_table(catalog)
    outcome = catalog.commit(change(base) + change(other))
    assert isinstance(outcome, Committed)
    assert outcome.tables == (catalog.load_table(base.name), catalog.load_table(other.name))
    assert [t.metadata.properties["k"] for t in outcome.tables] == ["v", "v"]
    assert store.swaps == 1


def test_of_several_tables_one_that_moved_on_holds_all(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    other = with_another_table(catalog)
    store._before_swap = lambda: store._store.swap(other.name, other.metadata_location, "elsewhere") and None
    outcome = catalog.commit(change(base) + change(other))
    assert isinstance(outcome, Conflicted)
    assert "`db.items` moved on" in str(outcome.reason)
    assert catalog.load_table(base.name) == base
    assert metadata_files(tmp_path) == 2


def test_commit_under_way_ends_though_the_lake_is_closed(tmp_path: Path) -> None:
    _, base, _ = faulty_catalog(tmp_path)
    store = MemoryPointerStore()
    store.create(base.name, base.metadata_location)
    catalogs: list[PointerCatalog] = []

    def close_all() -> None:
        for opened in catalogs:
            opened.close()

    faulty = FaultyStore(store, Fault.LANDS_BUT_ANSWER_IS_LOST, before_swap=close_all)
    catalog = PointerCatalog(faulty, SchemeFileIO(), f"file://{tmp_path}", sleep=lambda _: None)
    catalogs.append(catalog)
    assert isinstance(catalog.commit(change(base)), Committed)
