"""The bin: tables that a server dropped, which come back with all their refs until they are purged.

A row is written in the transaction of the drop. Whoever restores the table removes the row in the transaction that
makes the pointer, and whoever purges it marks the row before the first file goes: so it is one or the other.
"""

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.sql.contention_layout import FOOTPRINTS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.footprint_marks import forget_unused, lock_footprints
from bergline.catalog.sql.layout import (
    INDEXED_CHARACTERS,
    indexed_location,
    join_namespace,
    metadata_below,
    starts_with,
    with_derived,
)
from bergline.catalog.sql.pointers import SqlPointers
from bergline.catalog.sql.records_layout import BIN, BIN_HOME
from bergline.errors import ConflictError, InvalidInputError
from bergline.io.locations import normalized

_FREE = 0
_ASKED_AT_ONCE = 100
_MAX_HOME_BYTES = 1500  # what an index of PostgreSQL takes beside the name of the catalog
_BIN_WITH_HOME = with_derived(BIN, sa.Column(BIN_HOME, sa.Text))
BinMark = tuple[int, int]
"""The end of a page: when the last one was dropped, and its number in the bin."""
_COLUMNS = (
    BIN.c.namespace,
    BIN.c.name,
    BIN.c.metadata_location,
    BIN.c.dropped_ms,
    BIN.c.keep_until_ms,
    BIN.c.principal,
    BIN.c.purges_files,
    BIN.c.purge_begun,
    BIN.c.problem,
    BIN.c.id,
)


class ClaimedPurge(msgspec.Struct, frozen=True):
    """A dropped table whose time is over, and until when nobody else purges it."""

    table: DroppedTable
    until_ms: int


class SqlBin:
    """The dropped tables of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name
        self._mine = BIN.c.catalog_name == catalog_name

    def add(self, connection: sa.Connection, dropped: DroppedTable) -> None:
        """Keep a table, in the transaction that drops it."""
        row = {
            "catalog_name": self._catalog,
            "namespace": join_namespace(dropped.name.namespace),
            "name": dropped.name.name,
            "metadata_location": dropped.metadata_location,
            "principal": dropped.principal,
            "dropped_ms": dropped.dropped_ms,
            "keep_until_ms": dropped.keep_until_ms,
            "purges_files": dropped.purges_files,
            "claimed_until_ms": _FREE,
            "purge_begun": False,
            "home": _indexed_home(dropped.metadata_location),
        }
        connection.execute(sa.insert(_BIN_WITH_HOME).values(row))

    def tables(self, most: int | None = None, after: BinMark | None = None) -> list[DroppedTable]:
        """The dropped tables, newest first, all or the next ones; none where the database has no bin yet."""
        with self._database.reading() as connection:
            if not sa.inspect(connection).has_table(BIN.name):
                return []
            rows = connection.execute(newest_first(sa.select(*_COLUMNS).where(self._mine), BIN, most, after))
            return [_table(tuple(row)) for row in rows]

    def find(self, metadata_locations: Collection[str], names: Collection[TableName]) -> list[DroppedTable]:
        """The dropped tables with one of these metadata files or names, each found by an index."""
        indexed = self._database.by_bytes(indexed_location(BIN.c.metadata_location))
        whole = BIN.c.metadata_location.concat("")  # or SQLite puts the value into what is indexed, and finds no index
        conditions = [sa.and_(indexed == one[:INDEXED_CHARACTERS], whole == one) for one in metadata_locations]
        conditions += [
            sa.and_(BIN.c.namespace == join_namespace(name.namespace), BIN.c.name == name.name) for name in names
        ]
        found: dict[int, DroppedTable] = {}
        with self._database.reading_snapshot() as connection:
            for start in range(0, len(conditions), _ASKED_AT_ONCE):
                some = conditions[start : start + _ASKED_AT_ONCE]
                query = sa.union_all(*(sa.select(*_COLUMNS).where(self._mine, one) for one in some))
                found |= {table.bin_id: table for table in (_table(tuple(row)) for row in connection.execute(query))}
        return list(found.values())

    def near(self, directories: Collection[str]) -> list[DroppedTable]:
        """The dropped tables whose directory is around one of these, or inside it, or not on record.

        The directories are spelt canonically (`home_of`).
        """
        home = self._database.by_bytes(_BIN_WITH_HOME.c.home)
        places = {f"{directory}/" for directory in directories}
        around = {place[: end + 1] for place in places for end, letter in enumerate(place) if letter == "/"}
        conditions: list[sa.ColumnElement[bool]] = [_BIN_WITH_HOME.c.home.is_(None), home.in_(sorted(around))]
        conditions += [starts_with(home, place) for place in sorted(places)]
        columns = [_BIN_WITH_HOME.c[column.name] for column in _COLUMNS]
        query = sa.select(*columns).where(_BIN_WITH_HOME.c.catalog_name == self._catalog)
        with self._database.reading() as connection:
            rows = connection.execute(sa.union_all(*(query.where(one) for one in conditions)))
            return list({table.bin_id: table for table in (_table(tuple(row)) for row in rows)}.values())

    def names_with_metadata_in(self, directories: Collection[str]) -> list[TableName]:
        """The names of dropped tables whose metadata file is below one of the directories, spelt the same."""
        by_bytes, location = self._database.by_bytes, BIN.c.metadata_location
        below = [sa.and_(self._mine, metadata_below(by_bytes, f"{text}/", location)) for text in directories]
        query = sa.select(BIN.c.namespace, BIN.c.name).where(sa.or_(sa.false(), *below))
        with self._database.reading() as connection:
            return [TableName(tuple(namespace.split(".")), name) for namespace, name in connection.execute(query)]

    def names_in(self, connection: sa.Connection, namespace: Namespace, name: str | None = None) -> list[TableName]:
        """The names of dropped tables: that one, or all in a namespace and below it."""
        return names_in_bin(connection, BIN, self._mine, namespace, name)

    def restore(self, pointers: SqlPointers, dropped: DroppedTable, name: TableName) -> bool:
        """Make the pointer again, under the same name or another; False if the name is taken.

        ConflictError if the table is no longer in the bin, or if its files are being deleted.
        """

        def take(connection: sa.Connection) -> None:
            mine = sa.and_(self._mine, BIN.c.id == dropped.bin_id, BIN.c.purge_begun.is_(False))
            if connection.execute(sa.delete(BIN).where(mine)).rowcount != 1:
                raise ConflictError(
                    f"table `{dropped.name}` is no longer in the bin, or its files are being deleted",
                    hints=["list the dropped tables again"],
                )

        return pointers.swap_all((PointerSwap(name, None, dropped.metadata_location),), take)

    def claim(self, now_ms: int, lease_ms: int) -> ClaimedPurge | None:
        """A table whose time is over, for this caller alone until the lease ends; None if there is none."""
        due = sa.and_(self._mine, BIN.c.keep_until_ms <= now_ms, BIN.c.claimed_until_ms <= now_ms)
        query = sa.select(*_COLUMNS).where(due).order_by(BIN.c.keep_until_ms, BIN.c.id).limit(1)
        with self._database.changing() as connection:
            row = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            claim = ClaimedPurge(_table(tuple(row)), now_ms + lease_ms)
            connection.execute(sa.update(BIN).where(BIN.c.id == row.id).values(claimed_until_ms=claim.until_ms))
            return claim

    def begin(self, claim: ClaimedPurge) -> bool:
        """Mark the purge as begun: the table cannot come back from now on. False if it is no longer claimed."""
        return self._update(claim, {"purge_begun": True, "problem": None})

    def extend(self, claim: ClaimedPurge, until_ms: int) -> ClaimedPurge:
        """Claim it for longer; ConflictError if another purges it by now."""
        if not self._update(claim, {"claimed_until_ms": until_ms}):
            raise ConflictError(f"table `{claim.table.name}` is purged by another server")
        return msgspec.structs.replace(claim, until_ms=until_ms)

    def put_off(self, claim: ClaimedPurge, until_ms: int, problem: str, *, begun: bool) -> None:
        """Try again later; a purge that has deleted nothing lets the table come back meanwhile."""
        values = {"keep_until_ms": until_ms, "claimed_until_ms": _FREE, "problem": problem, "purge_begun": begun}
        self._update(claim, values)

    def forget(self, claim: ClaimedPurge) -> None:
        """Remove a table that was purged, or whose files are to stay."""
        location = FOOTPRINTS.c.metadata_location == claim.table.metadata_location
        with self._database.changing() as connection:
            locked = lock_footprints(connection, self._catalog, location)
            if connection.execute(sa.delete(BIN).where(self._claimed(claim))).rowcount == 1:
                forget_unused(self._database, connection, self._catalog, locked)

    def _update(self, claim: ClaimedPurge, values: dict[str, object]) -> bool:
        with self._database.changing() as connection:
            return bool(connection.execute(sa.update(BIN).where(self._claimed(claim)).values(values)).rowcount == 1)

    def _claimed(self, claim: ClaimedPurge) -> sa.ColumnElement[bool]:
        return sa.and_(self._mine, BIN.c.id == claim.table.bin_id, BIN.c.claimed_until_ms == claim.until_ms)


def home_of(metadata_location: str) -> str:
    """The directory of a table by its metadata file, spelt canonically."""
    return normalized(metadata_location.rpartition("/")[0].removesuffix("/metadata")).rstrip("/")


def _indexed_home(metadata_location: str) -> str | None:
    """The directory; none if it is invalid, or too long for an index, so that it is compared each time."""
    try:
        home = f"{home_of(metadata_location)}/"
    except InvalidInputError:
        return None
    return home if len(home.encode()) <= _MAX_HOME_BYTES else None


def newest_first(query: sa.Select[Any], table: sa.Table, most: int | None, after: BinMark | None) -> sa.Select[Any]:
    """The rows of a bin, newest first: so many, after those of the page before."""
    at, number = table.c.dropped_ms, table.c.id
    if after is not None:
        query = query.where(sa.or_(at < after[0], sa.and_(at == after[0], number < after[1])))
    return query.order_by(at.desc(), number.desc()).limit(most)


def names_in_bin(
    connection: sa.Connection, table: sa.Table, mine: sa.ColumnElement[bool], namespace: Namespace, name: str | None
) -> list[TableName]:
    """The names in a bin: one, or all in a namespace and below it."""
    text = join_namespace(namespace)
    within = table.c.namespace == text
    if name is None:
        below = f"{text}."
        within = sa.or_(within, sa.func.substr(table.c.namespace, 1, len(below)) == below)
    else:
        within = sa.and_(within, table.c.name == name)
    query = sa.select(table.c.namespace, table.c.name).where(mine, within).distinct()
    return [TableName(tuple(levels.split(".")), found) for levels, found in connection.execute(query)]


def _table(row: Sequence[Any]) -> DroppedTable:
    namespace, name, *others = row
    return DroppedTable(TableName(tuple(namespace.split(".")), name), *others)
