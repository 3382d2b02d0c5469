"""Digests of metadata files in the database of a SQL catalog, written in the transaction that moves a pointer."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_digests import MetadataDigest, digest_of
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import TABLES, RowKind, join_namespace
from bergline.catalog.sql.security_layout import METADATA_DIGESTS
from bergline.errors import MetadataChangedError, RefusedError
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.sql import governance_layout, records_layout
else:  # only drops need them
    governance_layout = LazyModule("bergline.catalog.sql.governance_layout")
    records_layout = LazyModule("bergline.catalog.sql.records_layout")

_MOST_REMEMBERED = 10_000
_MAX_KEY_BYTES = 2000  # what an index of PostgreSQL takes
_OF = METADATA_DIGESTS.c
_MINE = sa.and_(_OF.catalog_name == sa.bindparam("catalog"), _OF.metadata_location == sa.bindparam("location"))
_FIND = sa.select(_OF.size, _OF.sha256).where(_MINE)
_FORGET = sa.delete(METADATA_DIGESTS).where(_MINE)
_CHANGES = (
    sa.delete(METADATA_DIGESTS).where(sa.false()),
    sa.insert(METADATA_DIGESTS).from_select([c.name for c in _OF], sa.select(METADATA_DIGESTS).where(sa.false())),
)
"""Changes of nothing: whether a user of the database may make them.

Built once: building a statement is slower than running it."""


class SqlDigests:
    """The digests of one catalog: those of current pointers and of the trash, and in memory those of new files."""

    def __init__(self, database: SqlDatabase, catalog_name: str, *, typed: bool) -> None:
        self._database = database
        self._catalog = catalog_name
        self._typed = typed
        self._known: OrderedDict[str, MetadataDigest] = OrderedDict()
        self._lock = threading.Lock()
        self._is_usable: bool | None = None
        self.noticed: Callable[[str, str, str], None] | None = None

    def remember(self, location: str, data: bytes) -> None:
        """Know a file that this process wrote or read, until a pointer is moved to it."""
        digest = digest_of(data)
        with self._lock:
            self._known[location] = digest
            self._known.move_to_end(location)
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)

    def find(self, location: str) -> MetadataDigest | None:
        """The digest that is kept for a location; None without, and where the table for them is missing."""
        if not self._database.has_digests or self._is_usable is False:
            return None
        try:
            row = self._database.first_row(_FIND, self._values(location))
        except RefusedError:  # a user of the database who may not read that table
            self._is_usable = False
            return None
        return None if row is None else MetadataDigest(*row)

    def check(self, location: str, data: bytes) -> None:
        """MetadataChangedError for a file that is not the one whose digest is kept."""
        kept = self.find(location)
        if kept is None:
            self.remember(location, data)
            return
        found = digest_of(data)
        if found == kept:
            return
        problem, (kind, namespace, name) = f"expected {kept}, found {found}", self._owner(location)
        if self.noticed is not None:
            self.noticed(f"{kind}/{namespace}/{name}", location, problem)
        raise MetadataChangedError(
            f"the metadata file of {kind} `{namespace}.{name}` is not the one that was written: {problem} "
            f"at {location}",
            hints=[
                "put back the file that was there, if the store keeps earlier versions",
                f"whoever has the database may accept it as it is: `bergline accept-metadata {namespace}.{name}`",
            ],
        )

    def accept(self, connection: sa.Connection, location: str, data: bytes) -> None:
        """Keep the digest of a file as it is now, whatever was kept."""
        connection.execute(_FORGET, self._values(location))
        connection.execute(sa.insert(METADATA_DIGESTS), self._row(location, digest_of(data)))

    def move(self, connection: sa.Connection, swaps: Sequence[PointerSwap]) -> None:
        """Replace the digests of old files by those of new ones, in the transaction that moves their pointers."""
        if not self._may_write(connection):
            return
        for swap in swaps:
            if swap.expected is not None:
                connection.execute(_FORGET, self._values(swap.expected))
            with self._lock:
                digest = self._known.get(swap.new)
            if digest is not None and len(swap.new.encode()) <= _MAX_KEY_BYTES:
                insert = self._database.insert(METADATA_DIGESTS).on_conflict_do_nothing()
                connection.execute(insert, self._row(swap.new, digest))

    def forget(self, connection: sa.Connection, table: TableName, location: str) -> None:
        """Forget the file of a name that is dropped, unless the name is in the trash with it."""
        if not self._may_write(connection):
            return
        trash = (records_layout.DROPPED_TABLES, governance_layout.DROPPED_VIEWS)
        kept = [
            sa.exists().where(
                one.c.catalog_name == self._catalog,
                one.c.namespace == join_namespace(table.namespace),
                one.c.name == table.name,
                one.c.metadata_location == location,
            )
            for one in trash
        ]
        connection.execute(_FORGET.where(sa.not_(sa.or_(*kept))), self._values(location))

    def forget_all(self, connection: sa.Connection, locations: sa.Select[Any]) -> None:
        """Forget the files of what leaves the trash; of these locations, in the transaction in which it does."""
        if self._may_write(connection):
            mine = sa.and_(_OF.catalog_name == self._catalog, _OF.metadata_location.in_(locations))
            connection.execute(sa.delete(METADATA_DIGESTS).where(mine))

    def _may_write(self, connection: sa.Connection) -> bool:
        """Whether the table is there, and this user of the database may change it."""
        if not self._database.has_digests:
            return False
        if self._is_usable is None:
            try:
                with connection.begin_nested():
                    for change in _CHANGES:
                        connection.execute(change)
                self._is_usable = True
            except sa.exc.ProgrammingError:
                self._is_usable = False
        return self._is_usable

    def _owner(self, location: str) -> tuple[str, str, str]:
        """Whose file it is: table or view, namespace and name, also of what is in the trash."""
        table: sa.ColumnElement[str] = sa.literal_column("'table'")
        view: sa.ColumnElement[str] = sa.literal_column("'view'")
        kind = sa.case((TABLES.c.iceberg_type == RowKind.VIEW.value, view), else_=table) if self._typed else table
        trash, views = records_layout.DROPPED_TABLES.c, governance_layout.DROPPED_VIEWS.c
        found = [
            sa.select(*columns).where(of.catalog_name == self._catalog, of.metadata_location == location)
            for of, *columns in (
                (TABLES.c, kind, TABLES.c.table_namespace, TABLES.c.table_name),
                (trash, table, trash.namespace, trash.name),
                (views, view, views.namespace, views.name),
            )
        ]
        with self._database.reading() as connection:
            row = connection.execute(sa.union_all(*found).limit(1)).first()
        return ("table", "", "?") if row is None else (str(row[0]), str(row[1]), str(row[2]))

    def _values(self, location: str) -> dict[str, str]:
        return {"catalog": self._catalog, "location": location}

    def _row(self, location: str, digest: MetadataDigest) -> dict[str, Any]:
        return {
            "catalog_name": self._catalog,
            "metadata_location": location,
            "size": digest.size,
            "sha256": digest.sha256,
        }
