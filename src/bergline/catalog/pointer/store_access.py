"""What the parts of a pointer catalog share: its store until it is closed, its guard, and waits for lost responses."""

import contextlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import cached_property, partial
from typing import TYPE_CHECKING

from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_digests import KeptDigests, MetadataDigests
from bergline.catalog.pointer.named_pointers import NamedPointers, NameKind
from bergline.catalog.pointer.pointer_store import (
    BranchTablePointers,
    GuardedPointers,
    PointerStore,
    PointersWithTurns,
    UnopenedStore,
)
from bergline.catalog.protection.guard import RefGuard
from bergline.catalog.status_checks import status_check_waits
from bergline.catalog.turns import wait_for_turn
from bergline.errors import InvalidInputError
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.protection import table_rules_guard
else:  # not needed to read
    table_rules_guard = LazyModule("bergline.catalog.protection.table_rules_guard")


class StoreAccess:
    """The store of one catalog, opened on first use."""

    def __init__(
        self, store: PointerStore | UnopenedStore, *, sleep: Callable[[float], None], clock_ms: Callable[[], int]
    ) -> None:
        self._given = store
        self._closed = False
        self._guard: RefGuard | None = None
        self.atomic_tables = store.atomic_tables
        self.sleep = sleep
        self.clock_ms = clock_ms

    @property
    def store(self) -> PointerStore:
        """The store; InvalidInputError after `close`."""
        if self._closed:
            raise InvalidInputError("expected an open lake, found one that was closed")
        return self.store_to_settle

    @property
    def store_to_settle(self) -> PointerStore:
        """The store, closed or not: a commit in progress while the lake is closed must still be settled."""
        given = self._given
        return given.opened() if isinstance(given, UnopenedStore) else given

    @property
    def guard(self) -> RefGuard:
        """What decides on changes of refs: the store's own guard, or one for the rules of tables alone."""
        if self._guard is None:
            store = self.store_to_settle
            self._guard = (
                store.make_guard() if isinstance(store, GuardedPointers) else table_rules_guard.TableRulesGuard()
            )
        return self._guard

    @guard.setter
    def guard(self, guard: RefGuard) -> None:
        self._guard = guard

    @cached_property
    def turns(self) -> PointersWithTurns | None:
        """Where writers of the same tables take turns; None if the store cannot."""
        store = self.store
        return store if isinstance(store, PointersWithTurns) else None

    def read_in_turn(self, table: TableName) -> str | None:
        """The pointer of a table, once nobody else has a turn on it."""
        store, turns = self.store, self.turns
        if turns is None:
            return store.read(table)
        pointer, turn = turns.read_with_turn(table)
        if turn is not None and wait_for_turn(table, turn, lambda: turns.read_with_turn(table)[1], self.sleep):
            return store.read(table)
        return pointer

    def digests(self) -> MetadataDigests | None:
        """The digests of metadata files; None if the store keeps none."""
        store = self.store_to_settle
        return store.digests if isinstance(store, KeptDigests) else None

    def names(self, kind: NameKind, properties: Mapping[str, str] | None = None) -> NamedPointers:
        """The names of tables or views; with the properties that say how long a lost response is settled."""
        return NamedPointers(self.store, kind, partial(self.waits, properties or {}))

    def listing(
        self, tables: Collection[TableName], of_branches: Collection[TableName] = ()
    ) -> AbstractContextManager[None]:
        """Have tables in lists, and those of branches not, with the swap that this thread makes in the block."""
        if of_branches:
            self.names("branch table")  # UnsupportedError where every table is listed
        store = self.store_to_settle
        if not (tables or of_branches) or not isinstance(store, BranchTablePointers) or store.branch_tables is None:
            return contextlib.nullcontext()
        return store.listing(tables, of_branches)

    def waits(self, properties: Mapping[str, str]) -> Iterator[Callable[[], None]]:
        """A wait for each look at what became of a change whose response was lost."""
        return status_check_waits(properties, self.sleep)

    def close(self) -> None:
        """Close the store; idempotent."""
        if not self._closed:
            self._closed = True
            self._given.close()
