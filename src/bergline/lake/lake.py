"""`connect`: a catalog and its files joined, as a user imports it. Works without Spark, on Arrow data.

What works with tables is imported when it is first used: connecting needs none of it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import msgspec

from bergline.arguments import check_list, check_no_nul, check_text, check_texts, shown
from bergline.catalog.catalog import Catalog, DroppedTable, DroppedView
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.catalog.sql.busy_timeout import DEFAULT_BUSY_TIMEOUT_S, LONGEST_BUSY_TIMEOUT_S
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.lake.handle import LakeHandle
from bergline.lake.opening import CatalogConfig, open_catalog, portable_config
from bergline.lazy_module import LazyModule
from bergline.table.commits.retry import Timing
from bergline.table.delegation import delegated, later

if TYPE_CHECKING:
    from bergline.governance import governance
    from bergline.governance.events import events
    from bergline.governance.events.model import LoggedEvent
    from bergline.governance.grants import access
    from bergline.governance.pull_requests.pull_requests import LakePullRequests
    from bergline.governance.reviews import reviews
    from bergline.governance.rules import rules
    from bergline.lake import pull_requests, references, tables, views
else:
    events = LazyModule("bergline.governance.events.events")
    governance = LazyModule("bergline.governance.governance")
    pull_requests = LazyModule("bergline.lake.pull_requests")
    access = LazyModule("bergline.governance.grants.access")
    references = LazyModule("bergline.lake.references")
    reviews = LazyModule("bergline.governance.reviews.reviews")
    rules = LazyModule("bergline.governance.rules.rules")
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
        busy_timeout: seconds to wait for another writer on a locked SQLite database; a commit waits so long in each
            of its attempts (`commit.retry.num-retries`, 4 after the first if not set).
        create: whether a catalog that does not exist is created; else it is a NotFoundError. By default only the
            default one is, when no `uri` is given. REST servers and Glue have theirs, and `memory:` is always new.
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
    )
    return Lake(open_catalog(config), name, config=config)


class Lake:
    """Tables and views by name. Close it when done, or use it as a context."""

    def __init__(
        self, catalog: Catalog, name: str, *, timing: Timing | None = None, config: CatalogConfig | None = None
    ) -> None:
        self._handle = LakeHandle(catalog, timing or Timing())
        self.name = name
        self._config = config
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

    def same_as(self, other: "Lake") -> bool:
        """Whether both were connected in the same way, so that they have the same tables."""
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
        """Pickled as how it was connected, with the credentials that it was given; the copy connects anew."""
        if self._config is None:
            raise UnsupportedError(f"cannot open {self!r} in another process: it was not made by `connect`")
        return _reconnected, (portable_config(self._config),)

    def create_namespace(
        self, namespace: str | Namespace, properties: Mapping[str, str] | None = None, *, if_not_exists: bool = False
    ) -> None:
        """A new namespace such as `db` or `db.raw`."""
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
        namespaces = self.catalog.list_namespaces() if namespace is None else [parse_namespace(namespace)]
        return [str(t) for n in namespaces for t in self.catalog.list_tables(n)]

    def table_exists(self, name: str | TableName) -> bool:
        """Whether there is such a table; its files are not looked at."""
        try:
            self.catalog.pointer(parse_table_name(name))
        except NotFoundError:
            return False
        return True

    def unregister_table(self, name: str | TableName) -> str:
        """Forget a table; its files stay. Its metadata file, by which it can be registered here or elsewhere."""
        return self.catalog.unregister_table(parse_table_name(name))

    def rename_table(self, name: str | TableName, new: str | TableName) -> None:
        """Give a table another name; its files stay where they are."""
        self.catalog.rename_table(parse_table_name(name), parse_table_name(new))

    def drop_table(self, name: str | TableName) -> None:
        """Forget a table; its files stay."""
        self.catalog.drop_table(parse_table_name(name))

    @property
    def keeps_dropped_tables(self) -> bool:
        """Whether tables that are dropped here go to the trash of a server."""
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

    create_table = later(lambda: delegated(tables.LakeTables, tables.LakeTables.create_table))
    stage_table = later(lambda: delegated(tables.LakeTables, tables.LakeTables.stage_table))
    load_table = later(lambda: delegated(tables.LakeTables, tables.LakeTables.load_table))
    register_table = later(lambda: delegated(tables.LakeTables, tables.LakeTables.register_table))
    undrop_table = later(lambda: delegated(tables.LakeTables, tables.LakeTables.undrop_table))
    purge_table = later(lambda: delegated(tables.LakeTables, tables.LakeTables.purge_table))
    transaction = later(lambda: delegated(tables.LakeTables, tables.LakeTables.transaction))

    create_view = later(lambda: delegated(views.LakeViews, views.LakeViews.create_view))
    load_view = later(lambda: delegated(views.LakeViews, views.LakeViews.load_view))
    view_exists = later(lambda: delegated(views.LakeViews, views.LakeViews.view_exists))
    list_views = later(lambda: delegated(views.LakeViews, views.LakeViews.list_views))
    rename_view = later(lambda: delegated(views.LakeViews, views.LakeViews.rename_view))
    drop_view = later(lambda: delegated(views.LakeViews, views.LakeViews.drop_view))
    undrop_view = later(lambda: delegated(views.LakeViews, views.LakeViews.undrop_view))

    branch = later(lambda: delegated(references.LakeRefs, references.LakeRefs.branch))
    tag = later(lambda: delegated(references.LakeRefs, references.LakeRefs.tag))
    publish = later(lambda: delegated(references.LakeRefs, references.LakeRefs.publish))
    drop_ref = later(lambda: delegated(references.LakeRefs, references.LakeRefs.drop_ref))
    tables_with_ref = later(lambda: delegated(references.LakeRefs, references.LakeRefs.tables_with_ref))

    def events(
        self,
        after: int | None = None,
        *,
        types: Iterable[str] = (),
        table: str | TableName | None = None,
        newest: int | None = None,
        follow: bool = False,
    ) -> "Iterator[LoggedEvent]":
        """What happened through `bergline serve`, in order; each event has the position after which to go on.

        Args:
            after: the position of the last event that is known; by default from the oldest that is kept.
            types: only events of these types, such as `table.commit` or `ref.*`.
            table: only events of one table.
            newest: begin with so many of the newest, up to 1000, in place of `after`.
            follow: whether to wait for more at the end, for ever.
        """

        def log() -> "events.EventLog | None":
            return governance.governance_of(self.catalog).events

        return events.read_events(log, after, types, table, newest, follow=follow)

    @property
    def pull_requests(self) -> "LakePullRequests":
        """The pull requests of the lake; UnsupportedError where its catalog has none."""
        return pull_requests.pull_requests_of(self._handle)

    def close(self) -> None:
        """Close connections: the lake takes no more calls, and what was loaded from it can still be read."""
        self._is_closed = True
        self.catalog.close()


def _reconnected(config: CatalogConfig) -> Lake:
    return Lake(open_catalog(config), config.name, config=config)
