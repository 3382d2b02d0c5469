"""The pointer store interface: one string per table, the current metadata location, moved only by compare-and-swap."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

import msgspec

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.guard import RefGuard
from bergline.catalog.turns import Turn, TurnKeeper
from bergline.errors import (
    AlreadyExistsError,
    AuthenticationError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)

NOTHING_CHANGED: Final = (
    UnavailableError,
    AlreadyExistsError,
    AuthenticationError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)

CATALOG: Final = "catalog"
CATALOG_NAME: Final = "catalog name"
"""The kinds of NotFoundError for catalogs: there is none, or only others in the same database."""
CREATE_HINT: Final = "connect(…, create=True) makes a new one"


Moved = tuple[tuple[TableName, str | None], ...]
"""Pointers that moved, each with its new value; None if it is gone."""


class PointerSwap(msgspec.Struct, frozen=True):
    """A pointer to move, and its expected value: None for a name that must be free of tables and views."""

    table: TableName
    expected: str | None
    new: str


class Pointers(Protocol):
    """Pointers of tables, or of views, by name.

    Every method raises UnavailableError if and only if the store did not respond and certainly nothing was changed, and
    another of NOTHING_CHANGED if and only if it refuses the call and nothing was changed. After any other exception
    from a modifying method the outcome is unknown.
    """

    atomic_tables: bool
    """Whether several pointers can move atomically."""

    def read(self, table: TableName) -> str | None:
        """The table's pointer; None if there is no such table."""
        ...

    def create(self, table: TableName, pointer: str) -> bool:
        """True if and only if the name was free of tables and views, and now has this pointer, durably."""
        ...

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """True if and only if the pointer was `expected` and is now `new`, atomically and durably.

        False if and only if the pointer was something else, or the table does not exist; nothing was changed then.
        Any doubt (timeout, lost connection) is an exception, never False.
        """
        ...

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """True if and only if every pointer was as expected and all are the new ones, atomically and durably.

        False if and only if one was not, and then none has moved. Only for stores with `atomic_tables`.
        """
        ...

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        """True if and only if the table had a pointer, the expected one if that is given, and now has none."""
        ...

    def rename(self, table: TableName, new: TableName) -> bool:
        """True if and only if the table had a pointer, the new name was free, and the pointer now has that name."""
        ...

    def list_names(self, namespace: Namespace) -> list[TableName]:
        """The names directly in a namespace, sorted."""
        ...


class PointerStore(Pointers, Protocol):
    """The pointers of tables, of views if the store supports them, and namespaces with properties.

    Tables and views share one set of names.
    """

    @property
    def views(self) -> Pointers | None:
        """The pointers of views; None if the store has no views."""
        ...

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        """True if and only if the namespace did not exist and now does."""
        ...

    def drop_namespace(self, namespace: Namespace) -> bool:
        """True if and only if the namespace existed, held nothing, and is gone."""
        ...

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether the namespace, or anything in it, exists."""
        ...

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        """The namespace's properties; None if there is no such namespace."""
        ...

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """True if and only if the namespace exists and now has these changes; other properties stay.

        A namespace that existed only by its contents exists by itself from then on.
        """
        ...

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All namespaces below this one, at every level, sorted; all of them for the empty one."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


@runtime_checkable
class DroppedPointers(Protocol):
    """For stores with a trash, which keeps the pointers of dropped tables and views."""

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        """The tables in the trash, or so many of them, newest first."""
        ...

    def restore(self, dropped: DroppedTable, name: TableName) -> bool:
        """True if and only if the table was in the trash and the name was free, and now the name has its pointer.

        False if and only if the name is taken; ConflictError if and only if the table cannot come back any more.
        """
        ...

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        """The views in the trash, or so many of them, newest first."""
        ...

    def restore_view(self, dropped: DroppedView, name: TableName) -> bool:
        """As `restore`, of a view."""
        ...


@runtime_checkable
class KeptFootprints(Protocol):
    """For stores that keep where the files of tables and views are."""

    def footprints(self) -> Footprints | None:
        """What is kept; None while nothing can be."""
        ...


@runtime_checkable
class GuardedPointers(Protocol):
    """For stores that have rules about refs on record, and decide by them in the transaction of a swap."""

    def make_guard(self) -> RefGuard:
        """The guard that honours them."""
        ...


class FoundNames(NamedTuple):
    """Some of the names that were searched for, and how many there are."""

    names: list[TableName]
    matching: int


@runtime_checkable
class PointersWithTurns(TurnKeeper, Protocol):
    """For stores in which writers take turns; a turn is found with the pointer, at no cost of its own."""

    def read_with_turn(self, table: TableName) -> tuple[str | None, Turn | None]:
        """As `read`, and the turn that somebody has on the table now."""
        ...


@runtime_checkable
class BranchTablePointers(Protocol):
    """For stores that keep tables which were created on a branch of the lake out of the lists of tables."""

    @property
    def branch_tables(self) -> Pointers | None:
        """Their pointers: found by name as those of all tables, but listed here alone."""
        ...

    def listing(
        self, tables: Collection[TableName], of_branches: Collection[TableName] = ()
    ) -> AbstractContextManager[None]:
        """Have tables in lists, and those of branches not, in one step with the swap of this thread in the block."""
        ...


@runtime_checkable
class PointersWithHooks(Protocol):
    """For stores with transactions, in which others may write rows of their own with a swap."""

    def before_commit(self, hook: Callable[[Any, Moved], None]) -> AbstractContextManager[None]:
        """Run a hook in the transaction of every change that this thread makes in the block.

        It is given the connection and the pointers that moved; what it raises rolls the change back.
        """
        ...


@runtime_checkable
class NeighbouringNames(Protocol):
    """For stores that can find the names next to a name without listing all."""

    def names_around(self, table: TableName, most: int) -> list[TableName]:
        """The names of this kind next to a name in its namespace, at most so many on each side."""
        ...


@runtime_checkable
class NeighbouringNamespaces(Protocol):
    """For stores that can find the namespaces next to one without listing all."""

    def namespaces_around(self, namespace: Namespace, most: int) -> list[Namespace]:
        """The namespaces next to one, at most so many on each side."""
        ...


@runtime_checkable
class StagedPointers(Protocol):
    """For stores whose pointers are files that `create` and `swap` write themselves, under names of their own.

    Their names are locations: nothing can be renamed.
    """

    def stage(self, table: TableName, expected: str | None, data: bytes) -> str:
        """Stage the content of a new version on this thread; returns the pointer that a swap or create will set."""
        ...


def missing_catalog(
    message: str,
    name: str,
    *,
    kind: str = CATALOG,
    known: Iterable[str] = (),
    hints: Sequence[str] = (CREATE_HINT,),
) -> NotFoundError:
    """The error for a missing catalog that is not to be created."""
    return NotFoundError(message, kind=kind, name=name, known=known, hints=hints)


class UnopenedStore:
    """A store that is known to be there, and that is opened once, on first use."""

    def __init__(self, open_store: Callable[[], PointerStore], *, atomic_tables: bool) -> None:
        self.atomic_tables = atomic_tables
        self._open_store = open_store
        self._opened: PointerStore | None = None
        self._lock = threading.Lock()

    def opened(self) -> PointerStore:
        """The store; whatever opening it raises."""
        with self._lock:
            if self._opened is None:
                self._opened = self._open_store()
            return self._opened

    def close(self) -> None:
        """Close the store if it was opened."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
