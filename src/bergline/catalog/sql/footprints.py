"""Where the files of a SQL catalog's tables and views are, kept in its database by metadata location."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from bergline.catalog.footprint import Footprint, FootprintKind, FootprintOwner, NearFootprint
from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.contention_layout import FOOTPRINTS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import TABLES, RowKind, join_namespace, starts_with
from bergline.catalog.sql.records_layout import DROPPED_TABLES

_RULES_VERSION: Final = 1
"""Counted up when a footprint comes to mean something else: what was kept before is then unknown."""
_PIECE = 1000
_MOST_PATHS = 50
_MAX_KEY_BYTES = 2000  # what an index of PostgreSQL takes
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

    def joined(self, catalog_name: str, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
        """Each row with the directories that are kept of its metadata file, or none."""
        kept = sa.and_(
            FOOTPRINTS.c.catalog_name == catalog_name,
            FOOTPRINTS.c.metadata_location == self.location,
            FOOTPRINTS.c.version == _RULES_VERSION,
        )
        owner = (self.kind, self.namespace, self.name, self.location)
        query = sa.select(*owner, *columns).select_from(self.table.outerjoin(FOOTPRINTS, kept))
        return query.where(self.table.c.catalog_name == catalog_name)


class SqlFootprints:
    """The footprints of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str, *, typed: bool) -> None:
        self._database = database
        self._catalog = catalog_name
        kind: sa.ColumnElement[Any] = TABLES.c.iceberg_type if typed else sa.literal_column(f"'{RowKind.TABLE.value}'")
        keys = (TABLES.c.table_namespace, TABLES.c.table_name)
        dropped: sa.ColumnElement[Any] = sa.literal_column(f"'{_DROPPED}'")
        self._sources = (
            _Source(TABLES, TABLES.c.table_namespace, TABLES.c.table_name, kind, keys),
            _Source(DROPPED_TABLES, DROPPED_TABLES.c.namespace, DROPPED_TABLES.c.name, dropped, (DROPPED_TABLES.c.id,)),
        )

    def unknown(self) -> Iterator[Sequence[FootprintOwner]]:
        """In the order of the keys, each page after the last row of the one before."""
        for source in self._sources:
            query = source.joined(self._catalog, *source.keys)
            query = query.where(FOOTPRINTS.c.number.is_(None), source.location.is_not(None))
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
        """Keep them in one transaction; what was kept of earlier metadata files of the same names goes."""
        short = [f for f in footprints if len(f.owner.metadata_location.encode()) <= _MAX_KEY_BYTES]
        rows = [row for footprint in short for row in self._rows(footprint)]
        if not rows:
            return
        names = {(row["table_namespace"], row["table_name"]) for row in rows}
        with self._database.changing() as connection:
            connection.execute(self._stale(sorted(names)))
            connection.execute(self._database.insert(FOOTPRINTS).on_conflict_do_nothing(), rows)

    def near(self, paths: Sequence[str], table_uuid: str | None) -> list[NearFootprint]:
        """One query for all names, and one for the trash, of the same moment: what comes back is in one of them."""
        path = self._database.by_bytes(FOOTPRINTS.c.path)
        conditions: list[sa.ColumnElement[bool]] = [FOOTPRINTS.c.path.is_(None)]
        if len(paths) > _MOST_PATHS:
            conditions = [sa.true()]
        else:
            conditions += [FOOTPRINTS.c.path.in_({up for below in paths for up in _above(below)})]
            conditions += [starts_with(path, below) for below in paths]
        if table_uuid is not None:
            conditions.append(FOOTPRINTS.c.table_uuid == table_uuid)
        found: list[NearFootprint] = []
        with self._database.reading_snapshot() as connection:
            for source in self._sources:
                query = source.joined(self._catalog, FOOTPRINTS.c.table_uuid, FOOTPRINTS.c.directory)
                rows = connection.execute(query.where(sa.or_(*conditions)))
                found += [NearFootprint(_owner(row), row[4], row[5]) for row in rows]
        return found

    def _rows(self, footprint: Footprint) -> list[dict[str, Any]]:
        owner = footprint.owner
        row = {
            "catalog_name": self._catalog,
            "metadata_location": owner.metadata_location,
            "version": _RULES_VERSION,
            "table_namespace": join_namespace(owner.name.namespace),
            "table_name": owner.name.name,
            "table_uuid": footprint.table_uuid,
        }
        if not footprint.directories:
            return [row | {"number": 0, "directory": None, "path": None}]
        places = enumerate(footprint.directories)
        return [row | {"number": number, "directory": at.location, "path": at.path} for number, at in places]

    def _stale(self, names: Sequence[tuple[str, str]]) -> sa.Delete:
        """Delete what is kept of these names that neither the catalog nor the trash has, or of another version."""
        kept = FOOTPRINTS.c
        used = [
            sa.exists().where(
                source.table.c.catalog_name == self._catalog,
                source.namespace == kept.table_namespace,
                source.name == kept.table_name,
                source.location == kept.metadata_location,
            )
            for source in self._sources
        ]
        of_names = sa.tuple_(kept.table_namespace, kept.table_name).in_(names)
        unused = sa.or_(~sa.or_(*used), kept.version != _RULES_VERSION)
        return sa.delete(FOOTPRINTS).where(kept.catalog_name == self._catalog, of_names, unused)


def _owner(row: sa.Row[Any]) -> FootprintOwner:
    kind, namespace, name, location, *_ = tuple(row)
    of = {RowKind.VIEW.value: FootprintKind.VIEW, _DROPPED: FootprintKind.DROPPED_TABLE}.get(kind or "")
    return FootprintOwner(of or FootprintKind.TABLE, TableName(tuple(namespace.split(".")), name), location or "")


def _above(path: str) -> Iterator[str]:
    """The directories around a path that ends in a slash, and itself."""
    parts = path.split("/")
    return ("/".join(parts[:count]) + "/" for count in range(1, len(parts)))
