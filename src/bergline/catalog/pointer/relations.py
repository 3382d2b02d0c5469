"""The relations of a pointer catalog, its tables or its views: each name points to a metadata file."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from bergline.catalog.catalog import LoadedTable, LoadedView
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_files import Metadata, MetadataFiles
from bergline.catalog.pointer.named_pointers import NamedPointers, NameKind, check_namespace, create_with_file
from bergline.catalog.pointer.pointer_store import NOTHING_CHANGED, DroppedPointers
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.errors import CommitUnknownError, ConflictError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata

_Loaded = TypeVar("_Loaded", bound=LoadedTable | LoadedView)


class PointerRelations(Generic[Metadata, _Loaded]):
    """Tables or views by name."""

    def __init__(
        self,
        access: StoreAccess,
        kind: NameKind,
        files: MetadataFiles[Metadata],
        loaded: Callable[[TableName, Metadata, str], _Loaded],
    ) -> None:
        self.files = files
        self._access = access
        self._kind: NameKind = kind
        self._loaded = loaded

    def load(self, name: TableName) -> _Loaded:
        """Load the current state of one."""
        pointer = self.pointer(name)
        return self._loaded(name, self.files.load_for(f"{self._kind} `{name}`", pointer), pointer)

    def pointer(self, name: TableName) -> str:
        """The pointer in the store."""
        return self._names().find(name)

    def metadata_at(self, location: str) -> Metadata:
        """Load one from a metadata file."""
        return self.files.load(location)

    def check_free(self, name: TableName) -> None:
        """Refuse a name that is taken, or whose namespace does not exist."""
        self._check_namespace(name)
        self._names().check_free(name)

    def create(self, name: TableName, metadata: Metadata) -> _Loaded:
        """Write the first metadata file, then create the pointer."""
        self.check_free(name)
        self._check_new(name, metadata)
        self._see_new(name, metadata)
        location = self.files.write(metadata, None)

        def is_ours(pointer: str) -> bool:
            return _uuid(self.files.load(pointer)) == _uuid(metadata)

        found = create_with_file(self._names(metadata), name, location, is_ours, self.files)
        return self._loaded(name, metadata if found == location else self.files.load(found), found)

    def register(self, name: TableName, metadata_location: str) -> _Loaded:
        """Read the metadata file, then create the pointer to it."""
        self._check_namespace(name)
        metadata = self.files.load(metadata_location)
        names = self._names(metadata)
        names.check_free(name)  # so that the pointer leads to what was registered
        self._see_new(name, metadata)
        created = names.create(
            name, metadata_location, is_ours=metadata_location.__eq__, is_written=self.files.is_written
        )
        names.check_created(name, created)
        return self._loaded(name, metadata, metadata_location)

    def rename(self, name: TableName, new: TableName) -> None:
        """Rename one; its files stay where they are."""
        self._check_namespace(new)
        done = f"the {self._kind} renamed to `{new}`"
        with self._changing():
            self._names().rename(name, new, check=lambda pointer: self._check_gone(name, pointer, done))

    def drop(self, name: TableName, expected: str | None = None, done: str = "dropped", *, proven: bool = False) -> str:
        """Drop one and return its pointer, as `NamedPointers.drop` does; `done` says how it goes."""
        with self._changing():
            done = f"the {self._kind} {done}"
            check = lambda pointer: self._check_gone(name, pointer, done)  # noqa: E731
            return self._names().drop(name, expected, proven=proven, check=check)

    def names_in(self, namespace: Namespace) -> list[TableName]:
        """The names in a namespace; none of views where the store has no views."""
        store = self._access.store
        check_namespace(store, namespace)
        pointers = store if self._kind == "table" else store.views
        return pointers.list_names(namespace) if pointers else []

    def _changing(self) -> AbstractContextManager[None]:
        """A block that checks a change and then makes it."""
        return contextlib.nullcontext()

    def _check_new(self, name: TableName, metadata: Metadata) -> None:
        """Refuse to create one with this metadata."""

    def _check_gone(self, name: TableName, pointer: str, done: str) -> None:
        """Refuse to take a pointer from its name."""

    def _see_new(self, name: TableName, metadata: Metadata) -> None:
        """Told of what is about to get a name."""

    def _listed(self, name: TableName, metadata: Metadata) -> AbstractContextManager[None]:
        """A block in which a name gets a pointer, and is in the lists where it belongs."""
        return contextlib.nullcontext()

    @property
    def _trash(self) -> DroppedPointers | None:
        store = self._access.store
        return store if isinstance(store, DroppedPointers) else None

    def _restored(
        self, name: TableName, new: TableName, location: str, restore: Callable[[DroppedPointers], bool]
    ) -> _Loaded:
        """Read the metadata file, then take the pointer out of the trash."""
        self._check_namespace(new)
        metadata = self.files.load(location)
        names = self._names(metadata)
        names.check_free(new)
        self._see_new(new, metadata)
        trash = self._trash
        assert trash is not None  # noqa: S101  (or there was nothing in it)
        try:
            with self._listed(new, metadata):
                restored = restore(trash)
        except (*NOTHING_CHANGED, ConflictError):
            raise
        except Exception as error:
            raise CommitUnknownError(
                f"cannot find out whether {self._kind} `{name}` came back as `{new}`: {error}",
                table=str(new),
                metadata_location=location,
            ) from error
        names.check_created(new, location if restored else None)
        return self._loaded(new, metadata, location)

    def _names(self, metadata: Metadata | None = None) -> NamedPointers:
        """The names of this kind; UnsupportedError if the store has none of it."""
        return self._access.names(self._kind, metadata.properties if metadata else None)

    def _check_namespace(self, name: TableName) -> None:
        self._names()
        check_namespace(self._access.store, name.namespace)


def _uuid(metadata: TableMetadata | ViewMetadata) -> str | None:
    return metadata.table_uuid if isinstance(metadata, TableMetadata) else metadata.view_uuid
