"""The catalog interface, and the three outcomes of a commit attempt."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from bergline.catalog.identifiers import Namespace, TableName
from bergline.errors import CommitUnknownError, ConflictError, InvalidInputError, RefusedError, UnsupportedError
from bergline.format.metadata.requirements import Requirement
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import AddSnapshot, Update
from bergline.format.view.updates import ViewRequirement, ViewUpdate
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.fileio import FileIO

if TYPE_CHECKING:  # connecting needs none of them
    from bergline.catalog.footprint import Footprints
    from bergline.catalog.protection.rule_scope import RuleLevel
    from bergline.catalog.turns import TurnKeeper


class UnprovenDropError(CommitUnknownError):
    """A table is gone, and the response to its drop was lost: somebody else may have renamed it instead."""

    def __init__(self, name: TableName, metadata_location: str) -> None:
        super().__init__(
            f"cannot find out whether table `{name}` was dropped or renamed: it is gone, and the response was lost",
            table=str(name),
            metadata_location=metadata_location,
        )


class LoadedTable(msgspec.Struct, frozen=True):
    """A table as loaded from the catalog: its metadata and the pointer to it."""

    name: TableName
    metadata: TableMetadata
    metadata_location: str


class DroppedTable(msgspec.Struct, frozen=True):
    """A table that was dropped, and is kept in the catalog's trash for some time."""

    name: TableName
    metadata_location: str
    dropped_ms: int
    keep_until_ms: int
    principal: str
    purges_files: bool
    """Whether its files are deleted after that time, or stay as they do without a trash."""
    purge_begun: bool = False
    """Whether files are being deleted: it cannot come back any more."""
    problem: str | None = None
    """Why its files could not be deleted so far."""
    bin_id: int = 0


class DroppedView(msgspec.Struct, frozen=True):
    """A view that was dropped, and is kept in the catalog's trash for some time; its files stay after that."""

    name: TableName
    metadata_location: str
    dropped_ms: int
    keep_until_ms: int
    principal: str
    bin_id: int = 0


class LoadedView(msgspec.Struct, frozen=True):
    """A view as loaded from the catalog: its metadata and the pointer to it."""

    name: TableName
    metadata: ViewMetadata
    metadata_location: str


class TableChange(msgspec.Struct, frozen=True):
    """A change to one table, based on `base`."""

    base: LoadedTable
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]
    can_rebase: bool = False
    """Whether it is an append that means the same on whatever head its branch has."""


class NewTable(msgspec.Struct, frozen=True):
    """A table that is created in the same commit as changes to others."""

    name: TableName
    metadata: TableMetadata


class ViewChange(msgspec.Struct, frozen=True):
    """A change to one view, based on `base`."""

    base: LoadedView
    requirements: tuple[ViewRequirement, ...]
    updates: tuple[ViewUpdate, ...]


class Committed(msgspec.Struct, frozen=True):
    """The pointers moved; these are the tables now."""

    tables: tuple[LoadedTable, ...]


class Conflicted(msgspec.Struct, frozen=True):
    """It is certain that nothing moved, because another commit came first: load again and retry."""

    reason: ConflictError
    bases: tuple[str, ...] = ()
    """The pointers that the attempt was based on, for who tries again: if they stay, nobody has come first."""


class Unknown(msgspec.Struct, frozen=True):
    """It is unknown whether the pointers moved; nothing may be deleted.

    The location is None if the catalog writes the metadata files itself, as REST servers do.
    """

    table: TableName
    metadata_location: str | None
    cause: str


Outcome = Committed | Conflicted | Unknown


def check_changed_tables(names: Sequence[TableName], who: str, *, atomic: bool) -> None:
    """InvalidInputError for no tables or duplicates, UnsupportedError for several if `who` changes one at a time."""
    if not names or len(set(names)) != len(names):
        raise InvalidInputError(f"expected each table once in a commit, found {', '.join(map(str, names)) or 'none'}")
    if len(names) > 1 and not atomic:
        raise UnsupportedError(f"expected a change to one table, found {len(names)}: {who} moves one at a time")


class Catalog(Protocol):
    """Holds tables by name. Methods raise NotFoundError, AlreadyExistsError, UnavailableError, StorageError."""

    io: FileIO
    atomic_tables: bool
    metadata_files_stay: bool
    """Whether metadata files must stay after their table is dropped, because their names order the commits."""

    @property
    def keeps_dropped_tables(self) -> bool:
        """Whether a server puts what is dropped into its trash, and purges tables itself when their time is over."""
        ...

    @property
    def turns(self) -> "TurnKeeper | None":
        """Where writers of the same tables take turns; None where they cannot."""
        ...

    def load_table(self, name: TableName) -> LoadedTable:
        """Load the current state of a table."""
        ...

    def pointer(self, name: TableName) -> str:
        """The location of the table's current metadata, without reading it."""
        ...

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        """Create a table with this metadata; AlreadyExistsError if the name is taken."""
        ...

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        """Move all pointers or none.

        Committed if and only if all moved. Conflicted if and only if none moved because a base or a requirement no
        longer held. Unknown where that cannot be found out. An exception means that nothing moved for another reason:
        UnsupportedError before anything is written where the catalog cannot move this many tables at once.
        """
        ...

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        """Register a table by its metadata file, which must exist; AlreadyExistsError if the name is taken."""
        ...

    def unregister_table(self, name: TableName) -> str:
        """Remove a table from the catalog and return its metadata location, to register it again; its files stay."""
        ...

    def rename_table(self, name: TableName, new: TableName) -> None:
        """Rename a table; its files stay where they are."""
        ...

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        """Drop a table; its files stay.

        ConflictError if the pointer is not the expected one; after that, and after every other error but
        CommitUnknownError, the table is unchanged. With an expected pointer, a response that is lost is an
        UnprovenDropError if the table is gone.
        """
        ...

    def purge_later(self, name: TableName) -> bool:
        """Have a server drop the table and delete its files later; False, and nothing is done, if none would."""
        ...

    def rule_levels(self, table: TableName) -> "tuple[RuleLevel, ...]":
        """The rules of the catalog and of namespaces that hold for a table; its own are in its properties."""
        ...

    def footprints(self) -> "Footprints | None":
        """Where the files of tables and views are, as far as the catalog knows; None if it does not keep track."""
        ...

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        """All reasons why a change to a table would be refused: rules about refs, and a server's grants."""
        ...

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        """The tables in the catalog's trash, or `most` of them, newest first; empty if the catalog has no trash."""
        ...

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        """Take the table that was dropped last under a name out of the trash, with all its refs.

        AlreadyExistsError if the name is taken; `to` gives it another one. After every error but CommitUnknownError,
        the table is still in the trash.
        """
        ...

    def default_location(self, name: TableName) -> str:
        """The location for a new table or view, a directory that contains no metadata of another."""
        ...

    def check_location(self, name: TableName, location: str) -> None:
        """Refuse a location with metadata of another table or view; AlreadyExistsError if the name is taken."""
        ...

    def is_own_file(self, location: str) -> bool:
        """Whether a file belongs to the catalog itself, so that it is never an orphan, whatever directory it is in."""
        ...

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """The tables in a namespace."""
        ...

    def list_branch_tables(self, namespace: Namespace) -> list[TableName]:
        """The tables in a namespace that were created on branches of the lake, and are in no list but these."""
        ...

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        """Create a namespace."""
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
        """Set and remove properties; others stay."""
        ...

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        """All namespaces, or all below one, at every level."""
        ...

    def load_view(self, name: TableName) -> LoadedView:
        """Load the current state of a view; UnsupportedError, here and below, if the catalog has no views."""
        ...

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        """Create a view; AlreadyExistsError if a table or view has the name."""
        ...

    def commit_view(self, change: ViewChange) -> LoadedView:
        """Move the view's pointer; ConflictError if and only if the base or a requirement no longer held."""
        ...

    def rename_view(self, name: TableName, new: TableName) -> None:
        """Rename a view."""
        ...

    def drop_view(self, name: TableName) -> None:
        """Drop a view; its files stay."""
        ...

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        """The views in the catalog's trash, or `most` of them, newest first; empty if the catalog has no trash."""
        ...

    def undrop_view(self, name: TableName, to: TableName | None = None) -> LoadedView:
        """Take the view that was dropped last under a name out of the trash; errors as of `undrop_table`."""
        ...

    def list_views(self, namespace: Namespace) -> list[TableName]:
        """The views in a namespace; none, and no error, where the catalog has no views."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


def added_snapshots(change: TableChange) -> frozenset[int]:
    """The ids of the snapshots that a change adds, which are the same in all attempts."""
    return frozenset(u.snapshot.snapshot_id for u in change.updates if isinstance(u, AddSnapshot))


def shows_all_since(base: TableMetadata, now: TableMetadata) -> bool:
    """Whether all snapshots that were added since the base are still there, so that a missing one was never added."""
    if base.table_uuid != now.table_uuid:
        return False
    if now.format_version == 1:  # v1 has no sequence numbers; expiry removes the older snapshots first
        return base.snapshots_by_id.keys() <= now.snapshots_by_id.keys()
    since = {s.sequence_number for s in now.snapshots if s.sequence_number > base.last_sequence_number}
    return len(since) == now.last_sequence_number - base.last_sequence_number
