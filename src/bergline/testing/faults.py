"""Fault injection: a pointer store with lost responses, outages and delayed changes on demand."""

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum
from typing import TypeVar

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import Pointers, PointerStore, PointerSwap
from bergline.errors import StorageError, UnavailableError

_Answer = TypeVar("_Answer")


class Fault(Enum):
    """The fault of the next change."""

    LANDS_BUT_ANSWER_IS_LOST = "lands, then raises"
    NEVER_ARRIVES = "raises, and did not land"
    REFUSED_AS_LOCKED = "certainly did not happen"
    ARRIVES_LATE = "raises, and lands later if it still can"
    DELIVERED_TWICE = "lands, and answers as its twin that came later"
    STORE_GOES_AWAY = "lands, then raises, and so does everything after"
    STORE_WENT_AWAY = "raises without landing, and so does everything after"


class FaultyPointers:
    """Wraps pointers; each change uses up one of `faults`, and `before_swap` is called before each swap.

    `step` is called before and after every call: what it raises is a crash at that point. A delayed change arrives
    after `late_after` further calls; without that it waits to be taken.
    """

    def __init__(
        self,
        pointers: Pointers,
        *faults: Fault,
        before_swap: Callable[[], None] = lambda: None,
        step: Callable[[], None] = lambda: None,
        late_after: int | None = None,
    ) -> None:
        self._pointers = pointers
        self._faults = list(faults)
        self._before_swap = before_swap
        self._step = step
        self._late_after = late_after
        self._late: list[tuple[int | None, Callable[[], bool]]] = []
        self._gone = False
        self.swaps = 0
        self.atomic_tables = pointers.atomic_tables

    def meet(self, *faults: Fault, late_after: int | None = None) -> None:
        """Set the faults of the next changes, and end an outage."""
        self._faults, self._late_after, self._gone = list(faults), late_after, False

    def take_late(self) -> list[Callable[[], bool]]:
        """Take over the delayed changes; the caller decides when they arrive."""
        late, self._late = self._late, []
        return [change for _, change in late]

    def read(self, table: TableName) -> str | None:
        return self.ask(lambda: self._pointers.read(table))

    def create(self, table: TableName, pointer: str) -> bool:
        return self.change(lambda: self._pointers.create(table, pointer))

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        self._before_swap()
        self.swaps += 1
        return self.change(lambda: self._pointers.swap(table, expected, new))

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        self._before_swap()
        self.swaps += 1
        return self.change(lambda: self._pointers.swap_all(swaps))

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        return self.change(lambda: self._pointers.drop(table, expected))

    def rename(self, table: TableName, new: TableName) -> bool:
        return self.change(lambda: self._pointers.rename(table, new))

    def list_names(self, namespace: Namespace) -> list[TableName]:
        return self.ask(lambda: self._pointers.list_names(namespace))

    def ask(self, ask: Callable[[], _Answer]) -> _Answer:
        """Run a read, unless there is an outage."""
        self._step()
        self._bring_late_changes()
        if self._gone:
            raise _lost()
        answer = ask()
        self._step()
        return answer

    def _bring_late_changes(self) -> None:
        on_their_way, self._late = self._late, []
        for wait, change in on_their_way:
            if wait == 0:
                change()
            else:
                self._late.append((None if wait is None else wait - 1, change))

    def change(self, change: Callable[[], bool]) -> bool:
        """Run a change with the next fault."""
        return self.ask(lambda: self._meet_fault(change))

    def _meet_fault(self, change: Callable[[], bool]) -> bool:
        match self._faults.pop(0) if self._faults else None:
            case None:
                return change()
            case Fault.LANDS_BUT_ANSWER_IS_LOST:
                change()
            case Fault.NEVER_ARRIVES:
                pass
            case Fault.REFUSED_AS_LOCKED:
                raise UnavailableError("the database is locked")
            case Fault.ARRIVES_LATE:
                self._late.append((self._late_after, change))
            case Fault.DELIVERED_TWICE:
                change()
                return change()
            case Fault.STORE_GOES_AWAY:
                change()
                self._gone = True
            case Fault.STORE_WENT_AWAY:
                self._gone = True
        raise _lost()


def _lost() -> StorageError:
    return StorageError("the connection was lost")


class FaultyStore(FaultyPointers):
    """Wraps a PointerStore with faults of tables, and with `view_faults` of views.

    Faults of namespaces are set by `namespaces`.
    """

    def __init__(
        self,
        store: PointerStore,
        *faults: Fault,
        before_swap: Callable[[], None] = lambda: None,
        step: Callable[[], None] = lambda: None,
        late_after: int | None = None,
        view_faults: Sequence[Fault] = (),
    ) -> None:
        super().__init__(store, *faults, before_swap=before_swap, step=step, late_after=late_after)
        self._store = store
        self.namespaces = FaultyPointers(store)
        self.views = None if store.views is None else FaultyPointers(store.views, *view_faults)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        return self.namespaces.change(lambda: self._store.create_namespace(namespace, properties))

    def drop_namespace(self, namespace: Namespace) -> bool:
        return self.namespaces.change(lambda: self._store.drop_namespace(namespace))

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self.namespaces.ask(lambda: self._store.namespace_exists(namespace))

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        return self.namespaces.ask(lambda: self._store.namespace_properties(namespace))

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        return self.namespaces.change(lambda: self._store.update_namespace(namespace, changes, removals))

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        return self._store.list_namespaces(below)

    def close(self) -> None:
        self._store.close()
