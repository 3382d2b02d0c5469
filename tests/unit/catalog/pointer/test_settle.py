"""Swaps whose responses were lost."""

from collections.abc import Callable
from pathlib import Path

import pytest

from bergline import Lake, Table
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.format.metadata.updates import SetProperties
from bergline.io.schemes import SchemeFileIO
from bergline.testing.catalog_suite import append
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


@pytest.mark.parametrize(
    "faults",
    [
        (Fault.LANDS_BUT_ANSWER_IS_LOST,),
        (Fault.NEVER_ARRIVES,),
        (Fault.NEVER_ARRIVES, Fault.NEVER_ARRIVES),
        (Fault.NEVER_ARRIVES, Fault.LANDS_BUT_ANSWER_IS_LOST),
        (Fault.NEVER_ARRIVES, Fault.REFUSED_AS_LOCKED),
    ],
)
def test_lost_answer_is_settled_as_committed(tmp_path: Path, faults: tuple[Fault, ...]) -> None:
    catalog, base, _ = faulty_catalog(tmp_path, *faults)
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Committed)
    assert catalog.load_table(base.name).metadata.properties["k"] == "v"


def test_lost_answer_of_a_swap_that_lost_is_conflicted(tmp_path: Path) -> None:
    catalog, base, faulty = faulty_catalog(tmp_path)
    rival = PointerCatalog(faulty._store, catalog.io, f"file://{tmp_path}")
    faulty._faults = [Fault.LANDS_BUT_ANSWER_IS_LOST]
    faulty._before_swap = lambda: rival.commit(change(base, "rival")) and None
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Conflicted)
    assert "k" not in catalog.load_table(base.name).metadata.properties
    assert metadata_files(tmp_path) == 2


def test_swap_that_is_refused_by_its_own_twin_is_committed(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path, Fault.DELIVERED_TWICE)
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Committed)
    assert catalog.load_table(base.name) == outcome.tables[0]


def test_swap_that_is_refused_by_its_own_twin_is_committed_though_others_moved_on_since(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    rival = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")

    def swap_twice(table: TableName, expected: str, new: str) -> bool:
        assert store._store.swap(table, expected, new)
        rival.commit(change(rival.load_table(table), "rival"))
        return store._store.swap(table, expected, new)

    store.swap = swap_twice  # type: ignore[method-assign]
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Committed)
    now = catalog.load_table(base.name).metadata
    assert {"k", "rival"} <= now.properties.keys()
    assert Path(now.metadata_log[-1].metadata_file.removeprefix("file://")).exists()


def test_refused_swap_whose_pointer_cannot_be_read_is_unknown_and_nothing_is_deleted(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)

    def swap_then_go(table: TableName, expected: str, new: str) -> bool:
        store._gone = True
        return store._store.swap(table, expected, new) and False

    store.swap = swap_then_go  # type: ignore[method-assign]
    assert isinstance(catalog.commit(change(base)), Unknown)
    store._gone = False
    assert "k" in catalog.load_table(base.name).metadata.properties


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("{")])
def test_refused_swap_whose_pointer_leads_nowhere_is_unknown_and_nothing_is_deleted(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    rival = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")

    def swap_twice(table: TableName, expected: str, new: str) -> bool:
        assert store._store.swap(table, expected, new)
        rival.commit(change(rival.load_table(table), "rival"))
        damage(Path(rival.pointer(table).removeprefix("file://")))
        return store._store.swap(table, expected, new)

    store.swap = swap_twice  # type: ignore[method-assign]
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Unknown)
    assert outcome.metadata_location
    assert Path(outcome.metadata_location.removeprefix("file://")).exists()  # what the table can be restored from


def test_lost_answer_is_committed_though_others_moved_on_since(tmp_path: Path) -> None:
    catalog, base, faulty = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)
    rival = PointerCatalog(faulty._store, catalog.io, f"file://{tmp_path}")

    def others_move_on(_: float) -> None:
        rival.commit(change(rival.load_table(base.name), "rival"))
        faulty._gone = False

    catalog._access.sleep = others_move_on
    assert isinstance(catalog.commit(change(base)), Committed)
    assert set(catalog.load_table(base.name).metadata.properties) >= {"k", "rival"}


@pytest.mark.parametrize("raises", [True, False])
def test_snapshot_that_a_twin_committed_is_answered_with_the_twins_file(tmp_path: Path, *, raises: bool) -> None:
    """Two servers were sent the same request: the file of the one that lost was never the table's."""
    catalog, base, store = faulty_catalog(tmp_path)
    twin = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")
    sent = (append(base),)
    landed: list[LoadedTable] = []

    def swap_of_the_twin(*_: str) -> bool:
        outcome = twin.commit(sent)
        assert isinstance(outcome, Committed)
        landed.extend(outcome.tables)
        if raises:
            raise OSError("no answer")
        return False

    store.swap = swap_of_the_twin  # type: ignore[method-assign, assignment]
    outcome = catalog.commit(sent)
    assert isinstance(outcome, Committed)
    assert outcome.tables == (*landed,)


def test_snapshot_that_a_twin_committed_is_unknown_if_the_tables_cannot_be_read(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    twin = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")
    sent, read, reads = (append(base), append(with_another_table(catalog))), store.read, []

    def swap_of_the_twin(*_: object) -> bool:
        assert isinstance(twin.commit(sent), Committed)
        reads.append(0)
        raise OSError("no answer")

    def read_once(table: TableName) -> str | None:
        if reads:
            reads[0] += 1
            if reads[0] > len(sent):
                raise OSError("gone")
        return read(table)

    store.swap_all, store.read = swap_of_the_twin, read_once  # type: ignore[method-assign, assignment]
    assert isinstance(catalog.commit(sent), Unknown)


def test_table_dropped_before_the_answer_is_unknown(tmp_path: Path) -> None:
    catalog, base, faulty = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)

    def dropped(_: float) -> None:
        faulty._store.drop(base.name)
        faulty._gone = False

    catalog._access.sleep = dropped
    assert isinstance(catalog.commit(change(base)), Unknown)


def test_history_that_no_longer_reaches_back_is_unknown(tmp_path: Path) -> None:
    catalog, base, faulty = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)
    rival = PointerCatalog(faulty._store, catalog.io, f"file://{tmp_path}")

    def many_move_on(_: float) -> None:
        for number in range(3):
            now = rival.load_table(base.name)
            rival.commit(change(now, f"r{number}") if number else _short_log(now))
        faulty._gone = False

    def _short_log(now: LoadedTable) -> tuple[TableChange, ...]:
        return (TableChange(now, (), (SetProperties({"write.metadata.previous-versions-max": "1"}),)),)

    catalog._access.sleep = many_move_on
    assert isinstance(catalog.commit(change(base)), Unknown)


def with_another_table(catalog: PointerCatalog) -> LoadedTable:
    return catalog.load_table(Lake(catalog, "lake").create_table("db.items", ORDERS).name)


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES, Fault.DELIVERED_TWICE])
def test_lost_answer_for_several_tables_is_settled(tmp_path: Path, fault: Fault) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    other = with_another_table(catalog)
    store._faults = [fault]
    outcome = catalog.commit(change(base) + change(other))
    assert isinstance(outcome, Committed)
    assert outcome.tables == (catalog.load_table(base.name), catalog.load_table(other.name))


def test_lost_answer_for_several_tables_of_which_one_moved_on_is_settled_as_lost(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    other = with_another_table(catalog)
    rival = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")
    store._faults = [Fault.NEVER_ARRIVES]
    store._before_swap = lambda: rival.commit(change(rival.load_table(other.name), "rival")) and None
    assert isinstance(catalog.commit(change(base) + change(other)), Conflicted)
    assert catalog.load_table(base.name) == base
    assert "k" not in catalog.load_table(other.name).metadata.properties
