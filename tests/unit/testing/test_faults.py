"""Pointer stores with faults on demand."""

import pytest

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.errors import StorageError, UnavailableError
from bergline.testing.faults import Fault, FaultyStore

ORDERS = TableName(("db",), "orders")


def store(*faults: Fault) -> tuple[FaultyStore, MemoryPointerStore]:
    inner = MemoryPointerStore()
    inner.create_namespace(("db",), {})
    inner.create(ORDERS, "a")
    return FaultyStore(inner, *faults), inner


def test_store_without_faults_passes_everything_on() -> None:
    faulty, inner = store()
    assert faulty.swap(ORDERS, "a", "b")
    assert faulty.read(ORDERS) == inner.read(ORDERS) == "b"
    assert not faulty.swap(ORDERS, "a", "c")
    assert faulty.swaps == 2


@pytest.mark.parametrize(
    ("fault", "error", "pointer", "is_back"),
    [
        (Fault.LANDS_BUT_ANSWER_IS_LOST, StorageError, "b", True),
        (Fault.NEVER_ARRIVES, StorageError, "a", True),
        (Fault.REFUSED_AS_LOCKED, UnavailableError, "a", True),
        (Fault.ARRIVES_LATE, StorageError, "a", True),
        (Fault.STORE_GOES_AWAY, StorageError, "b", False),
        (Fault.STORE_WENT_AWAY, StorageError, "a", False),
    ],
)
def test_fault_of_a_swap(fault: Fault, error: type[Exception], pointer: str, is_back: bool) -> None:
    faulty, inner = store(fault)
    with pytest.raises(error):
        faulty.swap(ORDERS, "a", "b")
    assert inner.read(ORDERS) == pointer
    if not is_back:
        with pytest.raises(StorageError):
            faulty.read(ORDERS)
        faulty.meet()
    assert faulty.read(ORDERS) == pointer


def test_swap_that_is_delivered_twice_refuses_itself() -> None:
    faulty, inner = store(Fault.DELIVERED_TWICE)
    assert not faulty.swap(ORDERS, "a", "b")
    assert inner.read(ORDERS) == "b"


def test_delayed_change_arrives_when_the_caller_lets_it() -> None:
    faulty, inner = store(Fault.ARRIVES_LATE)
    with pytest.raises(StorageError):
        faulty.swap(ORDERS, "a", "b")
    (late,) = faulty.take_late()
    assert faulty.swap(ORDERS, "a", "c")
    assert not late()
    assert inner.read(ORDERS) == "c"


def test_faults_of_views_leave_tables_alone() -> None:
    inner = MemoryPointerStore()
    inner.create_namespace(("db",), {})
    faulty = FaultyStore(inner, view_faults=[Fault.NEVER_ARRIVES])
    assert faulty.create(ORDERS, "a")
    assert faulty.views is not None
    with pytest.raises(StorageError):
        faulty.views.create(TableName(("db",), "v"), "p")
