"""A catalog as one caller may see and use it, for code that works on whole catalogs: the pages of the console."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Protocol

from msgspec.structs import replace

from bergline.catalog.catalog import (
    Catalog,
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
from bergline.catalog.protection.rule_scope import RuleLevel
from bergline.catalog.turns import TurnKeeper
from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.governance.grants.management import AccessManagement
from bergline.governance.grants.privilege import Privilege
from bergline.governance.grants.refusals import concealed
from bergline.governance.grants.securable import CATALOG, Securable, namespace_of, table_of, view_of
from bergline.governance.lake_branches.model import LakeBranches
from bergline.governance.pull_requests.model import PullRequestCalls

_READ, _WRITE, _DROP, _CREATE = Privilege.READ, Privilege.WRITE, Privilege.DROP, Privilege.CREATE


class CallerChecks(Protocol):
    """What one caller may do."""

    def check(self, privilege: Privilege | None, securable: Securable, seen: Securable | None = None) -> None:
        """RefusedError without a privilege, NotFoundError if hidden; None checks only that it may be seen."""
        ...

    def sees(self, securable: Securable) -> bool:
        """Whether the caller may know that something exists."""
        ...

    def may(self, privilege: Privilege, securable: Securable) -> bool:
        """Whether the caller has a privilege."""
        ...


def administered(catalog: Catalog, name: TableName | None = None) -> Catalog:
    """The unrestricted catalog, for those who administer it or the table in question."""
    return catalog.unchecked(name) if isinstance(catalog, GrantedCatalog) else catalog


def administers(catalog: Catalog) -> bool:
    """Whether the caller administers the catalog, as everybody does without grants."""
    return not isinstance(catalog, GrantedCatalog) or catalog.is_administered


class GrantedCatalog:
    """Checks privileges before every call and hides what may not be seen; the catalog's guard decides on commits."""

    def __init__(
        self,
        inner: Catalog,
        by: CallerChecks,
        management: AccessManagement,
        pull_requests: PullRequestCalls,
        lake_branches: LakeBranches,
    ) -> None:
        self._inner = inner
        self.lake_branches = lake_branches
        self.pull_requests = pull_requests
        self._by = by
        self._management = management
        self.io = inner.io
        self.atomic_tables = inner.atomic_tables
        self.metadata_files_stay = inner.metadata_files_stay
        self.keeps_dropped_tables = inner.keeps_dropped_tables

    def management(self) -> AccessManagement:
        """Grants, roles and owners, for administrators."""
        self._by.check(Privilege.ADMINISTER, CATALOG)
        return self._management

    @property
    def is_administered(self) -> bool:
        """Whether the caller administers it."""
        try:
            self._by.check(Privilege.ADMINISTER, CATALOG)  # a policy may have taken the privilege away
        except (NotFoundError, RefusedError):
            return False
        return True

    def unchecked(self, name: TableName | None) -> Catalog:
        """The unrestricted catalog, for those who administer it or the table in question."""
        self._by.check(Privilege.ADMINISTER, CATALOG if name is None else table_of(name))
        return self._inner

    def load_table(self, name: TableName) -> LoadedTable:
        with self._on(_READ, table_of(name), lambda: self._inner.pointer(name)):
            return self._inner.load_table(name)

    def pointer(self, name: TableName) -> str:
        with self._on(_READ, table_of(name), lambda: self._inner.pointer(name)):
            return self._inner.pointer(name)

    def create_table(self, name: TableName, metadata: TableMetadata) -> LoadedTable:
        with self._creating(table_of(name)):
            return self._inner.create_table(name, metadata)

    def commit(self, changes: tuple[TableChange, ...]) -> Outcome:
        for change in changes:
            self._by.check(_READ, table_of(change.base.name))
        return self._inner.commit(changes)

    @property
    def turns(self) -> TurnKeeper | None:
        """Where commits take turns, which need no privilege beyond that of the commit."""
        return self._inner.turns

    def register_table(self, name: TableName, metadata_location: str) -> LoadedTable:
        with self._creating(table_of(name)):
            return self._inner.register_table(name, metadata_location)

    def unregister_table(self, name: TableName) -> str:
        self.pointer(name)
        with self._on(_DROP, table_of(name)):
            return self._inner.unregister_table(name)

    def rename_table(self, name: TableName, new: TableName) -> None:
        with self._on(_DROP, table_of(name), lambda: self._inner.pointer(name)), self._creating(table_of(new)):
            self._by.check(_READ, table_of(name))
            self._inner.rename_table(name, new)

    def drop_table(self, name: TableName, expected: str | None = None) -> None:
        with self._on(_DROP, table_of(name), lambda: self._inner.pointer(name)):
            self._inner.drop_table(name, expected)

    def purge_later(self, name: TableName) -> bool:
        return False

    def refusals(self, table: LoadedTable, after: TableMetadata) -> Iterable[RefusedError]:
        return self._inner.refusals(table, after)

    def rule_levels(self, table: TableName) -> tuple[RuleLevel, ...]:
        """The rules of the catalog and of namespaces that hold for a table."""
        return self._inner.rule_levels(table)

    def footprints(self) -> Footprints | None:
        return None

    def dropped_tables(self, most: int | None = None) -> list[DroppedTable]:
        found = [dropped for dropped in self._inner.dropped_tables() if self._by.sees(table_of(dropped.name))]
        return [d if self._by.may(_READ, table_of(d.name)) else replace(d, metadata_location="") for d in found[:most]]

    def dropped_views(self, most: int | None = None) -> list[DroppedView]:
        found = [dropped for dropped in self._inner.dropped_views() if self._by.sees(view_of(dropped.name))]
        return [d if self._by.may(_READ, view_of(d.name)) else replace(d, metadata_location="") for d in found[:most]]

    def undrop_view(self, name: TableName, to: TableName | None = None) -> LoadedView:
        dropped = view_of(name)
        for privilege in (_DROP, _READ):
            self._by.check(privilege, dropped, dropped.parent)
        with self._creating(view_of(to or name)):
            return self._inner.undrop_view(name, to)

    def undrop_table(self, name: TableName, to: TableName | None = None) -> LoadedTable:
        dropped = table_of(name)
        for privilege in (_DROP, _READ):
            self._by.check(privilege, dropped, dropped.parent)
        with self._creating(table_of(to or name)):
            return self._inner.undrop_table(name, to)

    def default_location(self, name: TableName) -> str:
        with self._creating(table_of(name)):
            return self._inner.default_location(name)

    def check_location(self, name: TableName, location: str) -> None:
        with self._creating(table_of(name)):
            self._inner.check_location(name, location)

    def is_own_file(self, location: str) -> bool:
        return self._inner.is_own_file(location)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        with self._on(None, namespace_of(namespace)):
            return [name for name in self._inner.list_tables(namespace) if self._by.sees(table_of(name))]

    def list_branch_tables(self, namespace: Namespace) -> list[TableName]:
        with self._on(None, namespace_of(namespace)):
            return [name for name in self._inner.list_branch_tables(namespace) if self._by.sees(table_of(name))]

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> None:
        with self._creating(namespace_of(namespace)):
            self._inner.create_namespace(namespace, properties)

    def drop_namespace(self, namespace: Namespace) -> None:
        with self._on(_DROP, namespace_of(namespace)):
            self._inner.drop_namespace(namespace)

    def namespace_exists(self, namespace: Namespace) -> bool:
        return self._by.sees(namespace_of(namespace)) and self._inner.namespace_exists(namespace)

    def namespace_properties(self, namespace: Namespace) -> dict[str, str]:
        with self._on(Privilege.LIST, namespace_of(namespace)):
            return self._inner.namespace_properties(namespace)

    def update_namespace(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> None:
        with self._on(_WRITE, namespace_of(namespace)):
            self._inner.update_namespace(namespace, changes, removals)

    def list_namespaces(self, below: Namespace = ()) -> list[Namespace]:
        with self._on(None, namespace_of(below) if below else CATALOG):
            return [one for one in self._inner.list_namespaces(below) if self._by.sees(namespace_of(one))]

    def load_view(self, name: TableName) -> LoadedView:
        with self._on(_READ, view_of(name)):
            return self._inner.load_view(name)

    def create_view(self, name: TableName, metadata: ViewMetadata) -> LoadedView:
        with self._creating(view_of(name)):
            return self._inner.create_view(name, metadata)

    def commit_view(self, change: ViewChange) -> LoadedView:
        with self._on(_WRITE, view_of(change.base.name)):
            return self._inner.commit_view(change)

    def rename_view(self, name: TableName, new: TableName) -> None:
        with self._on(_DROP, view_of(name)), self._on(_READ, view_of(name)), self._creating(view_of(new)):
            self._inner.rename_view(name, new)

    def drop_view(self, name: TableName) -> None:
        with self._on(_DROP, view_of(name)):
            self._inner.drop_view(name)

    def list_views(self, namespace: Namespace) -> list[TableName]:
        with self._on(None, namespace_of(namespace)):
            return [name for name in self._inner.list_views(namespace) if self._by.sees(view_of(name))]

    def close(self) -> None:
        """Does nothing: the catalog belongs to the server."""

    @contextlib.contextmanager
    def _on(
        self, privilege: Privilege | None, securable: Securable, find: Callable[[], object] | None = None
    ) -> Iterator[None]:
        """A call that needs a privilege; `find` raises if something may be seen but does not exist."""
        try:
            if find is not None and self._by.sees(securable):
                find()
            self._by.check(privilege, securable)
            yield
        except NotFoundError as error:
            raise concealed(error) from error

    @contextlib.contextmanager
    def _creating(self, securable: Securable) -> Iterator[None]:
        try:
            self._by.check(_CREATE, securable, securable.parent)
            yield
        except NotFoundError as error:
            raise concealed(error) from error
