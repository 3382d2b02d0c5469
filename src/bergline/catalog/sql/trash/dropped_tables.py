"""The trash: tables that a server dropped, which come back with all their refs until they are purged.

A row is written in the transaction of the drop. Whoever restores the table removes the row in the transaction that
makes the pointer, and whoever purges it marks the row before the first file goes: so it is one or the other.
"""

import threading
from collections.abc import Collection, Iterator, Sequence
from string import ascii_letters, digits
from typing import Any

import msgspec
import sqlalchemy as sa

from bergline.catalog.catalog import DroppedTable, DroppedView
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.pointer_store import PointerSwap
from bergline.catalog.sql.contention_layout import FOOTPRINTS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.digests import SqlDigests
from bergline.catalog.sql.layout import index_shared_table, join_namespace, starts_with
from bergline.catalog.sql.pointers import SqlPointers
from bergline.catalog.sql.records_layout import DROPPED_TABLES
from bergline.errors import ConflictError

_FREE = 0
_DIRECTORY_INDEX = "bergline_bin_directory"
_INDEXED_CHARACTERS = 500  # so many of any language fit into an index of PostgreSQL
_ANYWHERE = ""
"""The path of a directory that is not spelled plainly: it may be any."""
TrashMark = tuple[int, int]
"""The end of a page: when the last one was dropped, and its number in the trash."""
_COLUMNS = [  # as a DroppedTable has them, whose `bin_id` is the last
    DROPPED_TABLES.c[name] for name in ("namespace", *DroppedTable.__struct_fields__[:-1], "id")
]


class ClaimedPurge(msgspec.Struct, frozen=True):
    """A dropped table whose time is over, and until when nobody else purges it."""

    table: DroppedTable
    until_ms: int


class SqlDroppedTables:
    """The dropped tables of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str, digests: SqlDigests) -> None:
        self._database = database
        self._digests = digests
        self._catalog = catalog_name
        self._mine = DROPPED_TABLES.c.catalog_name == catalog_name
        self._path: sa.ColumnElement[str] = sa.literal_column(_path_of_directory(database.find_function))
        self._is_indexed = False
        self._lock = threading.Lock()

    def add(self, connection: sa.Connection, dropped: DroppedTable) -> None:
        """Keep a table, in the transaction that drops it."""
        purge = {"purges_files": dropped.purges_files, "claimed_until_ms": _FREE, "purge_begun": False}
        add_to_trash(connection, DROPPED_TABLES, self._catalog, dropped, **purge)

    def tables(self, most: int | None = None, after: TrashMark | None = None) -> list[DroppedTable]:
        """The dropped tables, newest first, all or the next ones; none where the database has no trash yet."""
        with self._database.reading() as connection:
            if not sa.inspect(connection).has_table(DROPPED_TABLES.name):
                return []
            rows = connection.execute(newest_first(sa.select(*_COLUMNS).where(self._mine), DROPPED_TABLES, most, after))
            return [_table(tuple(row)) for row in rows]

    def near(self, directories: Collection[str]) -> list[DroppedTable]:
        """The dropped tables whose metadata lies in one of the directories, or in one around them, and some others.

        All are among them, however their locations are spelled: the caller compares. They are found by an index.
        """
        with self._database.reading() as connection:
            if not directories or not sa.inspect(connection).has_table(DROPPED_TABLES.name):
                return []
        self._index()
        paths = {path for directory in directories for path in _spelled_paths(directory)}
        around = {_ANYWHERE, *(up[:_INDEXED_CHARACTERS] for path in paths for up in _homes_above(path))}
        path = self._database.by_bytes(self._path)
        near = [path.in_(sorted(around)), *(_starts_with(path, below) for below in sorted(paths))]
        query = sa.select(*_COLUMNS).where(sa.or_(*(sa.and_(self._mine, one) for one in near)))
        with self._database.reading() as connection:
            return [_table(tuple(row)) for row in connection.execute(query)]

    def names_in(self, connection: sa.Connection, namespace: Namespace, name: str | None = None) -> list[TableName]:
        """The names of dropped tables: that one, or all in a namespace and below it."""
        return names_in_trash(connection, DROPPED_TABLES, self._mine, namespace, name)

    def restore(self, pointers: SqlPointers, dropped: DroppedTable, name: TableName) -> bool:
        """Make the pointer again, under the same name or another; False if the name is taken.

        ConflictError if the table is no longer in the trash, or if its files are being deleted.
        """

        def take(connection: sa.Connection) -> None:
            mine = sa.and_(self._mine, DROPPED_TABLES.c.id == dropped.bin_id, DROPPED_TABLES.c.purge_begun.is_(False))
            if connection.execute(sa.delete(DROPPED_TABLES).where(mine)).rowcount != 1:
                raise ConflictError(
                    f"table `{dropped.name}` is no longer in the trash, or its files are being deleted",
                    hints=["list the dropped tables again"],
                )

        return pointers.swap_all((PointerSwap(name, None, dropped.metadata_location),), take)

    def claim(self, now_ms: int, lease_ms: int) -> ClaimedPurge | None:
        """A table whose time is over, for this caller alone until the lease ends; None if there is none."""
        due = sa.and_(self._mine, DROPPED_TABLES.c.keep_until_ms <= now_ms, DROPPED_TABLES.c.claimed_until_ms <= now_ms)
        query = sa.select(*_COLUMNS).where(due).order_by(DROPPED_TABLES.c.keep_until_ms, DROPPED_TABLES.c.id).limit(1)
        with self._database.changing() as connection:
            row = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            claim = ClaimedPurge(_table(tuple(row)), now_ms + lease_ms)
            connection.execute(
                sa.update(DROPPED_TABLES).where(DROPPED_TABLES.c.id == row.id).values(claimed_until_ms=claim.until_ms)
            )
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
        dropped = claim.table
        location = FOOTPRINTS.c.metadata_location == dropped.metadata_location
        with self._database.changing() as connection:
            if connection.execute(sa.delete(DROPPED_TABLES).where(self._claimed(claim))).rowcount == 1:
                self._digests.forget(connection, dropped.name, dropped.metadata_location)
                connection.execute(sa.delete(FOOTPRINTS).where(FOOTPRINTS.c.catalog_name == self._catalog, location))

    def _index(self) -> None:
        """Create the index of directories, which only servers need that keep the directories of tables apart."""
        with self._lock:
            if self._is_indexed:
                return
            with self._database.changing() as connection:
                self._database.lock_layout(connection)
                indexed = f"({self._path}){self._database.collation}"
                index_shared_table(connection, _DIRECTORY_INDEX, f"{DROPPED_TABLES.name} (catalog_name, ({indexed}))")
            self._is_indexed = True

    def _update(self, claim: ClaimedPurge, values: dict[str, object]) -> bool:
        with self._database.changing() as connection:
            return bool(
                connection.execute(sa.update(DROPPED_TABLES).where(self._claimed(claim)).values(values)).rowcount == 1
            )

    def _claimed(self, claim: ClaimedPurge) -> sa.ColumnElement[bool]:
        return sa.and_(
            self._mine, DROPPED_TABLES.c.id == claim.table.bin_id, DROPPED_TABLES.c.claimed_until_ms == claim.until_ms
        )


def add_to_trash(
    connection: sa.Connection, table: sa.Table, catalog_name: str, dropped: DroppedTable | DroppedView, **more: object
) -> None:
    """Keep what is dropped, in the transaction that drops it."""
    row = {
        "catalog_name": catalog_name,
        "namespace": join_namespace(dropped.name.namespace),
        "name": dropped.name.name,
        "metadata_location": dropped.metadata_location,
        "principal": dropped.principal,
        "dropped_ms": dropped.dropped_ms,
        "keep_until_ms": dropped.keep_until_ms,
    }
    connection.execute(sa.insert(table).values(row | more))


def newest_first(query: sa.Select[Any], table: sa.Table, most: int | None, after: TrashMark | None) -> sa.Select[Any]:
    """The rows of the trash, newest first: so many, after those of the page before."""
    at, number = table.c.dropped_ms, table.c.id
    if after is not None:
        query = query.where(sa.or_(at < after[0], sa.and_(at == after[0], number < after[1])))
    return query.order_by(at.desc(), number.desc()).limit(most)


def names_in_trash(
    connection: sa.Connection, table: sa.Table, mine: sa.ColumnElement[bool], namespace: Namespace, name: str | None
) -> list[TableName]:
    """The names in the trash: one, or all in a namespace and below it."""
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


def _path_of_directory(find: str) -> str:
    """The directory of a metadata file as SQL: its start, without the scheme and the slashes before the path.

    `find` is the database's function for the position of a text in another. A scheme is what `scheme_of` takes for one.
    """
    whole = "metadata_location"
    first, colon, no_letters = f"substr({whole}, 1, 1)", f"{find}({whole}, ':')", f"{digits}+.-"
    has_scheme = (
        f"{colon} > 2 AND ltrim({first}, '{no_letters}') <> '' "
        f"AND substr(ltrim({whole}, '{ascii_letters}{no_letters}'), 1, 2) = ':/'"
    )
    rest = f"CASE WHEN {first} = '/' THEN {whole} WHEN {has_scheme} THEN substr({whole}, {colon} + 1) END"
    path = f"ltrim({rest}, '/')"
    odd = " OR ".join(f"{find}('/' || {path}, '{part}') > 0" for part in ("//", "/./", "/../"))
    directory = f"rtrim({path}, replace({path}, '/', ''))"  # all up to the last slash
    indexed = f"substr({directory}, 1, {_INDEXED_CHARACTERS})"
    return f"CASE WHEN ({rest}) IS NULL OR {odd} THEN '{_ANYWHERE}' ELSE {indexed} END"


def _spelled_paths(directory: str) -> set[str]:
    """A directory as `_path_of_directory` has it, with a slash behind it, in all spellings."""
    path = directory if directory.startswith("/") else directory.partition(":")[2]
    path = f"{path.strip('/')}/".lstrip("/")
    return {path, f"localhost/{path}", path.replace(".dfs.", ".blob.", 1)}


def _homes_above(path: str) -> Iterator[str]:
    """The paths of metadata of tables whose location is a directory around one."""
    parts = path.split("/")
    above = ("".join(f"{part}/" for part in parts[:count]) for count in range(len(parts)))
    return (home for up in above for home in (up, f"{up}metadata/"))


def _starts_with(column: sa.ColumnElement[Any], path: str) -> sa.ColumnElement[bool]:
    if not path:
        return sa.true()
    return starts_with(column, path) if len(path) <= _INDEXED_CHARACTERS else column == path[:_INDEXED_CHARACTERS]
