"""`connect`: a catalog and its files joined, as a user imports it. Works without Spark, on Arrow data."""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Self

import msgspec
import pyarrow as pa

from bergline.arguments import check_list, check_no_nul, check_text, check_texts, shown
from bergline.catalog.catalog import Catalog, DroppedTable
from bergline.catalog.identifiers import Namespace, TableName, parse_namespace, parse_table_name
from bergline.catalog.sql.sqlite import DEFAULT_BUSY_TIMEOUT_S, LONGEST_BUSY_TIMEOUT_S
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.metadata.refs import MAIN
from bergline.format.schema.schema import Schema
from bergline.io.locations import absolute_location
from bergline.lake.handle import LakeHandle
from bergline.lake.opening import CatalogConfig, open_catalog, portable_config
from bergline.lake.references import LakeRefs
from bergline.lake.staged_table import staged_table
from bergline.lake.views import LakeViews
from bergline.table.changes.validate_from import validation_start
from bergline.table.commits.isolation import Isolation
from bergline.table.commits.retry import Timing
from bergline.table.delegation import delegated
from bergline.table.evolution.definition import define_table, new_location
from bergline.table.orphans.purge import PurgeResult, purge_table
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead
from bergline.table.table import Table
from bergline.table.transaction import Transaction

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

    def create_table(
        self,
        name: str | TableName,
        schema: pa.Schema | Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        if_not_exists: bool = False,
    ) -> Table:
        """A new, empty table: v2, unless the property `format-version` says 1 or 3."""
        table = parse_table_name(name)
        definition = define_table(schema, partition_by=partition_by, properties=properties, location=location)
        try:
            home = new_location(self.catalog, table, definition.location)
            metadata = definition.new_table(home, self._handle.timing.clock_ms())
            created = self.catalog.create_table(table, metadata)
        except AlreadyExistsError as error:
            if not if_not_exists or error.kind != "table":
                raise
            return self.load_table(table)
        return Table(self.catalog, created, timing=self._handle.timing)

    @contextlib.contextmanager
    def stage_table(
        self,
        name: str | TableName,
        schema: pa.Schema | Schema,
        *,
        partition_by: Sequence[str] = (),
        properties: Mapping[str, str] | None = None,
        location: str | None = None,
        replace: bool = False,
        isolation: str | Isolation | None = None,
        validate_from: TableScan | int | None = None,
        reads: Iterable[BranchRead] = (),
    ) -> Iterator[Table]:
        """A new table that is created when the block ends, with what the block wrote to it.

        With `replace`, an existing table is replaced: its history and its other refs stay, `main` and the columns
        are new. Where rows of the old `main` go into the new one, `validate_from` is the scan or the snapshot that they
        came from, or `reads` are those of which some may be of it: ConflictError if others changed it since.
        """
        definition = define_table(schema, partition_by=partition_by, properties=properties, location=location)
        with staged_table(
            self.catalog,
            parse_table_name(name),
            definition,
            self._handle.timing,
            replace=replace,
            validate=lambda old: validation_start(old, MAIN, isolation, validate_from, reads),
        ) as table:
            yield table

    def load_table(self, name: str | TableName) -> Table:
        """The table as it is now."""
        return Table(self.catalog, self.catalog.load_table(parse_table_name(name)), timing=self._handle.timing)

    def table_exists(self, name: str | TableName) -> bool:
        """Whether there is such a table; its files are not looked at."""
        try:
            self.catalog.pointer(parse_table_name(name))
        except NotFoundError:
            return False
        return True

    def register_table(self, name: str | TableName, metadata_location: str) -> Table:
        """A table that exists already, by its metadata file; two names for one table are two tables to every writer."""
        if not isinstance(metadata_location, str) or not metadata_location:
            raise InvalidInputError(f"expected the location of a metadata file, found {metadata_location!r}")
        location = absolute_location(metadata_location)
        registered = self.catalog.register_table(parse_table_name(name), location)
        return Table(self.catalog, registered, timing=self._handle.timing)

    def unregister_table(self, name: str | TableName) -> str:
        """Forget a table; its files stay. Its metadata file, by which it can be registered here or elsewhere."""
        return self.catalog.unregister_table(parse_table_name(name))

    def rename_table(self, name: str | TableName, new: str | TableName) -> None:
        """Give a table another name; its files stay where they are."""
        self.catalog.rename_table(parse_table_name(name), parse_table_name(new))

    def drop_table(self, name: str | TableName) -> None:
        """Forget a table; its files stay."""
        self.catalog.drop_table(parse_table_name(name))

    def dropped_tables(self) -> list[DroppedTable]:
        """The tables in the bin of `bergline serve --drop-retention`, newest first."""
        return self.catalog.dropped_tables()

    def undrop_table(self, name: str | TableName, to: str | TableName | None = None) -> Table:
        """Bring back the table that was dropped last under a name, with all its refs; `to` is another name for it."""
        new = None if to is None else parse_table_name(to)
        restored = self.catalog.undrop_table(parse_table_name(name), new)
        return Table(self.catalog, restored, timing=self._handle.timing)

    def purge_table(self, name: str | TableName, *, read_all_tables: bool = False) -> PurgeResult:
        """Forget a table and delete its files: those of all its snapshots, and its metadata.

        RefusedError if another table uses one of them; `read_all_tables` reads the manifests of all tables to know,
        not only of those that may have files in the same directories.
        """
        return purge_table(self.catalog, parse_table_name(name), read_all=read_all_tables)

    create_view = delegated(LakeViews, LakeViews.create_view)
    load_view = delegated(LakeViews, LakeViews.load_view)
    view_exists = delegated(LakeViews, LakeViews.view_exists)
    list_views = delegated(LakeViews, LakeViews.list_views)
    rename_view = delegated(LakeViews, LakeViews.rename_view)
    drop_view = delegated(LakeViews, LakeViews.drop_view)

    branch = delegated(LakeRefs, LakeRefs.branch)
    tag = delegated(LakeRefs, LakeRefs.tag)
    publish = delegated(LakeRefs, LakeRefs.publish)
    drop_ref = delegated(LakeRefs, LakeRefs.drop_ref)
    tables_with_ref = delegated(LakeRefs, LakeRefs.tables_with_ref)

    @contextlib.contextmanager
    def transaction(self) -> Iterator["LakeTransaction"]:
        """Tables as a block changes them: all pointers move in one step when the block ends, none if it raises."""
        with Transaction(self.catalog, self._handle.timing) as transaction:
            yield LakeTransaction(self.catalog, self._handle.timing, transaction)

    def close(self) -> None:
        """Close connections: the lake takes no more calls, and what was loaded from it can still be read."""
        self._is_closed = True
        self.catalog.close()


def _reconnected(config: CatalogConfig) -> Lake:
    return Lake(open_catalog(config), config.name, config=config)


class LakeTransaction:
    """Tables as a block changes them."""

    def __init__(self, catalog: Catalog, timing: Timing, transaction: Transaction) -> None:
        self._catalog = catalog
        self._timing = timing
        self._transaction = transaction
        self._tables: dict[TableName, Table] = {}

    def load_table(self, name: str | TableName) -> Table:
        """A table with the changes of this transaction; the same handle at every call.

        UnsupportedError for a second table where the catalog cannot move several at once.
        """
        key = parse_table_name(name)
        if self._transaction.has_ended:
            raise InvalidInputError(f"expected an open transaction, found one that has ended, for table `{key}`")
        if key not in self._tables:
            loaded = self._catalog.load_table(key)
            chain = self._transaction.chain(loaded)
            self._tables[key] = Table(self._catalog, loaded, timing=self._timing, chain=chain)
        return self._tables[key]

    def create_table(self, name: str | TableName, *_: object, **__: object) -> NoReturn:
        """Refused: a new table is staged by itself."""
        raise _not_here(name, "create")

    def stage_table(self, name: str | TableName, *_: object, **__: object) -> NoReturn:
        """Refused: a new table is staged by itself."""
        raise _not_here(name, "stage")


def _not_here(name: object, what: str) -> UnsupportedError:
    return UnsupportedError(
        f"cannot {what} table {shown(name)} in a transaction of several tables",
        hints=["stage it by itself: `with lake.stage_table(…) as table:` creates it with its first rows"],
    )
