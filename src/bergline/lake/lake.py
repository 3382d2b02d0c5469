"""`connect` and `Lake`: a catalog together with its files. Works without Spark, on Arrow data.

Code that works with tables is imported on first use, because connecting does not need it.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import msgspec

from bergline.arguments import check_list, check_no_nul, check_text, check_texts, shown
from bergline.catalog.catalog import Catalog, DroppedTable, DroppedView
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.catalog.sql.busy_timeout import DEFAULT_BUSY_TIMEOUT_S, LONGEST_BUSY_TIMEOUT_S
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.metadata.refs import MAIN, SnapshotRefType, check_ref_name
from bergline.format.schema.schema import Schema
from bergline.io.locations import absolute_location
from bergline.lake.handle import LakeHandle
from bergline.lake.opening import CatalogConfig, open_catalog, portable_config
from bergline.lazy_module import LazyModule
from bergline.table.commits.retry import Timing

if TYPE_CHECKING:
    import pyarrow as pa

    from bergline.governance import governance
    from bergline.governance.events import events
    from bergline.governance.events.model import LoggedEvent
    from bergline.governance.grants import access
    from bergline.governance.pull_requests.pull_requests import LakePullRequests
    from bergline.governance.reviews import reviews
    from bergline.governance.rules import rules
    from bergline.lake import at_ref, branches, pull_requests, references, staged_table, tables, views
    from bergline.lake.ref_report import RefReport
    from bergline.lake.references import SnapshotChoices
    from bergline.lake.tables import LakeTransaction
    from bergline.table import table_selection
    from bergline.table.commits.isolation import Isolation
    from bergline.table.evolution import definition
    from bergline.table.orphans import purge
    from bergline.table.orphans.purge import PurgeResult
    from bergline.table.references import new_ref, publish, ref_changes
    from bergline.table.references.published_runs import PublishedRun
    from bergline.table.scans.scan import TableScan
    from bergline.table.scans.version import BranchRead, SnapshotChoice
    from bergline.table.table import Table
    from bergline.table.table_selection import TableNames
    from bergline.table.view import View
else:
    access = LazyModule("bergline.governance.grants.access")
    at_ref = LazyModule("bergline.lake.at_ref")
    branches = LazyModule("bergline.lake.branches")
    definition = LazyModule("bergline.table.evolution.definition")
    events = LazyModule("bergline.governance.events.events")
    governance = LazyModule("bergline.governance.governance")
    new_ref = LazyModule("bergline.table.references.new_ref")
    publish = LazyModule("bergline.table.references.publish")
    pull_requests = LazyModule("bergline.lake.pull_requests")
    purge = LazyModule("bergline.table.orphans.purge")
    ref_changes = LazyModule("bergline.table.references.ref_changes")
    references = LazyModule("bergline.lake.references")
    reviews = LazyModule("bergline.governance.reviews.reviews")
    rules = LazyModule("bergline.governance.rules.rules")
    staged_table = LazyModule("bergline.lake.staged_table")
    table_selection = LazyModule("bergline.table.table_selection")
    tables = LazyModule("bergline.lake.tables")
    views = LazyModule("bergline.lake.views")

DEFAULT_CATALOG = "sqlite:///./lake/catalog.db"
DEFAULT_NAME = "lake"


def connect(
    uri: str | None = None,
    *,
    warehouse: str | os.PathLike[str] | None = None,
    name: str = DEFAULT_NAME,
    properties: Mapping[str, str] | None = None,
    busy_timeout: float = DEFAULT_BUSY_TIMEOUT_S,
    create: bool | None = None,
    ref: str | None = None,
) -> "Lake":
    """Open a lake; by default an SQLite catalog and a warehouse in `./lake`.

    Args:
        uri: `sqlite:///path/catalog.db`, `postgresql://user@host/database`, `https://host` of a REST server,
            `s3://bucket/lake`, `glue://region`, `file:///path/warehouse` or `memory:`.
        warehouse: directory for new tables, such as `s3://bucket/path`; by default `warehouse` beside an SQLite
            database, and in the directory of an object store. PostgreSQL and Glue have no default, and need one only
            where a new table or view is not given a location. For a REST server it is a name that the server knows.
        name: the catalog's name in the database, which Java and PyIceberg must use too.
        properties: credentials and endpoints of object stores by Iceberg's names, such as `s3.endpoint`; what is
            missing comes from the environment. Also those of the catalog itself, such as `token`.
        busy_timeout: seconds to wait for another writer on a locked SQLite database; a commit waits this long in
            each of its attempts (`commit.retry.num-retries`, 4 after the first if not set).
        create: whether a catalog that does not exist is created; else it is a NotFoundError. By default only the
            default one is, when no `uri` is given. REST servers and Glue have theirs, and `memory:` is always new.
        ref: a branch or tag of the lake, or a time such as `2026-11-01T00:00:00Z`, at which all tables are seen; see
            `Lake.at`.
    """
    if create is not None and not isinstance(create, bool):
        raise InvalidInputError(f"expected true or false for create, found {shown(create)}")
    create = uri is None if create is None else create
    uri = check_text(DEFAULT_CATALOG if uri is None else uri, "a catalog like `sqlite:///path/catalog.db`")
    check_no_nul(uri, "the catalog's address")
    if not check_text(name, "text for the catalog's name"):
        raise InvalidInputError("expected a name for the catalog, found empty text")
    if warehouse is not None and not isinstance(warehouse, str | os.PathLike):
        raise InvalidInputError(f"expected a directory as the warehouse, found {shown(warehouse)}")
    if not isinstance(busy_timeout, int | float) or not 0 <= busy_timeout <= LONGEST_BUSY_TIMEOUT_S:
        raise InvalidInputError(
            f"expected seconds from 0 to {LONGEST_BUSY_TIMEOUT_S} for busy_timeout, found {shown(busy_timeout)}"
        )
    if properties is not None and not isinstance(properties, Mapping):
        raise InvalidInputError(f"expected a mapping of storage properties, found {type(properties).__name__}")
    config = CatalogConfig(
        uri,
        None if warehouse is None else os.fspath(warehouse),
        name,
        dict(properties or {}),
        busy_timeout,
        create=create,
        ref=None if ref is None else check_text(ref, "a branch, a tag or a time for ref"),
    )
    return _connected(config)


class Lake:
    """Tables and views by name. Close it when done, or use it as a context."""

    def __init__(
        self,
        catalog: Catalog,
        name: str,
        *,
        timing: Timing | None = None,
        config: CatalogConfig | None = None,
        owns_catalog: bool = True,
    ) -> None:
        self._handle = LakeHandle(catalog, timing or Timing())
        self.name = name
        self._config = config
        self._owns_catalog = owns_catalog
        self._is_closed = False

    @property
    def catalog(self) -> Catalog:
        """The catalog that holds the pointers."""
        return self._handle.catalog

    @property
    def access(self) -> "access.LakeAccess":
        """Grants, roles and owners, which `bergline serve` enforces."""
        return access.LakeAccess(governance.governance_of(self.catalog).access)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def at(self, ref: str) -> "Lake":
        """The whole lake at a branch or tag, or as it was at a time such as `2026-11-01T00:00:00Z`.

        The `main` of each table is that ref. At a branch, tables that do not have it are seen as they are on `main`,
        and the first commit to one creates its branch there; at a tag or a time nothing can be written. It uses the
        connections of this lake.
        """
        config = None if self._config is None else msgspec.structs.replace(self._config, ref=ref)
        catalog = at_ref.catalog_at(self.catalog, check_text(ref, "a branch, a tag or a time"))
        return Lake(catalog, self.name, timing=self._handle.timing, config=config, owns_catalog=False)

    def same_as(self, other: "Lake") -> bool:
        """Whether both lakes were connected in the same way, so that they have the same tables."""
        config, its = self._config, other._config  # noqa: SLF001  (of the same class)
        if self is other or config is None or its is None:
            return self is other
        return config == msgspec.structs.replace(its, create=config.create) and not config.uri.startswith("memory:")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Lake({self.name!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the arguments of `connect`, including credentials; the copy connects anew."""
        if self._config is None:
            raise UnsupportedError(f"cannot open {self!r} in another process: it was not made by `connect`")
        return _connected, (portable_config(self._config),)

    def create_namespace(
        self, namespace: str | Namespace, properties: Mapping[str, str] | None = None, *, if_not_exists: bool = False
    ) -> None:
        """Create a namespace such as `db` or `db.raw`."""
        try:
            self.catalog.create_namespace(
                parse_namespace(namespace), check_texts({} if properties is None else properties, "property")
            )
        except AlreadyExistsError:
            if not if_not_exists:
                raise

    def drop_namespace(self, namespace: str | Namespace) -> None:
        """Remove an empty namespace."""
        self.catalog.drop_namespace(parse_namespace(namespace))

    def namespace_exists(self, namespace: str | Namespace) -> bool:
        """Whether there is such a namespace."""
        return self.catalog.namespace_exists(parse_namespace(namespace))

    def namespace_properties(self, namespace: str | Namespace) -> dict[str, str]:
        """The properties of a namespace."""
        return self.catalog.namespace_properties(parse_namespace(namespace))

    def update_namespace(
        self,
        namespace: str | Namespace,
        properties: Mapping[str, str] | None = None,
        *,
        remove: Iterable[str] = (),
    ) -> None:
        """Set and remove properties of a namespace; with `location`, its new tables go there."""
        changes = check_texts({} if properties is None else properties, "property")
        self.catalog.update_namespace(parse_namespace(namespace), changes, check_list(remove, "property"))

    def list_namespaces(self, below: str | Namespace | None = None) -> list[str]:
        """All namespaces, or all below one, at every level."""
        found = self.catalog.list_namespaces(() if below is None else parse_namespace(below))
        return [".".join(n) for n in found]

    def list_tables(self, namespace: str | Namespace | None = None) -> list[str]:
        """The tables in a namespace, or in all of them."""
        return [str(t) for n in self._namespaces(namespace) for t in self.catalog.list_tables(n)]

    def table_exists(self, name: str | TableName) -> bool:
        """Whether there is such a table; its files are not looked at."""
        try:
            self.catalog.pointer(parse_table_name(name))
        except NotFoundError:
            return False
        return True

    def unregister_table(self, name: str | TableName) -> str:
        """Remove a table from the catalog; its files stay. Returns its metadata file, to register it again."""
        return self.catalog.unregister_table(parse_table_name(name))

    def rename_table(self, name: str | TableName, new: str | TableName) -> None:
        """Rename a table; its files stay where they are."""
        self.catalog.rename_table(parse_table_name(name), parse_table_name(new))

    def drop_table(self, name: str | TableName) -> None:
        """Remove a table from the catalog; its files stay."""
        self.catalog.drop_table(parse_table_name(name))

    @property
    def keeps_dropped_tables(self) -> bool:
        """Whether tables that are dropped go to the trash of a server."""
        return self.catalog.keeps_dropped_tables

    def dropped_tables(self, limit: int | None = None) -> list[DroppedTable]:
        """The tables in the trash of `bergline serve --drop-retention`, all or the newest ones, newest first."""
        return self.catalog.dropped_tables(limit)

    def dropped_views(self, limit: int | None = None) -> list[DroppedView]:
        """The views in the trash of `bergline serve --drop-retention`, all or the newest ones, newest first."""
        return self.catalog.dropped_views(limit)

    @property
    def rules(self) -> "rules.LakeRules":
        """Rules about refs of all tables, or of those in a namespace; a table's own are in `table.refs`."""
        return rules.LakeRules(governance.governance_of(self.catalog).rules)

    @property
    def reviews(self) -> "reviews.LakeReviews":
        """Checks and approvals of snapshots, which rules can demand."""
        return reviews.LakeReviews(governance.governance_of(self.catalog).reviews)

    def create_table(
        self,
        name: str | TableName,
        schema: "pa.Schema | Schema",
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        if_not_exists: bool = False,
    ) -> "Table":
        """Create an empty table: v2, unless the property `format-version` says 1 or 3."""
        table = parse_table_name(name)
        wanted = definition.define_table(schema, partition_by=partition_by, properties=properties, location=location)
        try:
            return tables.create_table(self._handle, table, wanted)
        except AlreadyExistsError as error:
            if not if_not_exists or error.kind != "table":
                raise
            return self.load_table(table)

    @contextlib.contextmanager
    def stage_table(
        self,
        name: str | TableName,
        schema: "pa.Schema | Schema",
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        replace: bool = False,
        isolation: "str | Isolation | None" = None,
        validate_from: "TableScan | int | None" = None,
        reads: "Iterable[BranchRead]" = (),
    ) -> "Iterator[Table]":
        """Create a table when the block ends, together with what the block wrote to it.

        With `replace`, an existing table is replaced: its history and its other refs stay, `main` and the columns are
        new. If rows of the old `main` go into the new one, `validate_from` is the scan or snapshot that they came from,
        or `reads` are scans some of which may be of it: ConflictError if others have changed it since.
        """
        wanted = definition.define_table(schema, partition_by=partition_by, properties=properties, location=location)
        with staged_table.staged_table(
            self._handle,
            parse_table_name(name),
            wanted,
            replace=replace,
            isolation=isolation,
            validate_from=validate_from,
            reads=reads,
        ) as table:
            yield table

    def load_table(self, name: str | TableName) -> "Table":
        """The table as it is now."""
        return tables.open_table(self._handle, self.catalog.load_table(parse_table_name(name)))

    def register_table(self, name: str | TableName, metadata_location: str) -> "Table":
        """Register an existing table by its metadata file; a table with two names is two tables to every writer."""
        if not isinstance(metadata_location, str) or not metadata_location:
            raise InvalidInputError(f"expected the location of a metadata file, found {metadata_location!r}")
        location = absolute_location(metadata_location)
        return tables.open_table(self._handle, self.catalog.register_table(parse_table_name(name), location))

    def undrop_table(self, name: str | TableName, to: str | TableName | None = None) -> "Table":
        """Restore the table that was dropped last under a name, with all its refs; `to` gives it another name."""
        new = None if to is None else parse_table_name(to)
        return tables.open_table(self._handle, self.catalog.undrop_table(parse_table_name(name), new))

    def purge_table(self, name: str | TableName, *, read_all_tables: bool = False) -> "PurgeResult":
        """Drop a table and delete its files: those of all its snapshots, and its metadata.

        RefusedError if another table uses one of them; to find out, `read_all_tables` reads the manifests of all
        tables, not only of those that may have files in the same directories.
        """
        return purge.purge_table(self.catalog, parse_table_name(name), read_all=read_all_tables)

    @contextlib.contextmanager
    def transaction(self) -> "Iterator[LakeTransaction]":
        """Change several tables in a block: all pointers move in one step when it ends, none if it raises."""
        with tables.transaction(self._handle) as transaction:
            yield transaction

    def create_view(
        self,
        name: str | TableName,
        sql: str | Mapping[str, str],
        schema: "pa.Schema | Schema",
        *,
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        default_namespace: str | Namespace | None = None,
        default_catalog: str | None = None,
        if_not_exists: bool = False,
    ) -> "View":
        """Create a view of a query in Spark's SQL, or of queries by dialect; names in it are those of its namespace."""
        view = parse_table_name(name)
        wanted = views.NewView(sql, schema, properties, location, default_namespace, default_catalog)
        try:
            return views.create_view(self._handle, view, wanted)
        except AlreadyExistsError as error:
            if not if_not_exists or error.kind != "view":
                raise
            return self.load_view(view)

    def load_view(self, name: str | TableName) -> "View":
        """The view as it is now."""
        return views.open_view(self._handle, self.catalog.load_view(parse_table_name(name)))

    def view_exists(self, name: str | TableName) -> bool:
        """Whether there is such a view; its files are not looked at."""
        view = parse_table_name(name)
        return self.catalog.namespace_exists(view.namespace) and view in self.catalog.list_views(view.namespace)

    def list_views(self, namespace: str | Namespace | None = None) -> list[str]:
        """The views in a namespace, or in all of them."""
        return [str(v) for n in self._namespaces(namespace) for v in self.catalog.list_views(n)]

    def rename_view(self, name: str | TableName, new: str | TableName) -> None:
        """Rename a view."""
        self.catalog.rename_view(parse_table_name(name), parse_table_name(new))

    def drop_view(self, name: str | TableName) -> None:
        """Drop a view; its files stay."""
        self.catalog.drop_view(parse_table_name(name))

    def undrop_view(self, name: str | TableName, to: str | TableName | None = None) -> "View":
        """Restore the view that was dropped last under a name; `to` gives it another name."""
        new = None if to is None else parse_table_name(to)
        return views.open_view(self._handle, self.catalog.undrop_view(parse_table_name(name), new))

    def branch(
        self,
        name: str,
        tables: "TableNames | SnapshotChoices | None" = None,
        *,
        namespace: str | Namespace | None = None,
        at: "SnapshotChoice | None" = None,
        min_snapshots_to_keep: int | None = None,
        max_snapshot_age_ms: int | None = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> "RefReport":
        """Create a branch of the named tables, or of all tables in a namespace and below it.

        It starts at `at`, or where a mapping says for each table; by default at the head of `main`.
        """
        retention = ref_changes.Retention(min_snapshots_to_keep, max_snapshot_age_ms, max_ref_age_ms)
        wanted = new_ref.NewRef(name, SnapshotRefType.BRANCH, retention, if_not_exists, or_replace)
        return references.create_refs(self._handle, wanted, tables, namespace, at)

    def tag(
        self,
        name: str,
        tables: "TableNames | SnapshotChoices | None" = None,
        *,
        namespace: str | Namespace | None = None,
        at: "SnapshotChoice | None" = None,
        max_ref_age_ms: int | None = None,
        if_not_exists: bool = False,
        or_replace: bool = False,
    ) -> "RefReport":
        """Create a tag of the named tables, or of all tables in a namespace and below it.

        It names the snapshot `at`, or the one that a mapping gives for each table; by default the head of `main`.
        """
        retention = ref_changes.Retention(max_ref_age_ms=max_ref_age_ms)
        wanted = new_ref.NewRef(name, SnapshotRefType.TAG, retention, if_not_exists, or_replace)
        return references.create_refs(self._handle, wanted, tables, namespace, at)

    def publish(
        self,
        branch: str,
        *,
        into: str = MAIN,
        tables: "TableNames | Mapping[str | TableName, int] | None" = None,
        namespace: str | Namespace | None = None,
        merge: bool = False,
        squash: bool = False,
        keep_branch: bool = False,
        tag: str | None = None,
        run: "PublishedRun | None" = None,
    ) -> "RefReport":
        """Publish a branch into another, in the named tables or in all that have it, and drop the branch.

        If the two have diverged this is refused, unless `merge` is given: then the branch's snapshots are replayed on
        top of the other. `squash` also merges where history has expired. With `keep_branch` the branch stays. A `tag`
        is created in the same commit. A mapping of tables gives the snapshot at which each branch must be. The `run` of
        a pipeline is recorded in a property of each table whose `into` moves.
        """
        request = publish.PublishRequest(branch, into, merge or squash, squash, keep_branch, tag, run=run)
        return references.publish(self._handle, request, tables, namespace)

    def drop_ref(
        self,
        name: str,
        *,
        tables: "TableNames | None" = None,
        namespace: str | Namespace | None = None,
        if_exists: bool = False,
    ) -> "RefReport":
        """Drop a branch or tag in the named tables, or in all that have it; its snapshots stay until expiry."""
        return references.drop_refs(self._handle, name, tables, namespace, if_exists=if_exists)

    def tables_with_ref(self, name: str, *, namespace: str | Namespace | None = None) -> list[str]:
        """The tables that have a branch or tag of this name, in the lake or in a namespace and below it."""
        check_ref_name(name)
        return [str(table) for table in table_selection.find_tables(self.catalog, name, namespace)]

    def events(
        self,
        after: int | None = None,
        *,
        types: Iterable[str] = (),
        table: str | TableName | None = None,
        newest: int | None = None,
        follow: bool = False,
    ) -> "Iterator[LoggedEvent]":
        """What happened through `bergline serve`, in order; continue later after the position of an event.

        Args:
            after: the position of the last event that is known; by default from the oldest that is kept.
            types: only events of these types, such as `table.commit` or `ref.*`.
            table: only events of one table.
            newest: begin with this many of the newest events, up to 1000, in place of `after`.
            follow: whether to keep waiting for more at the end.
        """

        def log() -> "events.EventLog | None":
            return governance.governance_of(self.catalog).events

        return events.read_events(log, after, types, table, newest, follow=follow)

    @property
    def branches(self) -> "branches.BranchesOfLake":
        """Branches of the whole lake; UnsupportedError where its catalog keeps none."""
        return branches.BranchesOfLake(self._handle)

    @property
    def pull_requests(self) -> "LakePullRequests":
        """The pull requests of the lake; UnsupportedError where its catalog has none."""
        return pull_requests.pull_requests_of(self._handle)

    def _namespaces(self, one: str | Namespace | None) -> Sequence[Namespace]:
        return self.catalog.list_namespaces() if one is None else [parse_namespace(one)]

    def close(self) -> None:
        """Close connections: the lake takes no more calls, but tables that were loaded from it can still be read."""
        self._is_closed = True
        if self._owns_catalog:
            self.catalog.close()


def _connected(config: CatalogConfig) -> Lake:
    catalog = open_catalog(config)
    if config.ref is not None:
        try:
            catalog = at_ref.catalog_at(catalog, config.ref)
        except BaseException:
            catalog.close()
            raise
    return Lake(catalog, config.name, config=config)
