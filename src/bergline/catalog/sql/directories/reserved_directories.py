"""Directories that are reserved for tables and views, written in the transaction that makes or changes these.

A directory stays reserved for a table that left it, for one that was dropped as long as nobody deletes its files, and
for one that was staged until its credentials are over. Whole path segments count, in canonical spelling.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import TABLES, RowKind, join_namespace, starts_with
from bergline.catalog.sql.security_layout import RESERVED_DIRECTORIES
from bergline.errors import InvalidInputError
from bergline.io.local import real_location
from bergline.io.locations import normalized, scheme_of

_MAX_BYTES = 2000  # what an index of PostgreSQL takes
_UUID_LENGTH = 36
_PIECE = 500
_ROWS = RESERVED_DIRECTORIES.c
_COLUMNS = (_ROWS.directory, _ROWS.kind, _ROWS.state, _ROWS.namespace, _ROWS.name, _ROWS.table_uuid, _ROWS.owner)


class DirectoryKind(StrEnum):
    """What has files in a directory."""

    TABLE = "table"
    VIEW = "view"


class DirectoryState(StrEnum):
    """Why a directory is reserved."""

    HELD = "held"
    DROPPED = "dropped"
    STAGED = "staged"


class Reservation(msgspec.Struct, frozen=True):
    """A directory, and for whom it is reserved."""

    directory: str
    kind: DirectoryKind
    state: DirectoryState
    name: TableName
    table_uuid: str | None = None
    owner: str | None = None
    """The grantee who owned what was dropped, or the principal who staged it."""


class Claim(msgspec.Struct, frozen=True):
    """A table or view that is to have files in directories.

    Of one that is there already, what was dropped is not asked about: that it has its directories was decided before.
    """

    kind: DirectoryKind
    name: TableName
    table_uuid: str | None = None
    by: frozenset[str] | None = None
    """Who makes or changes it, under all names; None for one that is as it was."""
    administers: bool = False

    def covers(self, other: Reservation) -> bool:
        """Whether a reservation is its own, or of something that may be taken over."""
        is_named = (other.kind, other.name) == (self.kind, self.name)
        match other.state:
            case DirectoryState.HELD:
                return is_named
            case DirectoryState.STAGED:
                return is_named and (self.by is None or other.owner in self.by)
            case DirectoryState.DROPPED:
                return self.by is None or self.administers or other.owner in self.by


class Taken(NamedTuple):
    """A directory that is wanted, and what is in its way."""

    directory: str
    other: Reservation


class ReservedDirectories:
    """The reservations of one catalog."""

    def __init__(
        self,
        database: SqlDatabase,
        catalog_name: str,
        *,
        typed: bool = True,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._database = database
        self._catalog = catalog_name
        self._typed = typed
        self._clock_ms = clock_ms

    def find_taken(self, connection: sa.Connection, claim: Claim, directories: Iterable[str]) -> Taken | None:
        """A directory that overlaps one that is reserved for another; None if all are free."""
        places = [reserved_spelling(directory) for directory in directories]
        for other in self.overlapping(connection, places):
            if not claim.covers(other):
                return Taken(next(place for place in places if overlap(place, other.directory)), other)
        return None

    def reserve(self, connection: sa.Connection, claim: Claim, directories: Iterable[str]) -> None:
        """Reserve directories, beside those that the table or view has; what it was staged with becomes its own."""
        self._insert(connection, claim, directories, DirectoryState.HELD)

    def stage(
        self, connection: sa.Connection, claim: Claim, directories: Iterable[str], by: str, until_ms: int
    ) -> None:
        """Reserve the directories of a table that does not exist yet, until a time."""
        over = sa.and_(_ROWS.state == DirectoryState.STAGED, _ROWS.until_ms <= self._clock_ms())
        connection.execute(sa.delete(RESERVED_DIRECTORIES).where(_ROWS.catalog_name == self._catalog, over))
        self._insert(connection, claim, directories, DirectoryState.STAGED, owner=by, until_ms=until_ms)

    def lock(self, connection: sa.Connection) -> None:
        """Let nobody else reserve directories until the end of the transaction."""
        self._database.lock_directories(connection)

    def begin(self, connection: sa.Connection, claim: Claim, directories: Iterable[str] = ()) -> None:
        """What is reserved for a name before something new gets it is of something that is gone.

        Directories that it was staged with are not staged any more; others that were stay so, for as long as their
        credentials last.
        """
        held = self._of(claim.kind, claim.name, DirectoryState.HELD)
        connection.execute(sa.update(RESERVED_DIRECTORIES).where(held).values(state=DirectoryState.DROPPED))
        staged = self._of(claim.kind, claim.name, DirectoryState.STAGED)
        mine = sa.and_(_ROWS.directory.in_(map(reserved_spelling, directories)), _ROWS.owner.in_(claim.by or ()))
        connection.execute(sa.delete(RESERVED_DIRECTORIES).where(staged, mine))

    def drop(self, connection: sa.Connection, claim: Claim, directories: Iterable[str], owner: str | None) -> None:
        """Keep the directories of what is dropped for its owner."""
        self.reserve(connection, claim, directories)
        held = self._of(claim.kind, claim.name, DirectoryState.HELD)
        values = {"state": DirectoryState.DROPPED, "owner": owner, "table_uuid": _uuid(claim)}
        connection.execute(sa.update(RESERVED_DIRECTORIES).where(held).values(values))

    def restore(self, connection: sa.Connection, claim: Claim, before: TableName) -> None:
        """Give what was dropped under a name its directories back."""
        self._take(connection, claim, self._of(claim.kind, before, DirectoryState.DROPPED))

    def take_over(self, connection: sa.Connection, claim: Claim) -> None:
        """What was reserved for the same table before it was dropped, and the claim covers, is its own again."""
        if claim.kind is not DirectoryKind.TABLE or claim.table_uuid is None:
            return
        dropped = sa.and_(_ROWS.catalog_name == self._catalog, _ROWS.state == DirectoryState.DROPPED)
        if not claim.administers:
            dropped = sa.and_(dropped, _ROWS.owner.in_(claim.by or ()))
        self._take(connection, claim, dropped)

    def former(self, claim: Claim) -> list[str]:
        """The directories of the same table from before it was dropped, which the claim covers."""
        if claim.kind is not DirectoryKind.TABLE or claim.table_uuid is None:
            return []
        dropped = sa.and_(_ROWS.state == DirectoryState.DROPPED, _ROWS.table_uuid == _uuid(claim))
        mine = sa.and_(_ROWS.catalog_name == self._catalog, _ROWS.owner.in_(claim.by or ()))
        with self._database.reading() as connection:
            return list(connection.execute(sa.select(_ROWS.directory).where(dropped, mine)).scalars())

    def rename(self, connection: sa.Connection, kind: DirectoryKind, before: TableName, after: TableName) -> None:
        """The directories go with a new name."""
        self.begin(connection, Claim(kind, after))
        self._move(connection, self._of(kind, before, DirectoryState.HELD), after)

    def release(self, name: TableName, table_uuid: str | None) -> None:
        """Forget the directories of a dropped table whose files were deleted."""
        dropped = sa.and_(self._of(DirectoryKind.TABLE, name, DirectoryState.DROPPED), _ROWS.table_uuid == table_uuid)
        with self._database.changing() as connection:
            connection.execute(sa.delete(RESERVED_DIRECTORIES).where(dropped))

    def remember(self, found: Sequence[tuple[Claim, Sequence[str]]]) -> None:
        """Reserve the directories of tables and views that exist, unless they are."""
        with self._database.reading() as connection:
            new = [
                (claim, directories)
                for claim, directories in found
                if not self._held(connection, claim).issuperset(map(reserved_spelling, directories))
            ]
        if not new:
            return
        with self._database.changing() as connection:
            self.lock(connection)
            for claim, directories in new:
                if connection.execute(sa.select(TABLES.c.table_name).where(*self._named(claim.name))).first():
                    self.reserve(connection, claim, directories)

    def unreserved(self) -> Iterator[list[Claim]]:
        """The tables and views without a reservation, some at a time, in the order of their names."""
        of_row = sa.and_(
            _ROWS.catalog_name == TABLES.c.catalog_name,
            _ROWS.namespace == TABLES.c.table_namespace,
            _ROWS.name == TABLES.c.table_name,
            _ROWS.state == DirectoryState.HELD,
        )
        keys = TABLES.c.table_namespace, TABLES.c.table_name
        kind = TABLES.c.iceberg_type if self._typed else sa.null()
        query = sa.select(*keys, kind).where(TABLES.c.catalog_name == self._catalog, ~sa.exists().where(of_row))
        query, after = query.order_by(*keys).limit(_PIECE), ("", "")
        while True:
            with self._database.reading() as connection:
                rows = connection.execute(query.where(sa.tuple_(*keys) > sa.tuple_(*after))).all()
            if not rows:
                return
            after = rows[-1][0], rows[-1][1]
            yield [Claim(directory_kind(row[2]), TableName(tuple(row[0].split(".")), row[1])) for row in rows]

    def _named(self, name: TableName) -> tuple[sa.ColumnElement[bool], ...]:
        return (
            TABLES.c.catalog_name == self._catalog,
            TABLES.c.table_namespace == join_namespace(name.namespace),
            TABLES.c.table_name == name.name,
        )

    def _insert(
        self,
        connection: sa.Connection,
        claim: Claim,
        directories: Iterable[str],
        state: DirectoryState,
        *,
        owner: str | None = None,
        until_ms: int | None = None,
    ) -> None:
        known = self._held(connection, claim) if state is DirectoryState.HELD else set[str]()
        row = {
            "catalog_name": self._catalog,
            "kind": claim.kind,
            "state": state,
            "namespace": join_namespace(claim.name.namespace),
            "name": claim.name.name,
            "table_uuid": _uuid(claim),
            "owner": owner,
            "until_ms": until_ms,
        }
        new = dict.fromkeys(place for place in map(reserved_spelling, directories) if place not in known)
        if new:
            connection.execute(sa.insert(RESERVED_DIRECTORIES), [row | {"directory": place} for place in new])

    def _held(self, connection: sa.Connection, claim: Claim) -> set[str]:
        held = self._of(claim.kind, claim.name, DirectoryState.HELD)
        return set(connection.execute(sa.select(_ROWS.directory).where(held)).scalars())

    def _take(self, connection: sa.Connection, claim: Claim, rows: sa.ColumnElement[bool]) -> None:
        if claim.kind is DirectoryKind.TABLE:
            rows = sa.and_(rows, _ROWS.kind == claim.kind, _ROWS.table_uuid == _uuid(claim))
        self._move(connection, rows, claim.name)

    def _move(self, connection: sa.Connection, rows: sa.ColumnElement[bool], to: TableName) -> None:
        values = {"state": DirectoryState.HELD, "namespace": join_namespace(to.namespace), "name": to.name}
        connection.execute(sa.update(RESERVED_DIRECTORIES).where(rows).values(values | {"owner": None}))

    def overlapping(self, connection: sa.Connection, places: Sequence[str]) -> list[Reservation]:
        """All in, at or around the places; what is held by a name that is gone counts as dropped."""
        if not places:
            return []
        around = {up for place in places for up in (place, *above(place))}
        near = sa.or_(_ROWS.directory.in_(around), *(starts_with(_ROWS.directory, f"{place}/") for place in places))
        of_name = sa.and_(
            TABLES.c.catalog_name == _ROWS.catalog_name,
            TABLES.c.table_namespace == _ROWS.namespace,
            TABLES.c.table_name == _ROWS.name,
        )
        query = sa.select(*_COLUMNS, TABLES.c.table_name.is_not(None)).select_from(
            RESERVED_DIRECTORIES.outerjoin(TABLES, of_name)
        )
        is_over = sa.and_(_ROWS.state == DirectoryState.STAGED, _ROWS.until_ms <= self._clock_ms())
        rows = connection.execute(query.where(_ROWS.catalog_name == self._catalog, near, ~is_over))
        return [_reservation(row) for row in rows]

    def _of(self, kind: DirectoryKind, name: TableName, state: DirectoryState) -> sa.ColumnElement[bool]:
        return sa.and_(
            _ROWS.catalog_name == self._catalog,
            _ROWS.namespace == join_namespace(name.namespace),
            _ROWS.name == name.name,
            _ROWS.kind == kind,
            _ROWS.state == state,
        )


def reserved_spelling(directory: str) -> str:
    """The canonical spelling of a directory, on a disk with links resolved; InvalidInputError for one too long."""
    place = real_location(directory) if scheme_of(directory) == "file" else normalized(directory)
    if len(place.encode(errors="surrogatepass")) > _MAX_BYTES:
        raise InvalidInputError(f"expected a directory of up to {_MAX_BYTES} bytes, found `{directory[:80]}…`")
    return place.rstrip("/")


def directory_kind(iceberg_type: str | None) -> DirectoryKind:
    """What a row of the shared tables is."""
    return DirectoryKind.VIEW if iceberg_type == RowKind.VIEW.value else DirectoryKind.TABLE


def overlap(one: str, other: str) -> bool:
    """Whether one directory is the other or lies in it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def above(place: str) -> list[str]:
    """The directories above a directory, from the bucket or the root down."""
    scheme, _, rest = place.partition("://")
    parts = rest.split("/")
    return [f"{scheme}://{'/'.join(parts[:count])}" for count in range(1, len(parts))]


def _uuid(claim: Claim) -> str | None:
    return claim.table_uuid and claim.table_uuid[:_UUID_LENGTH]


def _reservation(row: sa.Row[Any]) -> Reservation:
    directory, kind, state, namespace, name, table_uuid, owner, is_there = tuple(row)
    found = DirectoryState(state) if is_there or state != DirectoryState.HELD else DirectoryState.DROPPED
    return Reservation(
        directory, DirectoryKind(kind), found, TableName(tuple(namespace.split(".")), name), table_uuid, owner
    )
