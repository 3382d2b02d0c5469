"""Names of tables or views: find, create, rename and drop, settled if responses are lost; and those in the trash."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

from bergline.catalog.attempts import attempts
from bergline.catalog.catalog import DroppedTable, DroppedView, UnprovenDropError
from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import MetadataFiles
from bergline.catalog.pointer.pointer_store import (
    NOTHING_CHANGED,
    BranchTablePointers,
    NeighbouringNames,
    NeighbouringNamespaces,
    Pointers,
    PointerStore,
)
from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    CommitUnknownError,
    ConflictError,
    NotFoundError,
    UnsupportedError,
)

NameKind = Literal["table", "view", "branch table"]
Waits = Iterable[Callable[[], None]]
Dropped = TypeVar("Dropped", DroppedTable, DroppedView)
_MOST_NAMED = 5
_NEIGHBOURS = 25
"""How many names on each side of a missing one are considered as suggestions."""


class NamedPointers:
    """The names of tables or of views; after a lost response the outcome is read back, with `waits` in between."""

    def __init__(self, store: PointerStore, kind: NameKind, waits: Callable[[], Waits]) -> None:
        self._store = store
        self._kind = kind
        self._waits = waits
        self.pointers = _of_kind(store, kind)

    def find(self, name: TableName) -> str:
        """The pointer of a name; NotFoundError suggests similar names."""
        pointer = self.pointers.read(name)
        if pointer is None:
            raise self._not_found(name)
        return pointer

    def check_free(self, name: TableName) -> None:
        """Refuse a name that a table or a view has."""
        for kind, pointers in (("table", self._store), ("view", self._store.views)):
            if pointers is not None and pointers.read(name) is not None:
                raise self._taken(kind, name)

    def check_created(self, name: TableName, pointer: str | None) -> str:
        """The pointer of a name that was created; raises if there is none."""
        if pointer is None:
            self.check_free(name)
            raise self._taken(self._kind, name)  # it is free again
        return pointer

    def create(
        self,
        name: TableName,
        location: str,
        *,
        is_ours: Callable[[str], bool],
        is_written: Callable[[str], bool],
    ) -> str | None:
        """Create a name and return its pointer; None if the name is taken.

        After a lost response, `is_ours` says whether the pointer that is found came from this location; then that one
        is returned. If the metadata file is gone, what was created has been purged since, and is not created again.
        """
        try:
            if self.pointers.create(name, location):
                return location
            return self._created_twice(name, location, is_ours)
        except (*NOTHING_CHANGED, CommitUnknownError):
            raise
        except Exception as error:
            for wait in self._waits():
                try:
                    if self.pointers.read(name) is None:
                        if not is_written(location):
                            break
                        if self.pointers.create(name, location):
                            return location
                    pointer = self.pointers.read(name)
                    return pointer if pointer is not None and (pointer == location or is_ours(pointer)) else None
                except (BerglineError, OSError):
                    wait()
            raise self._unknown(name, location, "created") from error

    def rename(self, name: TableName, new: TableName, *, check: Callable[[str], None] = lambda _: None) -> None:
        """Rename a table or view; `check` raises for a pointer that must keep its name."""
        before = self.find(name)
        check(before)
        if self._rename(name, new, before):
            return
        self.find(name)
        self.check_free(new)
        raise ConflictError(f"{self._kind} `{name}` changed while it was renamed", hints=["try again"])

    def drop(
        self,
        name: TableName,
        expected: str | None = None,
        *,
        proven: bool = False,
        check: Callable[[str], None] = lambda _: None,
    ) -> str:
        """Drop a name and return its pointer; ConflictError if it is not the expected one.

        `check` raises for a pointer that must stay. After a lost response, a missing name counts as dropped; because
        another client may have renamed it, that is an UnprovenDropError if `proven`.
        """
        tries = attempts(f"{self._kind} `{name}` moved on whenever it was to be dropped")
        while True:
            next(tries)
            pointer = self.find(name)
            if expected is not None and pointer != expected:
                raise ConflictError(f"{self._kind} `{name}` moved on while it was dropped", hints=["try again"])
            check(pointer)
            if self._drop(name, pointer, proven=proven):
                return pointer

    def _created_twice(self, name: TableName, location: str, is_ours: Callable[[str], bool]) -> str | None:
        """The pointer of a refused name, if it is ours after all: a request that arrives twice refuses itself."""
        for wait in self._waits():
            try:
                pointer = self.pointers.read(name)
                return pointer if pointer is not None and is_ours(pointer) else None
            except (BerglineError, OSError):  # a pointer to a missing file may have moved on from ours
                wait()
        raise self._unknown(name, location, "created")

    def _rename(self, name: TableName, new: TableName, before: str) -> bool:
        try:
            return self.pointers.rename(name, new)
        except NOTHING_CHANGED:
            raise
        except Exception as error:
            for wait in self._waits():
                try:
                    if self.pointers.read(name) == before and self.pointers.rename(name, new):
                        return True
                    now = self.pointers.read(name), self.pointers.read(new)
                    if now == (None, before):
                        return True
                    if now[0] == before:
                        return False
                    break
                except (BerglineError, OSError):
                    wait()
            raise self._unknown(name, before, f"renamed to `{new}`") from error

    def _drop(self, name: TableName, pointer: str, *, proven: bool) -> bool:
        try:
            return self.pointers.drop(name, pointer)
        except NOTHING_CHANGED:
            raise
        except Exception as error:
            for wait in self._waits():
                try:
                    if self.pointers.read(name) == pointer and self.pointers.drop(name, pointer):
                        return True
                    is_gone = self.pointers.read(name) is None
                except (BerglineError, OSError):
                    wait()
                    continue
                if is_gone and proven:
                    raise UnprovenDropError(name, pointer) from error
                if is_gone:
                    return True
                break
            raise self._unknown(name, pointer, "dropped") from error

    def _not_found(self, name: TableName) -> NotFoundError:
        check_namespace(self._store, name.namespace, condition="TABLE_OR_VIEW_NOT_FOUND")
        other = _other_kind(self._kind)
        pointers = self._store if other == "table" else self._store.views
        if pointers is not None and pointers.read(name) is not None:
            return NotFoundError(f"no {self._kind} `{name}`: it is a {other}", kind=self._kind, name=str(name))
        if isinstance(self.pointers, NeighbouringNames):
            names = self.pointers.names_around(name, _NEIGHBOURS)
        else:
            names = self.pointers.list_names(name.namespace)
        known = map(str, names)
        return NotFoundError(f"no {self._kind} `{name}`", kind=self._kind, name=str(name), known=known)

    def _taken(self, kind: str, name: TableName) -> AlreadyExistsError:
        condition = "VIEW_ALREADY_EXISTS" if self._kind == "view" else None
        return AlreadyExistsError(f"{kind} `{name}` exists already", kind=kind, name=str(name), condition=condition)

    def _unknown(self, name: TableName, location: str, what: str) -> CommitUnknownError:
        return CommitUnknownError(
            f"cannot find out whether {self._kind} `{name}` was {what}", table=str(name), metadata_location=location
        )


def create_with_file(
    names: NamedPointers,
    name: TableName,
    location: str,
    is_ours: Callable[[str], bool],
    files: MetadataFiles[Any],
) -> str:
    """Create a name for a file just written, and return its pointer, as `NamedPointers.create` does.

    The file is deleted if certainly nothing points to it.
    """
    try:
        created = names.create(name, location, is_ours=is_ours, is_written=files.is_written)
    except NOTHING_CHANGED:
        files.discard(location)
        raise
    if created is None:
        files.discard(location)
    return names.check_created(name, created)


def check_namespace(store: PointerStore, namespace: tuple[str, ...], *, condition: str | None = None) -> None:
    """NotFoundError, with suggestions, if there is no such namespace."""
    if not store.namespace_exists(namespace):
        name = ".".join(namespace)
        if isinstance(store, NeighbouringNamespaces):
            namespaces = store.namespaces_around(namespace, _NEIGHBOURS)
        else:
            namespaces = store.list_namespaces()
        known = map(".".join, namespaces)
        raise NotFoundError(f"no namespace `{name}`", kind="namespace", name=name, known=known, condition=condition)


def newest_dropped(kind: NameKind, found: Sequence[Dropped], name: TableName) -> Dropped:
    """The table or view that was dropped last under a name; NotFoundError, with the names in the trash, if none was."""
    newest = next((dropped for dropped in found if dropped.name == name), None)
    if newest is not None:
        return newest
    raise NotFoundError(
        f"no dropped {kind} `{name}`{dropped_others(found)}",
        kind=f"dropped {kind}",
        name=str(name),
        known={str(dropped.name) for dropped in found},
        hints=[f"a server keeps dropped {kind}s for a time with `bergline serve --drop-retention 7d`"],
    )


def dropped_others(found: Sequence[DroppedTable] | Sequence[DroppedView]) -> str:
    """The names that the trash has instead, newest first, for the end of a message; empty if it has none."""
    names = list(dict.fromkeys(str(dropped.name) for dropped in found))
    shown = [f"`{name}`" for name in names[:_MOST_NAMED]]
    more = f" and {len(names) - _MOST_NAMED:,} more" if len(names) > _MOST_NAMED else ""
    return f"; dropped: {', '.join(shown)}{more}" if names else ""


def _of_kind(store: PointerStore, kind: NameKind) -> Pointers:
    if kind == "table":
        return store
    if kind == "branch table":
        if not isinstance(store, BranchTablePointers) or store.branch_tables is None:
            raise UnsupportedError("cannot create a table on a branch of the lake: this catalog lists every table")
        return store.branch_tables
    if store.views is None:
        raise UnsupportedError("expected a catalog that can hold views, found one for tables alone")
    return store.views


def _other_kind(kind: NameKind) -> NameKind:
    return "view" if kind == "table" else "table"
