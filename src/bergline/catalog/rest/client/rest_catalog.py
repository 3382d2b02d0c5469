"""The catalog over Iceberg's REST protocol: the parts that it is made of, behind the catalog interface."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping

from bergline.catalog.catalog import (
    DroppedTable,
    DroppedView,
    LoadedTable,
    LoadedView,
    Outcome,
    TableChange,
    ViewChange,
)
from bergline.catalog.footprint import Footprints
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.protection.kept_rules import levels_of
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.rest.client.commits import RestCommits, RestTurns
from bergline.catalog.rest.client.namespaces import RestNamespaces
from bergline.catalog.rest.client.rules import listed_rules
from bergline.catalog.rest.client.session import RestSession
from bergline.catalog.rest.client.settings import rest_settings
from bergline.catalog.rest.client.tables import RestTables
from bergline.catalog.rest.client.views import RestViews
from bergline.catalog.rest.protocol.endpoints import LIST_NAMESPACE_REF_RULES, LIST_VIEWS, TAKE_TURN
from bergline.errors import AuthenticationError, NotFoundError, RefusedError, StorageError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import join


class RestCatalog:
    """Catalog on any server that speaks the protocol; the server writes the metadata files."""

    metadata_files_stay = False

    def __init__(
        self,
        uri: str,
        properties: Mapping[str, str],
        warehouse: str | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
        clock_s: Callable[[], float] = time.time,
    ) -> None:
        self.session = session = RestSession(rest_settings(uri, warehouse, properties), sleep=sleep, clock_s=clock_s)
        """The session with the server, for what is not of tables."""
        self.namespaces = RestNamespaces(session)
        self.tables = RestTables(session)
        self.views = RestViews(session)
        self.commits = RestCommits(session, self.tables)
        self.io: FileIO = self.tables.io
        self.atomic_tables = self.commits.atomic_tables

    @property
    def keeps_dropped_tables(self) -> bool:
        return self.tables.has_trash

    @property
    def turns(self) -> RestTurns | None:
        """Turns on tables; None if the server grants none."""
        return RestTurns(self.session) if self.session.calls.has(TAKE_TURN) else None

    def load_table(self, name: TableName) -> LoadedTable:
        return self.tables.load(name)

    def pointer(self, name: TableName) -> str:
        """The metadata location, which the protocol returns only with the table."""
        return self.tables.load(name).metadata_location

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        return self.commits.create(name, metadata)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        return self.commits.commit(changes)

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        return self.tables.register(name, metadata_location)

    def unregister_table(self, name: TableName) -> str:
        return self.tables.unregister(name)

    def rename_table(self, name: TableName, new: TableName) -> None:
        self.tables.rename(name, new)

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        self.tables.drop(name, expected)

    def purge_later(self, name: TableName) -> bool:
        """Have the server drop the table and delete its files when it has been in the trash for long enough."""
        if self.tables.has_trash:
            self.tables.drop(name, purge=True)
        return self.tables.has_trash

    def rule_levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        """The rules of the server's catalog and namespaces that hold for a table, as far as the caller may see them."""
        if not self.session.calls.has(LIST_NAMESPACE_REF_RULES):
            return ()
        try:
            return levels_of(listed_rules(self.session, table.namespace))
        except (RefusedError, NotFoundError):
            return ()

    def footprints(self) -> Footprints | None:
        """None: the server knows where files are."""
        return None

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        """The refusals that do not depend on the caller's name; the server decides on the others."""
        return self.tables.guard.refusals(table.name, table.metadata, after)

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        return self.tables.dropped(most)

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        return self.tables.undrop(name, to)

    def default_location(self, name: TableName) -> str:
        return self.tables.default_location(name)

    def check_location(self, name: TableName, location: str) -> None:
        """Look for metadata, if allowed; the server has its own rules for locations."""
        try:
            found = any(".metadata.json" in file for file in self.io.list(join(location, "metadata")))
        except (NotFoundError, AuthenticationError, RefusedError, StorageError):
            return
        if found:
            raise RefusedError(
                f"cannot create `{name}` at {location}: metadata of another table is there",
                hints=["to have that table, register it by its newest metadata file, or give another location"],
            )

    def is_own_file(self, location: str) -> bool:
        """Always false: the server's own files are elsewhere."""
        return False

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        return self.tables.names_in(namespace)

    def list_branch_tables(self, namespace: Namespace) -> list[TableName]:
        return self.tables.of_branches(namespace)

    def create_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> None:
        self.namespaces.create(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        self.namespaces.drop(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self.namespaces.exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        return self.namespaces.properties(namespace)

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        self.namespaces.update(namespace, changes, removals)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        return self.namespaces.all_below(below)

    def load_view(self, name: TableName) -> LoadedView:
        return self.views.load(name)

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
        """The views in a namespace; none on a server without views."""
        if not self.session.calls.has(LIST_VIEWS):
            self.namespaces.properties(namespace)
        return self.views.names_in(namespace)

    def close(self) -> None:
        self.session.close()
