"""Tables by name, as a lake offers them: created, staged, loaded, registered, purged, and changed together."""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

import pyarrow as pa

from bergline.arguments import shown
from bergline.catalog.catalog import Catalog
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.errors import AlreadyExistsError, InvalidInputError, UnsupportedError
from bergline.format.metadata.refs import MAIN
from bergline.format.schema.schema import Schema
from bergline.io.locations import absolute_location
from bergline.lake.handle import LakeHandle
from bergline.lake.staged_table import staged_table
from bergline.table.changes.validate_from import validation_start
from bergline.table.commits.isolation import Isolation
from bergline.table.commits.retry import Timing
from bergline.table.evolution.definition import define_table, new_location
from bergline.table.orphans.purge import PurgeResult, purge_table
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import BranchRead
from bergline.table.table import Table
from bergline.table.transaction import Transaction


class LakeTables:
    """What a lake does with whole tables."""

    def __init__(self, lake: LakeHandle) -> None:
        self._catalog = lake.catalog
        self._timing = lake.timing

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
            home = new_location(self._catalog, table, definition.location)
            metadata = definition.new_table(home, self._timing.clock_ms())
            created = self._catalog.create_table(table, metadata)
        except AlreadyExistsError as error:
            if not if_not_exists or error.kind != "table":
                raise
            return self.load_table(table)
        return Table(self._catalog, created, timing=self._timing)

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
            self._catalog,
            parse_table_name(name),
            definition,
            self._timing,
            replace=replace,
            validate=lambda old: validation_start(old, MAIN, isolation, validate_from, reads),
        ) as table:
            yield table

    def load_table(self, name: str | TableName) -> Table:
        """The table as it is now."""
        return Table(self._catalog, self._catalog.load_table(parse_table_name(name)), timing=self._timing)

    def register_table(self, name: str | TableName, metadata_location: str) -> Table:
        """A table that exists already, by its metadata file; two names for one table are two tables to every writer."""
        if not isinstance(metadata_location, str) or not metadata_location:
            raise InvalidInputError(f"expected the location of a metadata file, found {metadata_location!r}")
        location = absolute_location(metadata_location)
        registered = self._catalog.register_table(parse_table_name(name), location)
        return Table(self._catalog, registered, timing=self._timing)

    def purge_table(self, name: str | TableName, *, read_all_tables: bool = False) -> PurgeResult:
        """Forget a table and delete its files: those of all its snapshots, and its metadata.

        RefusedError if another table uses one of them; `read_all_tables` reads the manifests of all tables to know,
        not only of those that may have files in the same directories.
        """
        return purge_table(self._catalog, parse_table_name(name), read_all=read_all_tables)

    @contextlib.contextmanager
    def transaction(self) -> Iterator["LakeTransaction"]:
        """Tables as a block changes them: all pointers move in one step when the block ends, none if it raises."""
        with Transaction(self._catalog, self._timing) as transaction:
            yield LakeTransaction(self._catalog, self._timing, transaction)


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
