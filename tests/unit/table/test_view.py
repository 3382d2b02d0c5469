"""Views: created, replaced, renamed and dropped by name."""

from pathlib import Path

import pyarrow as pa
import pytest

import bergline
from bergline import Lake, Table
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_catalog import PointerCatalog
from bergline.errors import (
    AlreadyExistsError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from bergline.io.schemes import SchemeFileIO
from bergline.table.commits.retry import Timing
from bergline.table.view import View
from bergline.testing.faults import Fault, FaultyStore
from support.fixtures.concurrency import run_for_each

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False)])
MORE = pa.schema([*COLUMNS, ("region", pa.string())])


@pytest.fixture
def view(lake: Lake) -> View:
    return lake.create_view("db.recent", "SELECT id FROM orders", COLUMNS, properties={"comment": "new ones"})


def faulty(path: Path, *faults: Fault) -> tuple[Lake, FaultyStore]:
    store = FaultyStore(MemoryPointerStore(), view_faults=faults)
    lake = Lake(PointerCatalog(store, SchemeFileIO(), f"file://{path}", sleep=lambda _: None), "lake")
    lake.create_namespace("db")
    return lake, store


def view_files(path: Path) -> int:
    return len(list(path.rglob("*.metadata.json")))


def test_view_has_what_it_was_created_with(lake: Lake, view: View) -> None:
    again = lake.load_view("db.recent")
    assert again.metadata == view.metadata
    assert again.sql() == "SELECT id FROM orders"
    assert again.properties == {"comment": "new ones"}
    assert [f.name for f in again.schema.fields] == ["id"]
    assert again.metadata.current_version.default_namespace == ("db",)
    assert lake.list_views("db") == ["db.recent"]
    assert lake.list_tables("db") == []
    assert lake.view_exists("db.recent")
    assert not lake.table_exists("db.recent")


def test_replaced_view_keeps_its_history_and_its_namespace(lake: Lake, view: View) -> None:
    view.replace({"spark": "SELECT id, region FROM orders", "trino": 'SELECT "id" FROM o'}, MORE)
    again = lake.load_view("db.recent")
    assert again.sql() == "SELECT id, region FROM orders"
    assert again.sql("TRINO") == 'SELECT "id" FROM o'
    assert [f.name for f in again.schema.fields] == ["id", "region"]
    assert [v.version_id for v in again.metadata.versions] == [1, 2]
    assert again.metadata.current_version.default_namespace == ("db",)
    with pytest.raises(NotFoundError, match="no query in dialect `duckdb`"):
        again.sql("duckdb")
    with pytest.raises(RefusedError, match="without its queries for trino"):
        again.replace("SELECT 1", COLUMNS)


def test_properties_of_a_view_are_set_and_removed(lake: Lake, view: View) -> None:
    view.set_properties({"a": "1"}, remove=["comment"])
    assert lake.load_view("db.recent").properties == {"a": "1"}


def test_tables_and_views_share_their_names(lake: Lake, orders: Table, view: View) -> None:
    with pytest.raises(AlreadyExistsError, match=r"table `db\.orders` exists already"):
        lake.create_view("db.orders", "SELECT 1", COLUMNS, if_not_exists=True)
    with pytest.raises(AlreadyExistsError, match=r"view `db\.recent` exists already"):
        lake.create_table("db.recent", COLUMNS, if_not_exists=True)
    with pytest.raises(AlreadyExistsError, match=r"view `db\.recent` exists already"):
        lake.rename_table("db.orders", "db.recent")
    with pytest.raises(AlreadyExistsError, match=r"view `db\.recent` exists already"):
        lake.register_table("db.recent", orders.metadata_location)
    with pytest.raises(NotFoundError, match=r"no table `db\.recent`"):
        lake.drop_table("db.recent")
    with pytest.raises(NotFoundError, match=r"no view `db\.orders`"):
        lake.drop_view("db.orders")
    assert lake.create_view("db.recent", "SELECT 2", COLUMNS, if_not_exists=True).sql() == view.sql()


def test_view_is_renamed_and_dropped(lake: Lake, view: View) -> None:
    lake.create_namespace("other")
    lake.rename_view("db.recent", "other.recent")
    assert (lake.list_views("db"), lake.list_views("other")) == ([], ["other.recent"])
    with pytest.raises(RefusedError, match="not empty"):
        lake.drop_namespace("other")
    lake.drop_view("other.recent")
    assert not lake.view_exists("other.recent")
    lake.drop_namespace("other")
    with pytest.raises(NotFoundError, match=r"no view `db\.recent`"):
        view.refresh()


def test_writers_of_one_view_do_not_lose_each_others_changes(lake: Lake, view: View) -> None:
    def work(number: int) -> None:
        lake.load_view("db.recent").set_properties({f"k{number}": "v"})

    run_for_each(work, range(6))
    assert {f"k{n}" for n in range(6)} <= set(view.refresh().properties)


def test_view_that_was_made_anew_under_its_writer_is_a_conflict(lake: Lake, view: View) -> None:
    lake.drop_view("db.recent")
    again = lake.create_view("db.recent", "SELECT 2", COLUMNS)
    with pytest.raises(ConflictError, match="dropped or re-created"):
        view.set_properties({"a": "1"})
    assert again.refresh().properties == {}


@pytest.mark.parametrize("fault", [Fault.LANDS_BUT_ANSWER_IS_LOST, Fault.NEVER_ARRIVES])
def test_lost_answers_about_a_view_are_settled(tmp_path: Path, fault: Fault) -> None:
    lake, store = faulty(tmp_path, fault)
    assert store.views
    view = lake.create_view("db.v", "SELECT 1", COLUMNS)
    for change in (
        lambda: view.set_properties({"a": "1"}),
        lambda: lake.rename_view("db.v", "db.w"),
        lambda: lake.rename_view("db.w", "db.v"),
    ):
        store.views._faults = [fault]
        change()
    assert lake.load_view("db.v").properties == {"a": "1"}
    assert view_files(tmp_path) == 2


def test_change_of_a_view_waits_for_a_locked_store(tmp_path: Path) -> None:
    _, store = faulty(tmp_path)
    assert store.views
    waits: list[float] = []
    catalog = PointerCatalog(store, SchemeFileIO(), f"file://{tmp_path}", sleep=lambda _: None)
    lake = Lake(catalog, "lake", timing=Timing(sleep=waits.append, uniform=lambda _, high: high))
    view = lake.create_view("db.v", "SELECT 1", COLUMNS)
    store.views._faults = [Fault.REFUSED_AS_LOCKED] * 2
    view.set_properties({"a": "1"})
    assert (lake.load_view("db.v").properties, len(waits)) == ({"a": "1"}, 2)
    store.views._faults = [Fault.REFUSED_AS_LOCKED] * 9
    with pytest.raises(UnavailableError):
        view.set_properties({"a": "2"})
    assert view_files(tmp_path) == 2


def test_change_of_a_view_that_is_refused_by_its_own_twin_has_happened(tmp_path: Path) -> None:
    lake, store = faulty(tmp_path, Fault.DELIVERED_TWICE)
    assert store.views
    view = lake.create_view("db.v", "SELECT 1", COLUMNS)
    store.views._faults = [Fault.DELIVERED_TWICE]
    view.set_properties({"a": "1"})
    assert lake.load_view("db.v").properties == {"a": "1"}
    assert view_files(tmp_path) == 2


def test_view_whose_answer_stays_lost_is_unknown_and_its_file_stays(tmp_path: Path) -> None:
    lake, store = faulty(tmp_path)
    view = lake.create_view("db.v", "SELECT 1", COLUMNS)
    assert store.views
    store.views._faults = [Fault.STORE_GOES_AWAY]
    with pytest.raises(CommitUnknownError, match=r"whether the change of view `db\.v` happened"):
        view.set_properties({"a": "1"})
    assert view_files(tmp_path) == 2


def test_catalog_without_views_says_so_once_and_clearly(tmp_path: Path) -> None:
    lake, store = faulty(tmp_path)
    store.views = None
    for call in (
        lambda: lake.create_view("db.v", "SELECT 1", COLUMNS),
        lambda: lake.load_view("db.v"),
        lambda: lake.rename_view("db.v", "db.w"),
        lambda: lake.drop_view("db.v"),
    ):
        with pytest.raises(UnsupportedError, match="expected a catalog that can hold views"):
            call()
    assert lake.list_views("db") == []
    assert view_files(tmp_path) == 0


@pytest.mark.parametrize(("sql", "schema"), [("", COLUMNS), ({}, COLUMNS), (5, COLUMNS), ("SELECT 1", {"id": "int"})])
def test_bad_views_are_refused(lake: Lake, sql: object, schema: object) -> None:
    with pytest.raises(InvalidInputError, match="expected"):
        lake.create_view("db.v", sql, schema)  # type: ignore[arg-type]
    assert lake.list_views("db") == []


def test_views_of_an_sqlite_lake_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    for number in (1, 2):
        with bergline.connect(f"sqlite:///{tmp_path}/c.db", create=True) as lake:
            lake.create_namespace("db", if_not_exists=True)
            view = lake.create_view("db.v", f"SELECT {number}", COLUMNS, if_not_exists=True)
            assert view.sql() == "SELECT 1"


def test_table_and_view_are_not_taken_for_each_other(lake: Lake, view: View) -> None:
    lake.create_table("db.orders", COLUMNS)
    for call in (lake.load_table, lake.drop_table, lake.purge_table, lake.unregister_table):
        with pytest.raises(NotFoundError, match=r"^no table `db.recent`: it is a view$") as caught:
            call("db.recent")
        assert (caught.value.kind, caught.value.hints) == ("table", ())
    for call in (lake.load_view, lake.drop_view):
        with pytest.raises(NotFoundError, match=r"^no view `db.orders`: it is a table$"):
            call("db.orders")
    with pytest.raises(NotFoundError, match=r"^no view `db.orders`: it is a table$"):
        lake.rename_view("db.orders", "db.other")
    assert lake.table_exists("db.orders")
    assert lake.view_exists("db.recent")


def test_replaced_view_takes_properties_and_a_place_for_its_names(lake: Lake) -> None:
    view = lake.create_view(
        "db.v", "SELECT 1", COLUMNS, properties={"a": "1"}, default_catalog="x", default_namespace=()
    )
    before = len(view.metadata.versions)
    view.replace("SELECT id FROM t", COLUMNS, properties={"b": "2"})
    version = view.metadata.current_version
    assert (version.default_catalog, version.default_namespace, len(view.metadata.versions)) == ("x", (), before + 1)
    view.replace("SELECT id FROM u", COLUMNS, default_namespace="db", default_catalog="")
    version = lake.load_view("db.v").metadata.current_version
    assert (version.default_catalog, version.default_namespace) == (None, ("db",))
    assert (view.properties, view.dialects) == ({"a": "1", "b": "2"}, ["spark"])
