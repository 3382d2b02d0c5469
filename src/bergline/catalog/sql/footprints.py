"""Where the files of a SQL catalog's tables and views are, kept in its database by metadata location."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from bergline.catalog.footprint import DroppedOwner, Footprint, FootprintKind, FootprintOwner, NearFootprint
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql import footprint_marks
from bergline.catalog.sql.bin import SqlBin
from bergline.catalog.sql.contention_layout import FOOTPRINTS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.footprint_marks import (
    MARKED_BIN,
    MARKED_TABLES,
    current_mark,
    forget_unused,
    is_unmarked,
    lock_footprints,
)
from bergline.catalog.sql.layout import MARK, RowKind, indexed_location, join_namespace, starts_with

_PIECE = 1000
_PATHS_AT_ONCE = 50
_MAX_KEY_BYTES = 2000  # what an index of PostgreSQL takes
_MAX_PATH_BYTES = 1500  # beside the name of the catalog
_MAX_UUID_LENGTH = 255
_DROPPED = FootprintKind.DROPPED_TABLE.value


class _Source(NamedTuple):
    """A table whose rows have metadata files, and its columns."""

    table: sa.Table
    namespace: sa.ColumnElement[str]
    name: sa.ColumnElement[str]
    kind: sa.ColumnElement[Any]
    keys: tuple[sa.ColumnElement[Any], ...]

    @property
    def location(self) -> sa.ColumnElement[str]:
        return self.table.c.metadata_location

    @property
    def owner(self) -> tuple[sa.ColumnElement[Any], ...]:
        return self.kind, self.namespace, self.name, self.location


class SqlFootprints:
    """The footprints of one catalog.

    Without marks, in a database whose shared tables are not ours, all rows are looked at for what is unknown.
    """

    def __init__(self, database: SqlDatabase, dropped: SqlBin, catalog_name: str, *, typed: bool, marked: bool) -> None:
        self._database = database
        self._bin = dropped
        self._catalog = catalog_name
        self._is_marked = marked
        tables, in_bin = MARKED_TABLES, MARKED_BIN
        kind: sa.ColumnElement[Any] = tables.c.iceberg_type if typed else sa.literal_column(f"'{RowKind.TABLE.value}'")
        keys = (tables.c.table_namespace, tables.c.table_name)
        is_dropped: sa.ColumnElement[Any] = sa.literal_column(f"'{_DROPPED}'")
        self._sources = (
            _Source(tables, tables.c.table_namespace, tables.c.table_name, kind, keys),
            _Source(in_bin, in_bin.c.namespace, in_bin.c.name, is_dropped, (in_bin.c.id,)),
        )

    def unknown(self) -> Iterator[Sequence[FootprintOwner]]:
        """In the order of the keys, each page after the last row of the one before."""
        for source in self._sources:
            query = sa.select(*source.owner, *source.keys).where(self._is_unknown(source), source.location.is_not(None))
            query = query.order_by(*source.keys).limit(_PIECE)
            rows: Sequence[sa.Row[Any]] = ()
            while not rows or len(rows) == _PIECE:
                after = tuple(rows[-1][-len(source.keys) :]) if rows else None
                more = query if after is None else query.where(sa.tuple_(*source.keys) > sa.tuple_(*after))
                with self._database.reading() as connection:
                    rows = connection.execute(more).all()
                if not rows:
                    break
                yield [_owner(row) for row in rows]

    def keep(self, footprints: Sequence[Footprint]) -> None:
        """Keep and mark them in one transaction; what was kept of earlier metadata files of the same names goes.

        Rows that are there are written again, so that nobody deletes them before their marks are made.
        """
        fitting = sorted((f for f in footprints if _fits(f)), key=lambda f: f.owner.metadata_location)
        rows = [row for footprint in fitting for row in self._rows(footprint)]
        if not rows:
            return
        locations = [f.owner.metadata_location for f in fitting]
        names: dict[str, set[str]] = {}
        for row in rows:
            names.setdefault(row["table_namespace"], set()).add(row["table_name"])
        insert = self._database.insert(FOOTPRINTS)
        upsert = insert.on_conflict_do_update(
            index_elements=[c.name for c in FOOTPRINTS.primary_key], set_={"version": insert.excluded.version}
        )
        older = sa.and_(
            FOOTPRINTS.c.catalog_name == self._catalog,
            FOOTPRINTS.c.metadata_location.in_(locations),
            FOOTPRINTS.c.version != footprint_marks.RULES_VERSION,
        )
        with self._database.changing() as connection:
            for namespace in sorted(names):
                of_names = FOOTPRINTS.c.table_namespace == namespace, FOOTPRINTS.c.table_name.in_(names[namespace])
                locked = lock_footprints(connection, self._catalog, sa.and_(*of_names))
                forget_unused(self._database, connection, self._catalog, locked)
            connection.execute(sa.delete(FOOTPRINTS).where(older))
            connection.execute(upsert, rows)
            if self._is_marked:
                self._mark(connection, [footprint.owner for footprint in fitting])

    def near(self, paths: Sequence[str], table_uuid: str | None) -> list[NearFootprint]:
        """Queries of the same moment: what is in one of the tables comes back, wherever it was before."""
        outermost = list(_outermost(paths))
        pieces = [outermost[start : start + _PATHS_AT_ONCE] for start in range(0, len(outermost), _PATHS_AT_ONCE)]
        anywhere: list[sa.ColumnElement[bool]] = [FOOTPRINTS.c.path.is_(None)]
        if table_uuid is not None:
            anywhere.append(FOOTPRINTS.c.table_uuid == table_uuid)
        found: list[NearFootprint] = []
        with self._database.reading_snapshot() as connection:
            for source in self._sources:
                unknown = sa.select(*source.owner).where(self._is_unknown(source))
                found += [NearFootprint(_owner(row), None, None) for row in connection.execute(unknown)]
                queries = [self._kept(source, anywhere), *(self._kept_near(source, piece) for piece in pieces)]
                for query in queries:
                    found += [NearFootprint(_owner(row), row[4], row[5]) for row in connection.execute(query)]
        return found

    def dropped(self, metadata_locations: Collection[str], names: Collection[TableName]) -> list[DroppedOwner]:
        found = self._bin.find(metadata_locations, names)
        return [DroppedOwner(table.name, table.metadata_location, table.purge_begun) for table in found]

    def _is_unknown(self, source: _Source) -> sa.ColumnElement[bool]:
        mine = source.table.c.catalog_name == self._catalog
        if self._is_marked:
            return sa.and_(mine, is_unmarked())
        kept = sa.exists().where(
            FOOTPRINTS.c.catalog_name == self._catalog,
            FOOTPRINTS.c.metadata_location == source.location,
            FOOTPRINTS.c.version == footprint_marks.RULES_VERSION,
        )
        return sa.and_(mine, ~kept)

    def _kept_near(self, source: _Source, paths: Collection[str]) -> sa.CompoundSelect[Any]:
        """Those with a directory around one of the paths, or inside it."""
        path = self._database.by_bytes(FOOTPRINTS.c.path)
        around = path.in_(sorted({up for below in paths for up in _above(below)}))
        return self._kept(source, [around, *(starts_with(path, below) for below in paths)])

    def _kept(self, source: _Source, conditions: Sequence[sa.ColumnElement[bool]]) -> sa.CompoundSelect[Any]:
        """Rows of a source by what is kept of their metadata files, which each condition finds by an index."""
        kept = FOOTPRINTS.c.metadata_location.concat("")  # so that it is not found by this key
        is_same = sa.and_(
            source.table.c.catalog_name == self._catalog,
            self._database.by_bytes(indexed_location(source.location)) == indexed_location(kept),
            source.location == kept,
        )
        query: sa.Select[Any] = sa.select(*source.owner, FOOTPRINTS.c.table_uuid, FOOTPRINTS.c.directory)
        # an outer join, so that no database begins with the source
        query = query.select_from(FOOTPRINTS.outerjoin(source.table, is_same)).where(
            FOOTPRINTS.c.catalog_name == self._catalog,
            FOOTPRINTS.c.version == footprint_marks.RULES_VERSION,
            sa.func.coalesce(source.name, "") != "",
        )
        return sa.union_all(*(query.where(condition) for condition in conditions))

    def _mark(self, connection: sa.Connection, owners: Sequence[FootprintOwner]) -> None:
        """Mark rows that still have the metadata file, in the order in which writers lock them."""
        for source in self._sources:
            update = (
                sa.update(source.table)
                .where(source.table.c.catalog_name == self._catalog)
                .where(source.namespace == sa.bindparam("of_namespace"), source.name == sa.bindparam("of_name"))
                .where(source.location == sa.bindparam("of_location"))
                .values({MARK: current_mark()})
            )
            of_bin = source.table is MARKED_BIN
            mine = [owner for owner in owners if (owner.kind is FootprintKind.DROPPED_TABLE) is of_bin]
            values = [
                {
                    "of_namespace": join_namespace(owner.name.namespace),
                    "of_name": owner.name.name,
                    "of_location": owner.metadata_location,
                }
                for owner in sorted(mine, key=lambda owner: owner.name)
            ]
            if values:
                connection.execute(update, values)

    def _rows(self, footprint: Footprint) -> list[dict[str, Any]]:
        owner = footprint.owner
        row = {
            "catalog_name": self._catalog,
            "metadata_location": owner.metadata_location,
            "version": footprint_marks.RULES_VERSION,
            "table_namespace": join_namespace(owner.name.namespace),
            "table_name": owner.name.name,
            "table_uuid": footprint.table_uuid,
        }
        if not footprint.directories:
            return [row | {"number": 0, "directory": None, "path": None}]
        places = enumerate(footprint.directories)
        return [row | {"number": number, "directory": at.location, "path": _indexed(at.path)} for number, at in places]


def _fits(footprint: Footprint) -> bool:
    """Whether the indexes take it; what they do not stays unknown."""
    return (
        len(footprint.owner.metadata_location.encode()) <= _MAX_KEY_BYTES
        and len(footprint.table_uuid or "") <= _MAX_UUID_LENGTH
    )


def _indexed(path: str | None) -> str | None:
    """A path; none if it is too long for an index, so that the directory is compared each time."""
    return path if path is not None and len(path.encode()) <= _MAX_PATH_BYTES else None


def _owner(row: sa.Row[Any]) -> FootprintOwner:
    kind, namespace, name, location, *_ = tuple(row)
    of = {RowKind.VIEW.value: FootprintKind.VIEW, _DROPPED: FootprintKind.DROPPED_TABLE}.get(kind or "")
    return FootprintOwner(of or FootprintKind.TABLE, TableName(tuple(namespace.split(".")), name), location or "")


def _outermost(paths: Sequence[str]) -> Iterator[str]:
    """The paths, each ending in a slash, that are inside no other one."""
    last: str | None = None
    for path in sorted(paths):
        if last is None or not path.startswith(last):
            yield path
            last = path


def _above(path: str) -> Iterator[str]:
    """The directories around a path that ends in a slash, and itself."""
    parts = path.split("/")
    return ("/".join(parts[:count]) + "/" for count in range(1, len(parts)))
