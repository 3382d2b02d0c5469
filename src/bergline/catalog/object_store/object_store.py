"""The pointer store in an object store: one small object per name, changed only by conditional requests."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import eq

from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.object_store.commits import PointerCommits
from bergline.catalog.object_store.format import (
    SIZED_VERSION,
    CatalogMark,
    Entry,
    ObjectKind,
    new_stamp,
    parse_mark,
    render,
)
from bergline.catalog.object_store.names import MARK
from bergline.catalog.object_store.namespaces import ObjectNamespaces
from bergline.catalog.object_store.pointers import PENDING_TIMEOUT_S, PointerChange, PointerObjects
from bergline.catalog.pointer.pointer_store import PointerSwap, missing_catalog
from bergline.errors import UnsupportedError
from bergline.io.conditional_objects import ConditionalObjects


class ObjectPointers:
    """Pointers of tables, or of views."""

    atomic_tables = True

    def __init__(self, pointers: PointerObjects, kind: ObjectKind) -> None:
        self._pointers = pointers
        self._commits = PointerCommits(pointers)
        self._namespaces = ObjectNamespaces(pointers)
        self._kind = kind

    def read(self, table: TableName) -> str | None:
        entry = self._pointers.look(table).entry
        return entry.metadata_location if self._is_ours(entry) and entry else None

    def create(self, table: TableName, pointer: str) -> bool:
        """Create the object, or replace one left by a drop."""
        return self._pointers.change(PointerChange(table, lambda entry: entry is None, Entry(self._kind, pointer)))

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Replace the object if it has the expected pointer."""
        return self._pointers.change(self._change(PointerSwap(table, expected, new)))

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """Replace several objects, decided by a commit record."""
        if len(swaps) == 1:
            return self._pointers.change(self._change(swaps[0]))
        return self._commits.change_all([self._change(swap) for swap in swaps])

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        """Replace the object by one without a pointer: not every store has conditional deletes."""

        def allowed(entry: Entry | None) -> bool:
            return self._is_ours(entry) and (expected is None or entry == Entry(self._kind, expected))

        return self._pointers.change(PointerChange(table, allowed, None))

    def rename(self, table: TableName, new: TableName) -> bool:
        """Move the pointer from one object to another, atomically."""
        attempts = self._pointers.attempts(table, new)
        while table != new:
            next(attempts)
            entry = self._pointers.look(table).entry
            if not self._is_ours(entry) or self._pointers.look(new).entry is not None:
                return False
            leave = PointerChange(table, partial(eq, entry), None)
            arrive = PointerChange(new, lambda found: found is None, entry)
            if self._commits.change_all([leave, arrive]):
                return True
        return False

    def list_names(self, namespace: Namespace) -> list[TableName]:
        """List the objects; those whose size does not say what they hold are read."""
        return self._namespaces.list_names(namespace, self._kind)

    def names_around(self, table: TableName, most: int) -> list[TableName]:
        """The names that begin like a name, and those behind it: of one page of a listing each."""
        return self._namespaces.names_around(table, self._kind, most)

    def _change(self, swap: PointerSwap) -> PointerChange:
        before = None if swap.expected is None else Entry(self._kind, swap.expected)
        return PointerChange(swap.table, partial(eq, before), Entry(self._kind, swap.new))

    def _is_ours(self, entry: Entry | None) -> bool:
        return entry is not None and entry.type is self._kind


class ObjectPointerStore(ObjectPointers):
    """PointerStore in a directory of an object store; `pending_timeout_s` is how long to wait for a dead writer.

    UnsupportedError if a newer bergline wrote the catalog, or the store ignores conditions; NotFoundError if there is
    no catalog and `create` is not set.
    """

    def __init__(
        self, objects: ConditionalObjects, *, pending_timeout_s: float = PENDING_TIMEOUT_S, create: bool = True
    ) -> None:
        super().__init__(PointerObjects(objects, pending_timeout_s=pending_timeout_s), ObjectKind.TABLE)
        self.views = ObjectPointers(self._pointers, ObjectKind.VIEW)
        found = objects.read(MARK)
        if found is None:
            if not create:
                raise missing_catalog(f"no catalog at `{objects.directory}`: no {MARK} in it", objects.directory)
            _check_conditions(objects)
            made = objects.create(MARK, render(CatalogMark(stamp=new_stamp())))
            found = made or objects.read(MARK)  # another process, perhaps of another version, may have been first
        if found is None:
            raise missing_catalog(f"no catalog at `{objects.directory}`: {MARK} is gone", objects.directory)
        self._pointers.sized = parse_mark(found.data, objects.location(MARK)).format_version >= SIZED_VERSION

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        return self._namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Replace the object by one without properties, if the namespace is empty."""
        return self._namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self._namespaces.exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str] | None:
        return self._namespaces.properties(namespace)

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        return self._namespaces.update(namespace, changes, removals)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        return self._namespaces.list_below(below)

    def namespaces_around(self, namespace: Namespace, most: int) -> list[Namespace]:
        """Those with the same parent, of which no tables are listed."""
        return self._namespaces.siblings(namespace, most)

    def close(self) -> None:
        """Nothing to close."""


def _check_conditions(objects: ConditionalObjects) -> None:
    """Check, before a catalog is created, that the store respects conditions."""
    name, refused = f"check-{new_stamp()}.json", False
    first = objects.create(name, b"1")
    try:
        if first and objects.replace(name, first, b"2"):
            refused = objects.create(name, b"3") is None and objects.replace(name, first, b"4") is None
    finally:
        objects.delete(name)
    if not refused:
        raise UnsupportedError(
            f"expected a store that writes under conditions (If-None-Match, If-Match) for the catalog "
            f"{objects.directory}, found one that does not",
            hints=["keep the catalog in SQLite or PostgreSQL, and only the warehouse in this store"],
        )
