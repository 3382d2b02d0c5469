"""The catalog over a pointer store: writes the next metadata file, then swaps the pointer to it."""

import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from bergline.catalog.catalog import Committed, Conflicted, LoadedTable, Outcome, TableChange, Unknown
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_files import MetadataFiles
from bergline.catalog.pointer_store import NOTHING_CHANGED, PointerStore, PointerSwap
from bergline.catalog.settle import Verdict, settle_swaps
from bergline.catalog.winner import describe_change
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.format.apply import apply_updates
from bergline.format.metadata import TableMetadata, positive_property
from bergline.format.requirements import check_requirements
from bergline.format.updates import AddSnapshot, AssignUuid
from bergline.io.fileio import FileIO
from bergline.io.locations import join

_NOT_IN_DIRECTORIES = frozenset("/\\%?#") | frozenset(map(chr, (*range(32), 127)))


class PointerCatalog:
    """Catalog over any PointerStore; a commit is right only if the whole base is still current."""

    def __init__(
        self,
        store: PointerStore,
        io: FileIO,
        warehouse: str,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._store = store
        self._closed = False
        self.atomic_tables = store.atomic_tables
        self.io = io
        self._files = MetadataFiles(io)
        self._warehouse = warehouse
        self._clock_ms = clock_ms
        self._sleep = sleep

    @property
    def store(self) -> PointerStore:
        """The store; InvalidInputError after `close`."""
        if self._closed:
            raise InvalidInputError("expected an open lake, found one that was closed")
        return self._store

    def load_table(self, name: TableName) -> LoadedTable:
        """The table now."""
        pointer = self.pointer(name)
        try:
            metadata = self._files.load(pointer)
        except NotFoundError as error:
            raise NotFoundError(
                f"table `{name}` points to {pointer}, which does not exist", kind="file", name=pointer
            ) from error
        return LoadedTable(name, metadata, pointer)

    def pointer(self, name: TableName) -> str:
        """What the store holds."""
        pointer = self.store.read(name)
        if pointer is None:
            raise self._table_not_found(name)
        return pointer

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        """Write the first metadata file, then create the pointer."""
        self._check_namespace(name.namespace)
        if self.store.read(name) is not None:
            raise AlreadyExistsError(f"table `{name}` exists already", kind="table", name=str(name))
        location = self._files.write(metadata, None)
        if not self._create_pointer(name, location, metadata):
            self._files.discard(location)
            raise AlreadyExistsError(f"table `{name}` exists already", kind="table", name=str(name))
        return LoadedTable(name, metadata, location)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        """Apply, write, swap; a lost answer is settled by reading back."""
        self._check_tables([c.base.name for c in changes])
        for base in (c.base for c in changes):
            if self.store.read(base.name) != base.metadata_location:
                return Conflicted(self._moved_on(base))
        try:
            applied = [self._apply(change) for change in changes]
        except ConflictError as error:
            return Conflicted(error)
        written: list[LoadedTable] = []
        try:
            for change, metadata in zip(changes, applied, strict=True):
                location = self._files.write(metadata, change.base.metadata_location)
                written.append(LoadedTable(change.base.name, metadata, location))
        except BaseException:
            self._discard(written)
            raise
        return self._swap(changes, tuple(written))

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Read the metadata file, then create the pointer to it."""
        self._check_namespace(name.namespace)
        metadata = self._files.load(metadata_location)
        if not self._create_pointer(name, metadata_location, metadata, ours=False):
            raise AlreadyExistsError(f"table `{name}` exists already", kind="table", name=str(name))
        return LoadedTable(name, metadata, metadata_location)

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Move the pointer to another name."""
        self._check_namespace(new.namespace)
        if self.store.rename(name, new):
            return
        if self.store.read(name) is None:
            raise self._table_not_found(name)
        raise AlreadyExistsError(f"table `{new}` exists already", kind="table", name=str(new))

    def drop_table(self, name: TableName) -> None:
        """Remove the pointer."""
        if not self.store.drop(name):
            raise self._table_not_found(name)

    def default_location(self, name: TableName) -> str:
        """Below the warehouse, one directory for each level of the namespace and one for the table."""
        return join(self._warehouse, *map(_directory, (*name.namespace, name.name)))

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """Tables in a namespace."""
        self._check_namespace(namespace)
        return self.store.list_names(namespace)

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        """Add a namespace."""
        if not self.store.create_namespace(namespace, properties):
            name = ".".join(namespace)
            raise AlreadyExistsError(f"namespace `{name}` exists already", kind="namespace", name=name)

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an empty namespace."""
        self._check_namespace(namespace)
        if not self.store.drop_namespace(namespace):
            raise RefusedError(f"cannot drop namespace `{'.'.join(namespace)}`: it is not empty")

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether there is such a namespace."""
        return self.store.namespace_exists(namespace)

    def list_namespaces(self) -> list[Namespace]:
        """All namespaces."""
        return self.store.list_namespaces()

    def close(self) -> None:
        """Let go of the store; again does nothing."""
        if not self._closed:
            self._closed = True
            self._store.close()

    # what is under way while the lake is closed must still find out how it ended: not self.store
    def _create_pointer(self, name: TableName, location: str, metadata: TableMetadata, *, ours: bool = True) -> bool:
        """Create the pointer; after a lost answer the pointer itself tells whether it landed.

        A file that is `ours` is deleted where it is certain that nothing points to it.
        """
        try:
            return self._store.create(name, location)
        except NOTHING_CHANGED:
            if ours:
                self._files.discard(location)
            raise
        except Exception as error:
            for wait in self._status_check_waits(metadata):
                try:
                    pointer = self._store.read(name)
                    if pointer is None and self._store.create(name, location):
                        return True
                    return (pointer or self._store.read(name)) == location
                except (BerglineError, OSError):
                    wait()
            raise CommitUnknownError(
                f"cannot find out whether table `{name}` was created", table=str(name), metadata_location=location
            ) from error

    def _check_tables(self, names: list[TableName]) -> None:
        if not names or len(set(names)) != len(names):
            raise InvalidInputError(
                f"expected each table once in a commit, found {', '.join(map(str, names)) or 'none'}"
            )
        if len(names) > 1 and not self.atomic_tables:
            raise UnsupportedError(
                f"expected a change to one table, found {len(names)}: this catalog moves one at a time"
            )

    def _apply(self, change: TableChange) -> TableMetadata:
        base, updates = change.base, change.updates
        check_requirements(base.metadata, change.requirements, str(base.name))
        if base.metadata.table_uuid is None:  # an old v1 table gets its uuid with the first commit, as in Java
            updates = (AssignUuid(str(uuid.uuid4())), *updates)
        return apply_updates(base.metadata, updates, base_location=base.metadata_location, now_ms=self._clock_ms())

    def _swap(self, changes: tuple[TableChange, ...], new: tuple[LoadedTable, ...]) -> Outcome:
        swaps = [
            PointerSwap(table.name, change.base.metadata_location, table.metadata_location)
            for change, table in zip(changes, new, strict=True)
        ]
        try:
            moved = self._store.swap_all(swaps) if len(swaps) > 1 else self._swap_one(swaps[0])
            verdict, cause = Verdict.LANDED if moved else Verdict.LOST, ""
        except NOTHING_CHANGED:
            self._discard(new)
            raise
        except Exception as error:  # noqa: BLE001  (any doubt is settled below)
            cause = f"{type(error).__name__}: {error}"
            verdict = settle_swaps(
                self._store,
                swaps,
                load=self._files.load,
                added_snapshots={c.base.name: _added_snapshots(c) for c in changes},
                waits=self._status_check_waits(changes[0].base.metadata),
            )
        match verdict:
            case Verdict.LANDED:
                return Committed(new)
            case Verdict.LOST:
                self._discard(new)
                return Conflicted(self._winner(changes))
            case Verdict.UNKNOWN:
                return Unknown(new[0].name, new[0].metadata_location, cause)

    def _swap_one(self, swap: PointerSwap) -> bool:
        return self._store.swap(swap.table, swap.expected, swap.new)

    def _winner(self, changes: tuple[TableChange, ...]) -> ConflictError:
        """The table that moved on, of those in the commit."""
        for base in (c.base for c in changes):
            if self._store.read(base.name) != base.metadata_location:
                return self._moved_on(base)
        return self._moved_on(changes[0].base)

    def _moved_on(self, base: LoadedTable) -> ConflictError:
        """That a table moved on, and by what, if that can be read."""
        try:
            what = describe_change(base.metadata, self.load_table(base.name).metadata)
        except BerglineError:
            what = f"it is no longer at {base.metadata_location}"
        return ConflictError(f"table `{base.name}` moved on: {what}")

    def _discard(self, tables: Iterable[LoadedTable]) -> None:
        for table in tables:
            self._files.discard(table.metadata_location)

    def _status_check_waits(self, metadata: TableMetadata) -> Iterator[Callable[[], None]]:
        retries = positive_property(metadata, "commit.status-check.num-retries", 3)
        least = positive_property(metadata, "commit.status-check.min-wait-ms", 1000)
        most = positive_property(metadata, "commit.status-check.max-wait-ms", 60_000)
        for number in range(retries + 1):
            seconds = random.uniform(0.5, 1) * min(least * 2**number, most) / 1000  # noqa: S311
            yield partial(self._sleep, 0 if number == retries else seconds)

    def _check_namespace(self, namespace: Namespace) -> None:
        if not self.store.namespace_exists(namespace):
            name = ".".join(namespace)
            known = [".".join(n) for n in self.store.list_namespaces()]
            raise NotFoundError(f"no namespace `{name}`", kind="namespace", name=name, known=known)

    def _table_not_found(self, name: TableName) -> NotFoundError:
        self._check_namespace(name.namespace)
        known = [str(t) for t in self.store.list_names(name.namespace)]
        return NotFoundError(f"no table `{name}`", kind="table", name=str(name), known=known)


def _added_snapshots(change: TableChange) -> frozenset[int]:
    return frozenset(u.snapshot.snapshot_id for u in change.updates if isinstance(u, AddSnapshot))


def _directory(name: str) -> str:
    """A name as one directory: without what would end it there, or end the location in other readers."""
    dots = name in {".", ".."}
    return "".join(f"%{ord(c):02X}" if c in _NOT_IN_DIRECTORIES or dots else c for c in name)
