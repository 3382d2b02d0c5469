"""The pointer: one string per table that says which metadata file is current, moved only by compare-and-swap."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol, runtime_checkable

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
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
"""The kinds of NotFoundErrors for catalogs: there is none, or there are only others in the same database."""
CREATE_HINT: Final = "connect(…, create=True) makes a new one"


class PointerSwap(msgspec.Struct, frozen=True):
    """One pointer that is to move, and what it must be now: None for a name that must be free, of tables and views."""

    table: TableName
    expected: str | None
    new: str


class Pointers(Protocol):
    """Pointers of one kind by name: those of tables, or those of views.

    Every method raises UnavailableError if and only if the store could not answer and it is certain that nothing was
    changed, and another of NOTHING_CHANGED if and only if it refuses the call, and nothing was changed. Any other
    exception from a method that changes something leaves the outcome in doubt.
    """

    atomic_tables: bool
    """Whether several pointers can move in one step."""

    def read(self, table: TableName) -> str | None:
        """The table's pointer; None if there is no such table."""
        ...

    def create(self, table: TableName, pointer: str) -> bool:
        """True if and only if the name was free, of tables and of views, and now has this pointer; durably."""
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
        """True if and only if the table had a pointer, the new name was free, and the pointer goes by that name now."""
        ...

    def list_names(self, namespace: Namespace) -> list[TableName]:
        """The names directly in a namespace, sorted."""
        ...


class PointerStore(Pointers, Protocol):
    """The pointers of tables, those of views where the store has them, and namespaces with properties.

    Tables and views share their names: what one has taken, the other cannot have.
    """

    @property
    def views(self) -> Pointers | None:
        """The pointers of views; None if the store can hold none."""
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
        """True if and only if the namespace exists and has these changes now; what others set stays.

        A namespace that existed only by what is in it exists by itself from then on.
        """
        ...

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All namespaces below this one, at every level, sorted; below the empty one are all."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


@runtime_checkable
class NeighbouringNames(Protocol):
    """What stores have that find the names next to one without reading all of them."""

    def names_around(self, table: TableName, most: int) -> list[TableName]:
        """Some names of the store's kind next to a name in its namespace, at most so many on each side."""
        ...


@runtime_checkable
class NeighbouringNamespaces(Protocol):
    """What stores have that find the namespaces next to one without reading all of them."""

    def namespaces_around(self, namespace: Namespace, most: int) -> list[Namespace]:
        """Some namespaces next to one, at most so many on each side."""
        ...


@runtime_checkable
class StagedPointers(Protocol):
    """What stores have whose pointers are files that `create` and `swap` themselves make, under names of the store.

    Their names stand for places: nothing can be renamed.
    """

    def stage(self, table: TableName, expected: str | None, data: bytes) -> str:
        """The pointer that these bytes get by a swap from the expected one, or by a create, on this thread."""
        ...


def missing_catalog(
    message: str,
    name: str,
    *,
    kind: str = CATALOG,
    known: Iterable[str] = (),
    hints: Sequence[str] = (CREATE_HINT,),
) -> NotFoundError:
    """The error for a catalog that is missing and was not to be created: looking changes nothing."""
    return NotFoundError(message, kind=kind, name=name, known=known, hints=hints)
