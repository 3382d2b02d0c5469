"""The catalog over any pointer store: the parts that it is made of, behind the catalog interface."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from bergline.catalog.catalog import (
    DroppedTable,
    DroppedView,
    LoadedTable,
    LoadedView,
    NewTable,
    Outcome,
    TableChange,
    ViewChange,
)
from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.metadata_files import MetadataFiles, table_files, view_files
from bergline.catalog.pointer.locations import NewLocations
from bergline.catalog.pointer.namespaces import PointerNamespaces
from bergline.catalog.pointer.pointer_store import KeptFootprints, PointerStore, UnopenedStore
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.catalog.pointer.tables import PointerTables
from bergline.catalog.pointer.views import PointerViews
from bergline.catalog.protection.guard import RefGuard
from bergline.catalog.turns import TurnKeeper
from bergline.errors import RefusedError
from bergline.format.metadata.gzip import MAX_METADATA_BYTES
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.fileio import FileIO
from bergline.io.local import real_location
from bergline.io.locations import normalized, scheme_of
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.pointer import commits as table_commits
    from bergline.catalog.pointer import group_commits
    from bergline.catalog.protection.rule_scope import RuleLevel
else:  # not needed to read
    table_commits = LazyModule("bergline.catalog.pointer.commits")
    group_commits = LazyModule("bergline.catalog.pointer.group_commits")


class PointerCatalog:
    """Catalog over any PointerStore."""

    metadata_files_stay = False
    keeps_dropped_tables = False
    """Never: what is dropped here without a server is gone."""

    def __init__(
        self,
        store: PointerStore | UnopenedStore,
        io: FileIO,
        warehouse: str | None,
        *,
        own_places: Collection[str] = (),
        files: MetadataFiles[TableMetadata] | None = None,
        max_metadata_bytes: int = MAX_METADATA_BYTES,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.io = io
        self.warehouse = warehouse
        """The default parent of new locations, unless a namespace has its own."""
        self.atomic_tables = store.atomic_tables
        self._own_places = tuple(own_places)
        self._access = access = StoreAccess(store, sleep=sleep, clock_ms=clock_ms)
        self.namespaces = PointerNamespaces(access)
        self.locations = NewLocations(access, io, warehouse)
        self.tables = PointerTables(access, files or table_files(io, max_metadata_bytes, access.digests))
        self.views = PointerViews(access, view_files(io, max_metadata_bytes, access.digests))

    @cached_property
    def commits(self) -> "table_commits.TableCommits":
        """Commits to tables."""
        return table_commits.TableCommits(self._access, self.tables)

    @property
    def store(self) -> PointerStore:
        """The store; InvalidInputError after `close`."""
        return self._access.store

    @property
    def guard(self) -> RefGuard:
        """What decides on changes of refs: the store's own guard, or one for the rules of tables alone."""
        return self._access.guard

    @guard.setter
    def guard(self, guard: RefGuard) -> None:
        self._access.guard = guard

    @property
    def turns(self) -> TurnKeeper | None:
        return self._access.turns

    def load_table(self, name: TableName) -> LoadedTable:
        return self.tables.load(name)

    def pointer(self, name: TableName) -> str:
        return self.tables.pointer(name)

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        return self.tables.create(name, metadata)

    def commit(self, changes: tuple[TableChange, ...], new: Sequence[NewTable] = ()) -> Outcome:
        """New tables are created in the same step, and come last in the outcome."""
        return self.commits.commit(changes, new)

    def commit_group(
        self, base: LoadedTable, members: "Sequence[group_commits.GroupMember]"
    ) -> "group_commits.MemberOutcomes":
        """Commit changes to one table that wait together."""
        return group_commits.GroupCommits(self._access, self.tables, self.commits).commit(base, members)

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        return self.tables.register(name, metadata_location)

    def unregister_table(self, name: TableName) -> str:
        return self.tables.drop(name, done="unregistered", proven=True)

    def rename_table(self, name: TableName, new: TableName) -> None:
        self.tables.rename(name, new)

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        self.tables.drop(name, expected, proven=expected is not None)

    def purge_later(self, name: TableName) -> bool:
        return False

    def rule_levels(self, table: TableName) -> "tuple[RuleLevel, ...]":
        return self.guard.levels(table)

    def footprints(self) -> Footprints | None:
        return self.store.footprints() if isinstance(self.store, KeptFootprints) else None

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        return self.guard.refusals(table.name, table.metadata, after)

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        return self.tables.dropped(most)

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        return self.tables.undrop(name, to)

    def default_location(self, name: TableName) -> str:
        return self.locations.default(name)

    def check_location(self, name: TableName, location: str) -> None:
        self.locations.check(name, location)

    def is_own_file(self, location: str) -> bool:
        """Whether a file is one of the store's own locations, or below one."""
        asked = _real(location)
        return any(asked == place or asked.startswith(f"{place}/") for place in map(_real, self._own_places))

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self.tables.names_in(namespace)

    def list_branch_tables(self, namespace: Namespace) -> list[TableName]:
        return self.tables.of_branches(namespace)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        self.namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        self.namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self.store.namespace_exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self.namespaces.properties(namespace)

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        self.namespaces.update(namespace, changes, removals)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        return self.namespaces.all_below(below)

    def load_view(self, name: TableName) -> LoadedView:
        return self.views.load(name)

    def view_pointer(self, name: TableName) -> str:
        """The location of the view's current metadata, without reading it."""
        return self.views.pointer(name)

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        return self.views.create(name, metadata)

    def commit_view(self, change: ViewChange) -> LoadedView:
        return self.views.commit(change)

    def rename_view(self, name: TableName, new: TableName) -> None:
        self.views.rename(name, new)

    def drop_view(self, name: TableName) -> None:
        self.views.drop(name)

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        return self.views.dropped(most)

    def undrop_view(self, name: TableName, to: TableName | None = None) -> LoadedView:
        return self.views.undrop(name, to)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        return self.views.names_in(namespace)

    def close(self) -> None:
        """Close the store; idempotent."""
        self._access.close()


def _real(location: str) -> str:
    return real_location(location) if scheme_of(location) == "file" else normalized(location)
