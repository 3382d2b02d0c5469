"""The pointer: one string per table that says which metadata file is current, moved only by compare-and-swap."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import Namespace, TableName


class PointerSwap(msgspec.Struct, frozen=True):
    """One pointer that is to move, and what it must be now."""

    table: TableName
    expected: str
    new: str


class PointerStore(Protocol):
    """Keeps pointers and namespaces.

    Every method raises UnavailableError if and only if the store could not answer and it is certain that nothing was
    changed. Any other exception from a method that changes something leaves the outcome in doubt.
    """

    atomic_tables: bool
    """Whether several pointers can move in one step."""

    def read(self, table: TableName) -> str | None:
        """The table's pointer; None if there is no such table."""
        ...

    def create(self, table: TableName, pointer: str) -> bool:
        """True if and only if the table had no pointer and now has this one, atomically and durably."""
        ...

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """True if and only if the pointer was `expected` and is now `new`, atomically and durably.

        False if and only if the pointer was something else, or the table does not exist; nothing was changed then.
        Any doubt (timeout, lost connection) is an exception, never False.
        """
        ...

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """True if and only if every pointer was as expected and all have moved, atomically and durably.

        False if and only if one was not, and then none has moved. Only for stores with `atomic_tables`.
        """
        ...

    def drop(self, table: TableName) -> bool:
        """True if and only if the table had a pointer and now has none."""
        ...

    def rename(self, table: TableName, new: TableName) -> bool:
        """True if and only if the table had a pointer, the new name had none, and the pointer goes by that name now."""
        ...

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """The tables directly in a namespace, sorted."""
        ...

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> bool:
        """True if and only if the namespace did not exist and now does."""
        ...

    def drop_namespace(self, namespace: Namespace) -> bool:
        """True if and only if the namespace existed, held nothing, and is gone."""
        ...

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether the namespace, or anything in it, exists."""
        ...

    def list_namespaces(self) -> list[Namespace]:
        """All namespaces at every level, sorted."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...
