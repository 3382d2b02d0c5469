"""Namespaces as objects. A namespace exists if it has an object or contains anything."""

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.object_store.format import NamespaceObject, ObjectKind, new_stamp, parse_namespace, render
from bergline.catalog.object_store.names import NAMESPACES, POINTERS, below, levels_of, namespace_object
from bergline.catalog.object_store.pointers import PointerObjects
from bergline.errors import BerglineError, FormatError, StorageError, UnsupportedError
from bergline.io.conditional_objects import StoredObject

_THREADS = 16
_Name = TypeVar("_Name")


class ObjectNamespaces:
    """The namespaces of a catalog, and listings of their contents."""

    def __init__(self, pointers: PointerObjects) -> None:
        self._pointers = pointers
        self._objects = pointers.objects

    def exists(self, namespace: Namespace) -> bool:
        """Whether it or anything in it exists."""
        return self._read(namespace)[1] is not None or self._holds_anything(namespace)

    def properties(self, namespace: Namespace) -> dict[str, str] | None:
        """Its properties; None if there is no such namespace."""
        properties = self._read(namespace)[1]
        return properties if properties is not None else {} if self._holds_anything(namespace) else None

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        """True if and only if it did not exist and now does."""
        attempts = self._pointers.attempts(namespace)
        while True:
            next(attempts)
            stored, found = self._read(namespace)
            if found is not None or self._holds_anything(namespace):
                return False
            if self._write(namespace, stored, properties):
                return True

    def update(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """True if and only if it exists and has these changes now."""
        attempts = self._pointers.attempts(namespace)
        while True:
            next(attempts)
            stored, before = self._read(namespace)
            if before is None and not self._holds_anything(namespace):
                return False
            after = {k: v for k, v in (before or {}).items() if k not in removals} | dict(changes)
            if self._write(namespace, stored, after):
                return True

    def drop(self, namespace: Namespace) -> bool:
        """True if and only if it existed, held nothing, and is gone.

        Its object is removed first, and restored if something is found in the namespace after all: whatever is created
        after that check finds no namespace.
        """
        attempts = self._pointers.attempts(namespace)
        while True:
            next(attempts)
            stored, properties = self._read(namespace)
            if properties is None or self._holds_anything(namespace):
                return False
            gone = self._write(namespace, stored, None)
            if gone is not None:
                return self._stays_gone(namespace, gone, properties)

    def list_below(self, namespace: Namespace) -> list[Namespace]:
        """All namespaces below one, at every level, sorted."""
        own = self._listed(NAMESPACES, namespace)
        found = set(_which(lambda n: self._read(n)[1] is not None, own))
        # a namespace with an object of its own exists whatever it contains
        tables = [t for t in self._tables(namespace) if t.namespace not in found]
        found |= {t.namespace for t in _which(lambda t: self._is_taken(t, *ObjectKind), tables)}
        return sorted({n[: i + 1] for n in found for i in range(len(namespace), len(n))})

    def list_names(self, namespace: Namespace, kind: ObjectKind) -> list[TableName]:
        """The names of one kind directly in a namespace, sorted."""
        tables = [t for t in self._tables(namespace) if t.namespace == namespace]
        return sorted(_which(lambda t: self._is_taken(t, kind), tables))

    def _stays_gone(self, namespace: Namespace, gone: StoredObject, properties: Mapping[str, str]) -> bool:
        """Check again; restore the namespace if something was found in it."""
        try:
            if not self._holds_anything(namespace):
                return True
            self._write(namespace, gone, properties)
        except BerglineError as error:
            raise StorageError(
                f"cannot find out whether namespace `{'.'.join(namespace)}` was dropped: {error}", hints=error.hints
            ) from error
        return False

    def _holds_anything(self, namespace: Namespace) -> bool:
        nested = _which(lambda n: self._read(n)[1] is not None, self._listed(NAMESPACES, namespace))
        return bool(nested or _which(lambda t: self._is_taken(t, *ObjectKind), self._tables(namespace)))

    def _is_taken(self, table: TableName, *kinds: ObjectKind) -> bool:
        """Whether a name has an entry of these kinds; an unreadable pointer counts as a table."""
        try:
            entry = self._pointers.look(table).entry
        except (FormatError, UnsupportedError):
            return ObjectKind.TABLE in kinds
        return entry is not None and entry.type in kinds

    def _tables(self, namespace: Namespace) -> list[TableName]:
        return [TableName(n[:-1], n[-1]) for n in self._listed(POINTERS, namespace) if len(n) > 1]

    def _listed(self, directory: str, namespace: Namespace) -> list[tuple[str, ...]]:
        names = self._objects.names(below(directory, namespace))
        return [levels for name in names if (levels := levels_of(name)) is not None]

    def _read(self, namespace: Namespace) -> tuple[StoredObject | None, dict[str, str] | None]:
        """The namespace's object, and its properties if it was not dropped."""
        key = namespace_object(namespace)
        stored = self._objects.read(key)
        found = parse_namespace(stored.data, self._objects.location(key)) if stored else None
        return stored, found.properties if found else None

    def _write(
        self, namespace: Namespace, stored: StoredObject | None, properties: Mapping[str, str] | None
    ) -> StoredObject | None:
        """Replace the object that was read; None if and only if it changed meanwhile."""
        key = namespace_object(namespace)
        kept = None if properties is None else dict(properties)
        data = render(NamespaceObject(stamp=new_stamp(), name=list(namespace), properties=kept))
        return self._objects.replace(key, stored, data) if stored else self._objects.create(key, data)


def _which(is_so: Callable[[_Name], bool], names: list[_Name]) -> list[_Name]:
    """Filter names by a predicate that takes a request each, in parallel."""
    if not names:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(names))) as pool:
        return [name for name, so in zip(names, pool.map(is_so, names), strict=True) if so]
