"""The three outcomes of a commit, whatever happens to the swap's answer."""

from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import msgspec
import pytest
from rows import ORDERS, order_rows

import bergline
from bergline import Lake, Table
from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, TableChange, Unknown
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    StorageError,
    UnavailableError,
    UnsupportedError,
)
from bergline.format.metadata.updates import SetProperties
from bergline.io.schemes import SchemeFileIO
from bergline.testing.faults import Fault, FaultyStore


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


def test_lost_answer_is_committed_though_others_moved_on_since(tmp_path: Path) -> None:
    catalog, base, faulty = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)
    rival = PointerCatalog(faulty._store, catalog.io, f"file://{tmp_path}")

    def others_move_on(_: float) -> None:
        rival.commit(change(rival.load_table(base.name), "rival"))
        faulty._gone = False

    catalog._sleep = others_move_on
    assert isinstance(catalog.commit(change(base)), Committed)
    assert set(catalog.load_table(base.name).metadata.properties) >= {"k", "rival"}


def test_unreachable_store_is_unknown_and_nothing_is_deleted(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)
    outcome = catalog.commit(change(base))
    assert isinstance(outcome, Unknown)
    assert catalog.io.exists(outcome.metadata_location)


def test_table_dropped_before_the_answer_is_unknown(tmp_path: Path) -> None:
    catalog, base, faulty = faulty_catalog(tmp_path, Fault.STORE_GOES_AWAY)

    def dropped(_: float) -> None:
        faulty._store.drop(base.name)
        faulty._gone = False

    catalog._sleep = dropped
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

    catalog._sleep = many_move_on
    assert isinstance(catalog.commit(change(base)), Unknown)


def test_locked_store_raises_unavailable_and_leaves_no_file(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path, Fault.REFUSED_AS_LOCKED)
    with pytest.raises(UnavailableError):
        catalog.commit(change(base))
    assert catalog.load_table(base.name).metadata_location == base.metadata_location
    assert metadata_files(tmp_path) == 1


def test_several_tables_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    catalog, base, _ = faulty_catalog(tmp_path)
    other = with_another_table(catalog)
    catalog.atomic_tables = False
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


def test_create_of_an_existing_table_is_refused(lake: Lake, orders: Table) -> None:
    with pytest.raises(AlreadyExistsError, match=r"table `db\.orders` exists already"):
        lake.create_table("db.orders", orders.schema)


def test_missing_table_lists_near_names(lake: Lake, orders: Table) -> None:
    with pytest.raises(NotFoundError, match=r"no table `db\.ordres`") as caught:
        lake.load_table("db.ordres")
    assert caught.value.near == (str(orders.name),)


def test_missing_namespace_lists_near_names(lake: Lake) -> None:
    with pytest.raises(NotFoundError, match="no namespace `dbx`") as caught:
        lake.create_table("dbx.orders", ORDERS)
    assert caught.value.near == ("db",)


def test_pointer_to_a_missing_file_says_so(lake: Lake, orders: Table) -> None:
    Path(orders.metadata_location.removeprefix("file://")).unlink()
    database = Path(orders.location.removeprefix("file://")).parents[2] / "catalog.db"
    message = r"table `db\.orders` points to .* which does not exist"
    with bergline.connect(f"sqlite:///{database}") as again, pytest.raises(NotFoundError, match=message):
        again.load_table("db.orders")


def test_namespace_with_tables_is_not_dropped(lake: Lake, orders: Table) -> None:
    with pytest.raises(RefusedError, match="not empty"):
        lake.drop_namespace("db")
    lake.drop_table(orders.name)
    lake.drop_namespace("db")
    assert lake.list_namespaces() == []


@pytest.mark.parametrize(
    ("name", "directory"),
    [
        ("a/b c", "a%2Fb c"),
        ("50%?#", "50%25%3F%23"),
        ("\u00e9\n", "\u00e9%0A"),
        ("..", "%2E%2E"),
        (".hidden..", ".hidden.."),
        ("a\\b", "a%5Cb"),
    ],
)
def test_default_location_has_one_directory_for_each_name(lake: Lake, name: str, directory: str) -> None:
    inner, outer = TableName(("db",), name), TableName((name,), "t")
    assert lake.catalog.default_location(inner).endswith(f"/warehouse/db/{directory}")
    with bergline.connect("memory:") as other:
        assert other.catalog.default_location(outer) == f"memory://warehouse/{directory}/t"
    lake.create_table(inner, ORDERS)
    assert lake.load_table(inner).location.endswith(f"/db/{directory}")


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


def test_created_table_whose_answer_was_lost_is_ours_though_others_moved_on(tmp_path: Path) -> None:
    store = FaultyStore(MemoryPointerStore(), Fault.STORE_GOES_AWAY)
    other = PointerCatalog(store._store, SchemeFileIO(), f"file://{tmp_path}")

    def others_move_on(_: float) -> None:
        if store._gone:
            other.commit(change(other.load_table(TableName(("db",), "orders"))))
            store._gone = False

    table = _table(Lake(PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}", sleep=others_move_on), "lake"))
    assert table.refresh().properties["k"] == "v"


def test_bad_status_check_settings_of_others_do_not_hide_what_happened(tmp_path: Path) -> None:
    catalog, base, store = faulty_catalog(tmp_path)
    bad = SetProperties({"commit.status-check.num-retries": "many"})
    outcome = catalog.commit((TableChange(base, (), (bad,)),))
    assert isinstance(outcome, Committed)
    store._faults = [Fault.LANDS_BUT_ANSWER_IS_LOST]
    assert isinstance(catalog.commit(change(outcome.tables[0])), Committed)
