"""What every catalog offers to tables, and the three ways an attempt to commit can end."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import ConflictError, InvalidInputError, UnsupportedError
from bergline.format.metadata.requirements import Requirement
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot, Update
from bergline.format.view.updates import ViewRequirement, ViewUpdate
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.fileio import FileIO


class LoadedTable(msgspec.Struct, frozen=True):
    """A table as the catalog answered: its metadata, and the pointer that named it."""

    name: TableName
    metadata: TableMetadata
    metadata_location: str


class LoadedView(msgspec.Struct, frozen=True):
    """A view as the catalog answered: its metadata, and the pointer that named it."""

    name: TableName
    metadata: ViewMetadata
    metadata_location: str


class TableChange(msgspec.Struct, frozen=True):
    """A change to one table, worked out from `base`."""

    base: LoadedTable
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]


class NewTable(msgspec.Struct, frozen=True):
    """A table that is to come into being together with changes to others."""

    name: TableName
    metadata: TableMetadata


class ViewChange(msgspec.Struct, frozen=True):
    """A change to one view, worked out from `base`."""

    base: LoadedView
    requirements: tuple[ViewRequirement, ...]
    updates: tuple[ViewUpdate, ...]


class Committed(msgspec.Struct, frozen=True):
    """The pointers moved; these are the tables now."""

    tables: tuple[LoadedTable, ...]


class Conflicted(msgspec.Struct, frozen=True):
    """It is certain that nothing moved, because another commit came first: look again."""

    reason: ConflictError


class Unknown(msgspec.Struct, frozen=True):
    """It could not be found out whether the pointers moved; nothing may be deleted.

    A catalog that writes the metadata files itself does not say which file it would have been.
    """

    table: TableName
    metadata_location: str | None
    cause: str


Outcome = Committed | Conflicted | Unknown


def check_changed_tables(names: Sequence[TableName], who: str, *, atomic: bool) -> None:
    """InvalidInputError unless each table is there once, UnsupportedError for several where `who` moves them singly."""
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"expected each table once in a commit, found {', '.join(map(str, names)) or 'none'}")
    if len(names) > 1 and not atomic:
        raise UnsupportedError(f"expected a change to one table, found {len(names)}: {who} moves one at a time")


class Catalog(Protocol):
    """Holds tables by name. Methods raise NotFoundError, AlreadyExistsError, UnavailableError, StorageError."""

    io: FileIO
    atomic_tables: bool
    metadata_files_stay: bool
    """Whether metadata files must stay when their table is gone, because their names say who came first."""

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

    def unregister_table(self, name: TableName) -> str:
        """Forget the table, as it is at that moment; its files stay. Where its metadata is, to register it again."""
        ...

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Give a table another name; its files stay where they are."""
        ...

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        """Forget the table; its files stay.

        With an expected pointer ConflictError if it is another by now; then, and after every other error but
        CommitUnknownError, the table is as it was.
        """
        ...

    def default_location(self, name: TableName) -> str:
        """Where the files of a new table or view go: a directory without metadata of another."""
        ...

    def check_location(self, name: TableName, location: str) -> None:
        """Refuse a location for a new table or view where metadata of another is; AlreadyExistsError for the name."""
        ...

    def is_own_file(self, location: str) -> bool:
        """Whether the catalog itself needs a file, whoever's directory it lies in: it is nobody's orphan."""
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

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        """The properties of a namespace."""
        ...

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        """Set and remove properties; what is not named stays."""
        ...

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All namespaces, or all below one, at every level."""
        ...

    def load_view(self, name: TableName) -> LoadedView:
        """The view now; UnsupportedError, here and below, where the catalog has no views."""
        ...

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        """A new view; AlreadyExistsError if a table or view has the name."""
        ...

    def commit_view(self, change: ViewChange) -> LoadedView:
        """Move the view's pointer; ConflictError if and only if the base or a requirement no longer held."""
        ...

    def rename_view(self, name: TableName, new: TableName) -> None:
        """Give a view another name."""
        ...

    def drop_view(self, name: TableName) -> None:
        """Forget the view; its files stay."""
        ...

    def list_views(self, namespace: Namespace) -> list[TableName]:
        """The views in a namespace; none, and no error, where the catalog has no views."""
        ...

    def close(self) -> None:
        """Let go of connections."""
        ...


def added_snapshots(change: TableChange) -> frozenset[int]:
    """The ids of the snapshots that a change adds: the same in all its attempts."""
    return frozenset(u.snapshot.snapshot_id for u in change.updates if isinstance(u, AddSnapshot))


def shows_all_since(base: TableMetadata, now: TableMetadata) -> bool:
    """Whether no snapshot that came to the table since the base is gone again: one that is not there never came."""
    if base.table_uuid != now.table_uuid:
        return False
    if now.format_version == 1:  # without sequence numbers: those that were there before are the first to go
        return base.snapshots_by_id.keys() <= now.snapshots_by_id.keys()
    since = {s.sequence_number for s in now.snapshots if s.sequence_number > base.last_sequence_number}
    return len(since) == now.last_sequence_number - base.last_sequence_number
