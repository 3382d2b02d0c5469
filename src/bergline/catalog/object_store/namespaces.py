"""Namespaces as objects. A namespace exists if it has an object or contains anything."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.object_store.format import Held, NamespaceObject, ObjectKind, held_by, new_stamp, parse_namespace
from bergline.catalog.object_store.names import (
    ENDING,
    NAMESPACES,
    POINTERS,
    beginning,
    below,
    levels_of,
    namespace_object,
    pointer_object,
)
from bergline.catalog.object_store.pointers import PointerObjects
from bergline.errors import BerglineError, FormatError, StorageError, UnsupportedError
from bergline.io.conditional_objects import ListedObject, StoredObject

_THREADS = 16
_SAME_BEGINNING = 3
"""How many characters at the end of a missing name may differ from those suggested before it."""
_HELD = {ObjectKind.TABLE: Held.TABLE, ObjectKind.VIEW: Held.VIEW}
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
        found = {name for page in self._namespaces_below(namespace) for name in page}
        # a namespace with an object of its own exists whatever it contains
        found |= {table.namespace for page in self._tables_below(namespace, found) for table in page}
        return sorted({n[: i + 1] for n in found for i in range(len(namespace), len(n))})

    def list_names(self, namespace: Namespace, kind: ObjectKind) -> list[TableName]:
        """The names of one kind directly in a namespace, sorted."""
        listed, _ = self._objects.children(below(POINTERS, namespace))
        return sorted(self._taken(listed, kind, in_namespace=namespace))

    def names_around(self, table: TableName, kind: ObjectKind, most: int) -> list[TableName]:
        """Names of one kind next to a name, at most so many on each side, from the first page of two listings."""
        directory, found = below(POINTERS, table.namespace), list[TableName]()
        start = beginning(table, max(len(table.name) - _SAME_BEGINNING, 1))
        for after, is_there in ((start, table.__gt__), (pointer_object(table), table.__lt__)):
            page = next(self._objects.pages(directory, after), [])
            names = {name: listed for listed in page if (name := _table(listed.name)) and is_there(name)}
            near = sorted(name for name in names if name.namespace == table.namespace)
            some = near[-most:] if after == start else near[:most]
            found += self._taken([names[name] for name in some], kind, in_namespace=table.namespace)
        return found

    def siblings(self, namespace: Namespace, most: int) -> list[Namespace]:
        """The namespaces next to one with the same parent, by their objects and by what their names contain."""
        parent = namespace[:-1]
        own, _ = self._objects.children(below(NAMESPACES, parent))
        _, with_names = self._objects.children(below(POINTERS, parent))
        keys = [found.name for found in own if self._held(found) is not Held.NOTHING]
        levels = {levels_of(key) for key in (*keys, *(f"{directory}{ENDING}" for directory in with_names))}
        found = sorted(name for name in levels if name is not None and len(name) == len(namespace))
        place = bisect_left(found, namespace)
        return found[max(place - most, 0) : place + most]

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
        """Whether anything is in it, looked for page by page."""
        return any(self._namespaces_below(namespace)) or any(self._tables_below(namespace))

    def _namespaces_below(self, namespace: Namespace) -> Iterator[list[Namespace]]:
        """The namespaces below one that have an object of their own, page by page."""
        for page in self._objects.pages(below(NAMESPACES, namespace)):
            held = {levels: self._held(found) for found in page if (levels := levels_of(found.name)) is not None}
            doubtful = [name for name, what in held.items() if what not in {Held.NAMESPACE, Held.NOTHING}]
            read = _which(lambda n: self._read(n)[1] is not None, doubtful)
            yield [*read, *(name for name, what in held.items() if what is Held.NAMESPACE)]

    def _tables_below(self, namespace: Namespace, but_in: Collection[Namespace] = ()) -> Iterator[list[TableName]]:
        """The tables and views in a namespace and below it, page by page; but those in some namespaces."""
        for page in self._objects.pages(below(POINTERS, namespace)):
            yield self._taken([f for f in page if (t := _table(f.name)) and t.namespace not in but_in], *ObjectKind)

    def _taken(
        self, listed: Iterable[ListedObject], *kinds: ObjectKind, in_namespace: Namespace | None = None
    ) -> list[TableName]:
        """The names of listed objects that have an entry of these kinds; read where the size does not say so."""
        tables = {table: self._held(found) for found in listed if (table := _table(found.name)) is not None}
        if in_namespace is not None:
            tables = {table: held for table, held in tables.items() if table.namespace == in_namespace}
        wanted = {_HELD[kind] for kind in kinds}
        doubtful = [table for table, held in tables.items() if held not in {Held.TABLE, Held.VIEW, Held.NOTHING}]
        read = _which(lambda t: self._is_taken(t, *kinds), doubtful)
        return [*read, *(table for table, held in tables.items() if held in wanted)]

    def _held(self, found: ListedObject) -> Held:
        return held_by(found.size) if self._pointers.sized else Held.UNDECIDED

    def _is_taken(self, table: TableName, *kinds: ObjectKind) -> bool:
        """Whether a name has an entry of these kinds; an unreadable pointer counts as a table."""
        try:
            entry = self._pointers.look(table).entry
        except (FormatError, UnsupportedError):
            return ObjectKind.TABLE in kinds
        return entry is not None and entry.type in kinds

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
        data = self._pointers.rendered(NamespaceObject(stamp=new_stamp(), name=list(namespace), properties=kept))
        return self._objects.replace(key, stored, data) if stored else self._objects.create(key, data)


def _table(name: str) -> TableName | None:
    """The table or view of an object; None if it is not one of ours."""
    levels = levels_of(name)
    return TableName(levels[:-1], levels[-1]) if levels is not None and len(levels) > 1 else None


def _which(is_so: Callable[[_Name], bool], names: list[_Name]) -> list[_Name]:
    """Filter names by a predicate that takes a request each, in parallel."""
    if not names:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(names))) as pool:
        return [name for name, so in zip(names, pool.map(is_so, names), strict=True) if so]
