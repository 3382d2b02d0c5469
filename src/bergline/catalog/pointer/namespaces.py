"""Namespaces of a pointer catalog, and the locations of new tables and views."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

from bergline.arguments import shown
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_digests import KeptDigests, MetadataDigests
from bergline.catalog.pointer.named_pointers import NamedPointers, NameKind, check_namespace
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, GuardedPointers, PointerStore, UnopenedStore
from bergline.catalog.protection.guard import RefGuard
from bergline.catalog.status_checks import status_check_waits
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    InvalidInputError,
    NotEmptyError,
    NotFoundError,
    RefusedError,
)
from bergline.format.metadata.gzip import MAX_METADATA_BYTES
from bergline.io.fileio import FileIO
from bergline.io.local import real_location
from bergline.io.locations import absolute_location, is_absolute, join, normalized, scheme_of
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.protection import table_rules_guard
else:  # not needed to read
    table_rules_guard = LazyModule("bergline.catalog.protection.table_rules_guard")

_NOT_IN_DIRECTORIES = frozenset("/\\%?#") | frozenset(map(chr, (*range(32), 127)))
_MAX_DIRECTORY_BYTES = 255  # the limit of most file systems
_UNIQUE = 8
_LOOKS = 3
_LOOK_AGAIN_S = 0.1
_HIDDEN_PROPERTY = "exists"  # how the shared SQL layout marks a namespace


class PointerNamespaces:
    """Namespaces with properties, over any PointerStore."""

    def __init__(
        self,
        store: PointerStore | UnopenedStore,
        io: FileIO,
        warehouse: str | None,
        *,
        own_places: Collection[str] = (),
        max_metadata_bytes: int = MAX_METADATA_BYTES,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._given_store = store
        self._closed = False
        self.atomic_tables = store.atomic_tables
        self.metadata_files_stay = False
        self.io = io
        self._guard: RefGuard | None = None
        self._warehouse = warehouse
        self._own_places = tuple(own_places)
        self.max_metadata_bytes = max_metadata_bytes
        self._clock_ms = clock_ms
        self._sleep = sleep

    @property
    def store(self) -> PointerStore:
        """The store; InvalidInputError after `close`."""
        if self._closed:
            raise InvalidInputError("expected an open lake, found one that was closed")
        return self._store

    @property
    def _store(self) -> PointerStore:
        given = self._given_store
        return given.opened() if isinstance(given, UnopenedStore) else given

    @property
    def guard(self) -> RefGuard:
        """What decides on changes of refs: the store's own guard, or one for the rules of tables alone."""
        if self._guard is None:
            store = self._store
            self._guard = (
                store.make_guard() if isinstance(store, GuardedPointers) else table_rules_guard.TableRulesGuard()
            )
        return self._guard

    @guard.setter
    def guard(self, guard: RefGuard) -> None:
        self._guard = guard

    @property
    def warehouse(self) -> str | None:
        """The default parent of new locations, unless a namespace has its own."""
        return self._warehouse

    def close(self) -> None:
        """Close the store; idempotent."""
        if not self._closed:
            self._closed = True
            self._given_store.close()

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        _check_properties(properties)
        _check_home(namespace, properties)
        store = self.store
        was_there = store.namespace_exists(namespace)  # so that it is not mistaken for ours after a lost response

        def is_created() -> bool:
            found = store.namespace_properties(namespace)
            return found is not None and not was_there and properties.items() <= found.items()

        def create() -> bool:
            return store.create_namespace(namespace, properties)

        if not self._settled(create, is_created, namespace, "created"):
            name = ".".join(namespace)
            raise AlreadyExistsError(f"namespace `{name}` exists already", kind="namespace", name=name)

    def drop_namespace(self, namespace: Namespace) -> None:
        check_namespace(self.store, namespace)
        store = self.store

        def is_gone() -> bool:
            return not store.namespace_exists(namespace)

        if not self._settled(lambda: store.drop_namespace(namespace), is_gone, namespace, "dropped"):
            raise NotEmptyError(f"cannot drop namespace `{'.'.join(namespace)}`: it is not empty")

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self.store.namespace_exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        found = self.store.namespace_properties(namespace)
        if found is None:
            check_namespace(self.store, namespace)
        return found or {}

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        _check_properties((*changes, *removals))
        _check_home(namespace, changes)
        if both := sorted(set(changes) & set(removals)):
            raise InvalidInputError(f"expected properties either set or removed, found `{both[0]}` in both")
        store = self.store

        def update() -> bool:
            return store.update_namespace(namespace, changes, removals)

        if not self._settled(update, update, namespace, "changed"):
            check_namespace(store, namespace)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        if below:
            check_namespace(self.store, below)
        return self.store.list_namespaces(below)

    def namespace_location(self, namespace: Namespace, properties: Mapping[str, str]) -> str | None:
        """The location for new tables of a namespace with these properties; None without `location` and warehouse."""
        if properties.get("location"):
            _check_home(namespace, properties)
            return absolute_location(properties["location"])
        if self._warehouse is None:
            return None
        return join(self._warehouse, *map(_directory, namespace))

    def default_location(self, name: TableName) -> str:
        """A directory below the namespace's `location`, or below the warehouse with one directory per level.

        The directory of a table that was renamed, dropped without its files, or created by another catalog is not
        reused: a new one beside it keeps the two apart.
        """
        home, directory = self._home(name.namespace), _directory(name.name)
        if scheme_of(home) == "file":
            _check_directories(name)
        if not self._has_metadata(join(home, directory)):
            return join(home, directory)
        return join(home, f"{_shortened(directory, _MAX_DIRECTORY_BYTES - _UNIQUE - 1)}-{uuid4().hex[:_UNIQUE]}")

    def check_location(self, name: TableName, location: str) -> None:
        """Look for metadata, which may belong to a table that is being created under this very name."""
        for _ in range(_LOOKS):
            if not self._has_metadata(location):
                return
            self._named("table").check_free(name)
            self._sleep(_LOOK_AGAIN_S)
        raise RefusedError(
            f"cannot create `{name}` at {location}: metadata of another table is there",
            hints=[
                "to have that table, register it by its newest metadata file",
                "to be rid of a table that was dropped, delete its files; or give another location",
            ],
        )

    def check_free(self, name: TableName) -> None:
        """Refuse a name that is taken, or whose namespace does not exist."""
        check_namespace(self.store, name.namespace)
        self._named("table").check_free(name)

    def is_own_file(self, location: str) -> bool:
        """Whether a file is one of the store's own locations, or below one."""
        asked = _real(location)
        return any(asked == place or asked.startswith(f"{place}/") for place in map(_real, self._own_places))

    def _kept_digests(self) -> MetadataDigests | None:
        """The digests of metadata files; None if the store keeps none."""
        store = self._store
        return store.digests if isinstance(store, KeptDigests) else None

    def _named(self, kind: NameKind, properties: Mapping[str, str] | None = None) -> NamedPointers:
        return NamedPointers(self.store, kind, partial(self._status_check_waits, properties or {}))

    def _home(self, namespace: Namespace) -> str:
        """The directory of a namespace."""
        home = self.namespace_location(namespace, self.store.namespace_properties(namespace) or {})
        if home is None:
            check_namespace(self.store, namespace)
            raise InvalidInputError(
                f"expected a warehouse for what is new in namespace `{'.'.join(namespace)}`, found none",
                hints=["connect with `warehouse`, or give a location, or the property `location` to the namespace"],
            )
        return home

    def _has_metadata(self, location: str) -> bool:
        try:
            return any(".metadata.json" in found for found in self.io.list(join(location, "metadata")))
        except NotFoundError:
            return False

    def _settled(
        self, change: Callable[[], bool], is_done: Callable[[], bool], namespace: Namespace, what: str
    ) -> bool:
        """Make a change; after a lost response, check whether it was made, and repeat it if not."""
        try:
            return change()
        except NOTHING_CHANGED:
            raise
        except Exception as error:
            name = ".".join(namespace)
            for wait in self._status_check_waits({}):
                try:
                    if is_done() or change() or is_done():
                        return True
                    break
                except (BerglineError, OSError):
                    wait()
            raise CommitUnknownError(
                f"cannot find out whether namespace `{name}` was {what}: {error}",
                table=name,
                metadata_location=None,
            ) from error

    def _status_check_waits(self, properties: Mapping[str, str]) -> Iterator[Callable[[], None]]:
        return status_check_waits(properties, self._sleep)


def _check_properties(names: Collection[str]) -> None:
    if _HIDDEN_PROPERTY in names:
        raise InvalidInputError(f"expected another name for a property of a namespace, found `{_HIDDEN_PROPERTY}`")


def _check_home(namespace: Namespace, properties: Mapping[str, str]) -> None:
    """Refuse a location for new tables that depends on the process."""
    home = properties.get("location")
    if home and not is_absolute(home):
        raise InvalidInputError(
            f"expected an absolute location for namespace `{'.'.join(namespace)}`, found {shown(home)}"
        )


def _check_directories(name: TableName) -> None:
    """Refuse names that are no valid file names."""
    for part in (*name.namespace, name.name):
        if (size := len(_directory(part).encode())) > _MAX_DIRECTORY_BYTES:
            raise InvalidInputError(
                f"expected a name of up to {_MAX_DIRECTORY_BYTES} bytes on a disk, found {size} in `{part[:40]}…`",
                hints=["choose a shorter one, or give a location"],
            )


def _real(location: str) -> str:
    return real_location(location) if scheme_of(location) == "file" else normalized(location)


def _shortened(directory: str, most: int) -> str:
    return directory.encode()[:most].decode(errors="ignore")


def _directory(name: str) -> str:
    """A name as a single directory: without characters that end it, or that end the location for other readers."""
    dots = name in {".", ".."}
    return "".join(f"%{ord(c):02X}" if c in _NOT_IN_DIRECTORIES or dots else c for c in name)
