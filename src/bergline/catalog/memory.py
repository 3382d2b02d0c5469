"""Pointers in memory, for one process."""

import threading
from collections.abc import Sequence

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer_store import PointerSwap


class MemoryPointerStore:
    """PointerStore over dictionaries under one lock."""

    atomic_tables = True

    def __init__(self) -> None:
        self._pointers: dict[TableName, str] = {}
        self._namespaces: dict[Namespace, dict[str, str]] = {}
        self._lock = threading.Lock()

    def read(self, table: TableName) -> str | None:
        """The table's pointer."""
        return self._pointers.get(table)

    def create(self, table: TableName, pointer: str) -> bool:
        """Set the pointer if there is none."""
        with self._lock:
            return self._pointers.setdefault(table, pointer) is pointer

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Move the pointer if it is still as expected."""
        with self._lock:
            if self._pointers.get(table) != expected:
                return False
            self._pointers[table] = new
            return True

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """Move all pointers if all are still as expected."""
        with self._lock:
            if any(self._pointers.get(s.table) != s.expected for s in swaps):
                return False
            self._pointers.update({s.table: s.new for s in swaps})
            return True

    def drop(self, table: TableName) -> bool:
        """Remove the pointer."""
        with self._lock:
            return self._pointers.pop(table, None) is not None

    def rename(self, table: TableName, new: TableName) -> bool:
        """Move the pointer to another name."""
        with self._lock:
            if table not in self._pointers or new in self._pointers:
                return False
            self._pointers[new] = self._pointers.pop(table)
            return True

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """Tables in a namespace."""
        return sorted(t for t in self._pointers if t.namespace == namespace)

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> bool:
        """Add a namespace."""
        with self._lock:
            if self._exists(namespace):
                return False
            self._namespaces[namespace] = dict(properties)
            return True

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Remove an empty namespace."""
        with self._lock:
            holds = any(n != namespace and n[: len(namespace)] == namespace for n in self._all())
            if holds or any(t.namespace == namespace for t in self._pointers):
                return False
            return self._namespaces.pop(namespace, None) is not None

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether it or anything in it exists."""
        with self._lock:
            return self._exists(namespace)

    def list_namespaces(self) -> list[Namespace]:
        """All namespaces."""
        with self._lock:
            return sorted({n[: i + 1] for n in self._all() for i in range(len(n))})

    def close(self) -> None:
        """Nothing to close."""

    def _all(self) -> set[Namespace]:
        return {*self._namespaces, *(t.namespace for t in self._pointers)}

    def _exists(self, namespace: Namespace) -> bool:
        return any(n[: len(namespace)] == namespace for n in self._all())
