"""Names that are created, renamed and dropped, whatever becomes of the responses."""

from pathlib import Path
from uuid import uuid4

import msgspec
import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import LoadedTable, TableChange
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import CommitUnknownError, StorageError
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


def test_refused_create_whose_pointer_leads_nowhere_is_unknown_and_nothing_is_deleted(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    rival = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")
    name = TableName(("db",), "items")
    written: list[str] = []

    def create_twice(table: TableName, pointer: str) -> bool:
        written.append(pointer)
        assert store._store.create(table, pointer)
        rival.commit(change(rival.load_table(table), "rival"))
        Path(rival.pointer(table).removeprefix("file://")).unlink()
        return store._store.create(table, pointer)

    store.create = create_twice  # type: ignore[method-assign]
    metadata = msgspec.structs.replace(base.metadata, location=f"file://{tmp_path}/items", table_uuid=str(uuid4()))
    with pytest.raises(CommitUnknownError):
        catalog.create_table(name, metadata)
    assert Path(written[0].removeprefix("file://")).exists()


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.DELIVERED_TWICE])
def test_lost_answer_of_a_create_is_settled(tmp_path: Path, fault: Fault) -> None:
    store = MemoryPointerStore()
    lake = Lake(
        PointerCatalog(FaultyStore(store, fault), SchemeFileIO(), f"file://{tmp_path}", sleep=lambda _: None), "lake"
    )
    table = _table(lake)
    assert store.read(table.name) == table.metadata_location


def test_table_that_was_purged_before_its_creator_heard_of_it_is_not_created_again(tmp_path: Path) -> None:
    store = MemoryPointerStore()
    other = Lake(PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}"), "lake")
    faulty = FaultyStore(store)

    def create_and_lose(table: TableName, pointer: str) -> bool:
        assert store.create(table, pointer)
        other.purge_table(table)
        raise StorageError("the answer was lost")

    faulty.create = create_and_lose  # type: ignore[method-assign]
    with pytest.raises(CommitUnknownError, match=r"whether table `db\.orders` was created"):
        _create_blind(faulty, tmp_path)
    assert other.list_tables("db") == []


def test_create_on_an_unreachable_store_is_unknown(tmp_path: Path) -> None:
    store = FaultyStore(MemoryPointerStore(), Fault.STORE_GOES_AWAY)
    with pytest.raises(CommitUnknownError):
        _create_blind(store, tmp_path)
    assert metadata_files(tmp_path) == 1


def _create_blind(store: FaultyStore, path: Path) -> None:
    _table(Lake(PointerCatalog(store, SchemeFileIO(), f"file://{path}", sleep=lambda _: None), "lake"))


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES])
def test_lost_answer_of_a_rename_or_drop_is_settled(tmp_path: Path, fault: Fault) -> None:
    catalog, base, store = faulty_catalog(tmp_path, fault)
    moved = TableName(("db",), "moved")
    catalog.rename_table(base.name, moved)
    assert catalog.list_tables(("db",)) == [moved]
    store._faults = [fault]
    catalog.drop_table(moved)
    assert catalog.list_tables(("db",)) == []


def test_rename_whose_late_twin_comes_first_is_done(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path, Fault.NEVER_ARRIVES)
    moved, rename = TableName(("db",), "moved"), store._pointers.rename

    def twin_comes_first(table: TableName, new: TableName) -> bool:
        rename(table, new)
        return rename(table, new)

    store._pointers.rename = twin_comes_first  # type: ignore[method-assign]
    catalog.rename_table(base.name, moved)
    assert catalog.list_tables(("db",)) == [moved]


def test_created_table_whose_answer_was_lost_is_ours_though_others_moved_on(tmp_path: Path) -> None:
    store = FaultyStore(MemoryPointerStore(), Fault.STORE_GOES_AWAY)
    other = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")

    def others_move_on(_: float) -> None:
        if store._gone:
            other.commit(change(other.load_table(TableName(("db",), "orders"))))
            store._gone = False

    table = _table(Lake(PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}", sleep=others_move_on), "lake"))
    assert table.refresh().properties["k"] == "v"
