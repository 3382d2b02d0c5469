"""AWS Glue as a store: the suite, and what happens when requests and answers get lost."""

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from bergline.catalog.glue.glue_store import GluePointerStore
from bergline.catalog.glue.requests import GlueResponse
from bergline.catalog.glue.settings import glue_settings
from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import PointerStore, PointerSwap
from bergline.errors import RefusedError, StorageError, UnavailableError, UnsupportedError
from bergline.testing.pointer_store_suite import PointerStoreSuite
from support.servers.glue_server import ANSWER_LOST, LATE_ERROR, NEVER_ARRIVES, Fault, GlueProxy, refused

ORDERS = TableName(("db",), "orders")
MOVED = TableName(("db",), "moved")


class TestGluePointerStore(PointerStoreSuite):
    @pytest.fixture(autouse=True)
    def _glue(self, glue: GlueProxy) -> Iterator[None]:
        self._settings = glue_settings("glue://", glue.properties)
        self._stores: list[PointerStore] = []
        yield
        for store in self._stores:
            store.close()

    def make_store(self) -> PointerStore:
        self._stores.append(GluePointerStore(self._settings))
        return self._stores[-1]


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def store(glue: GlueProxy, waits: list[float]) -> Iterator[GluePointerStore]:
    opened = GluePointerStore(glue_settings("glue://", glue.properties), sleep=waits.append)
    opened.create_namespace(("db",), {})
    yield opened
    opened.close()


@pytest.fixture
def orders(store: GluePointerStore) -> TableName:
    store.create(ORDERS, "a")
    return ORDERS


def set_parameters(glue: GlueProxy, name: str = "orders", **parameters: str) -> None:
    """As another tool would: it reads, and writes everything back."""
    table = glue.table("db", name)
    kept = {k: table[k] for k in ("Name", "TableType", "StorageDescriptor") if k in table}
    glue.ask("UpdateTable", DatabaseName="db", TableInput={**kept, "Parameters": table["Parameters"] | parameters})


@pytest.mark.parametrize(
    "fault", [ANSWER_LOST, LATE_ERROR, Fault(arrives=True, status=400, code="OperationTimeoutException")]
)
def test_swap_that_landed_without_an_answer_is_in_doubt(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, fault: Fault
) -> None:
    glue.fail("UpdateTable", fault)
    with pytest.raises(StorageError, match="did not do update_table"):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "b"
    assert glue.calls["UpdateTable"] == 1  # never sent twice


def test_swap_that_never_arrived_is_in_doubt_and_can_be_sent_again(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", NEVER_ARRIVES)
    with pytest.raises(StorageError):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "a"
    assert store.swap(orders, "a", "b")


def test_parameters_that_another_tool_sets_in_between_are_kept_and_the_swap_still_wins(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, classification="iceberg"))
    assert store.swap(orders, "a", "b")
    parameters = glue.table("db", "orders")["Parameters"]
    assert parameters == {
        "table_type": "ICEBERG",
        "metadata_location": "b",
        "previous_metadata_location": "a",
        "classification": "iceberg",
    }


def test_commit_of_another_tool_in_between_wins(glue: GlueProxy, store: GluePointerStore, orders: TableName) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, metadata_location="theirs"))
    assert not store.swap(orders, "a", "b")
    assert store.read(orders) == "theirs"


def test_table_that_is_dropped_in_between_is_not_swapped(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: glue.ask("DeleteTable", DatabaseName="db", Name="orders"))
    assert not store.swap(orders, "a", "b")
    assert store.read(orders) is None


def test_table_that_others_change_all_the_time_is_unavailable(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", *[refused("ConcurrentModificationException")] * 11)
    with pytest.raises(UnavailableError, match="times in a row"):
        store.swap(orders, "a", "b")
    assert store.read(orders) == "a"


def test_several_tables_at_once_are_refused(store: GluePointerStore) -> None:
    with pytest.raises(UnsupportedError, match="found 2"):
        store.swap_all([PointerSwap(ORDERS, "a", "b"), PointerSwap(MOVED, "a", "b")])


def test_commit_while_a_table_is_renamed_is_not_lost(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, metadata_location="theirs"))
    assert store.rename(orders, MOVED)
    assert (store.read(orders), store.read(MOVED)) == (None, "theirs")


def test_commit_while_a_table_of_an_expected_pointer_is_dropped_keeps_the_table(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.before("UpdateTable", lambda: set_parameters(glue, metadata_location="theirs"))
    assert not store.drop(orders, "a")
    assert store.read(orders) == "theirs"


def test_rename_that_may_not_change_the_old_name_takes_the_new_one_back(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", refused("AccessDeniedException"))
    with pytest.raises(RefusedError):
        store.rename(orders, MOVED)
    assert store.list_names(("db",)) == [orders]


def test_rename_that_cannot_be_taken_back_leaves_the_outcome_in_doubt(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    glue.fail("UpdateTable", *[refused("AccessDeniedException")] * 2)
    with pytest.raises(StorageError, match=r"renaming `db\.orders` to `db\.moved` stopped half way"):
        store.rename(orders, MOVED)


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable"])
@pytest.mark.parametrize("fault", [ANSWER_LOST, NEVER_ARRIVES])
def test_rename_that_stopped_half_way_is_finished_by_the_next(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, action: str, fault: Fault
) -> None:
    glue.fail(action, fault)
    with contextlib.suppress(StorageError):
        store.rename(orders, MOVED)
    assert [store.read(orders), store.read(MOVED)].count("a") == 1
    assert store.rename(orders, MOVED) or store.read(orders) is None
    assert (store.read(orders), store.read(MOVED)) == (None, "a")
    assert store.swap(MOVED, "a", "b")
    assert set(glue.table("db", "moved")["Parameters"]) == {
        "table_type",
        "metadata_location",
        "previous_metadata_location",
    }


def test_second_name_for_a_table_is_not_taken_for_a_rename(store: GluePointerStore, orders: TableName) -> None:
    store.create(MOVED, "a")
    assert not store.rename(orders, MOVED)
    assert (store.read(orders), store.read(MOVED)) == ("a", "a")


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("action", ["CreateTable", "UpdateTable", "DeleteTable"])
@pytest.mark.parametrize("arrives", [True, False])
def test_rename_killed_at_any_step_leaves_one_name_that_takes_commits(
    glue: GlueProxy, store: GluePointerStore, orders: TableName, action: str, *, arrives: bool
) -> None:
    _kill_at(store, action, arrives=arrives)
    with pytest.raises(Killed):
        store.rename(orders, MOVED)
    other = GluePointerStore(glue_settings("glue://", glue.properties))
    assert len(other.list_names(("db",))) == 1
    assert [other.swap(name, "a", "b") for name in (MOVED, orders)].count(True) == 1
    assert other.rename(orders, MOVED) or other.read(orders) is None
    assert (other.list_names(("db",)), other.read(MOVED)) == ([MOVED], "b")
    other.close()


def _kill_at(store: GluePointerStore, action: str, *, arrives: bool) -> None:
    send = store._calls.change
    operation = {"CreateTable": "create_table", "UpdateTable": "update_table", "DeleteTable": "delete_table"}[action]

    def change(name: str, **arguments: Any) -> GlueResponse:
        if name == operation and not arrives:
            raise Killed
        answer = send(name, **arguments)
        if name == operation:
            raise Killed
        return answer

    store._calls.change = change  # type: ignore[method-assign]


def test_update_that_a_proxy_delivers_twice_has_landed(
    glue: GlueProxy, store: GluePointerStore, orders: TableName
) -> None:
    def deliver_first() -> None:
        set_parameters(glue, metadata_location="b", previous_metadata_location="a")

    glue.before("UpdateTable", deliver_first)
    assert store.swap(orders, "a", "b")
    assert not store.swap(orders, "a", "b")
    assert store.read(orders) == "b"


def test_drop_whose_answer_is_lost_leaves_nothing(glue: GlueProxy, store: GluePointerStore, orders: TableName) -> None:
    glue.fail("UpdateTable", ANSWER_LOST)
    assert store.drop(orders, "a")
    assert store.create(orders, "x")
