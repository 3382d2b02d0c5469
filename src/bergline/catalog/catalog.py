"""What every catalog offers to tables, and the three ways an attempt to commit can end."""

from typing import Protocol

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import ConflictError
from bergline.format.metadata import TableMetadata
from bergline.format.requirements import Requirement
from bergline.format.updates import Update
from bergline.io.fileio import FileIO


class LoadedTable(msgspec.Struct, frozen=True):
    """A table as the catalog answered: its metadata, and the pointer that named it."""

    name: TableName
    metadata: TableMetadata
    metadata_location: str


class TableChange(msgspec.Struct, frozen=True):
    """A change to one table, worked out from `base`."""

    base: LoadedTable
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]


class Committed(msgspec.Struct, frozen=True):
    """The pointers moved; these are the tables now."""

    tables: tuple[LoadedTable, ...]


class Conflicted(msgspec.Struct, frozen=True):
    """It is certain that nothing moved, because another commit came first: look again."""

    reason: ConflictError


class Unknown(msgspec.Struct, frozen=True):
    """It could not be found out whether the pointers moved; nothing may be deleted."""

    table: TableName
    metadata_location: str
    cause: str


Outcome = Committed | Conflicted | Unknown


class Catalog(Protocol):
    """Holds tables by name. Methods raise NotFoundError, AlreadyExistsError, UnavailableError, StorageError."""

    io: FileIO
    atomic_tables: bool

    def load_table(self, name: TableName) -> LoadedTable:
        """The table now."""
        ...

    def pointer(self, name: TableName) -> str:
        """Where the table's metadata is now, unread."""
        ...

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        """A new table with this metadata; AlreadyExistsError if the name is taken."""
        ...

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        """Move all pointers or none.

        Committed if and only if all moved. Conflicted if and only if none moved because a base or a requirement no
        longer held. Unknown where that cannot be found out. An exception means that nothing moved for another reason:
        UnsupportedError before anything is written where the catalog cannot move this many tables at once.
        """
        ...

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """A table by its metadata file, which must exist; AlreadyExistsError if the name is taken."""
        ...

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Give a table another name; its files stay where they are."""
        ...

    def drop_table(self, name: TableName) -> None:
        """Forget the table; its files stay."""
        ...

    def default_location(self, name: TableName) -> str:
        """Where a new table's files go."""
        ...

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """The tables in a namespace."""
        ...

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        """A new namespace."""
        ...

    def drop_namespace(self, namespace: Namespace) -> None:
        """Remove an empty namespace."""
        ...

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether there is such a namespace."""
        ...

    def list_namespaces(self) -> list[Namespace]:
        """All namespaces."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...
