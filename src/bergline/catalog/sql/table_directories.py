"""Which tables of a SQL catalog share directories: credentials for one table's files must not open another's.

A table is found by its metadata location, without reading it. Directories outside its location, which only its
metadata names, are stored in a database table once they have been seen.
"""

import threading
from collections.abc import Callable, Iterable, Sequence

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.layout import (
    TABLES,
    index_locations,
    index_shared_table,
    join_namespace,
    metadata_below,
    starts_with,
)
from bergline.catalog.sql.records import Records
from bergline.errors import BerglineError, NotFoundError, RefusedError
from bergline.io.gcs import GCS_SCHEMES
from bergline.io.locations import normalized, scheme_of
from bergline.io.s3 import S3_SCHEMES

_PLACES = sa.Table(
    "bergline_places",
    sa.MetaData(),
    sa.Column("catalog_name", sa.String(255), primary_key=True),
    sa.Column("table_namespace", sa.String(255), primary_key=True),
    sa.Column("table_name", sa.String(255), primary_key=True),
    sa.Column("place", sa.String(1000), primary_key=True),
)
_PLACE_INDEX = "bergline_places_place"

_SCHEMES = {scheme: schemes for schemes in (S3_SCHEMES, GCS_SCHEMES) for scheme in schemes}
"""Schemes of stores whose credentials can be limited to directories, with those that mean the same."""


class TableDirectories:
    """The directories of tables on S3 and Google Cloud Storage, and their overlaps."""

    def __init__(self, records: Records, directories: Callable[[TableName], Sequence[str]]) -> None:
        self._database = records.database
        self._catalog = records.catalog_name
        self._directories = directories
        self._is_made = False
        self._lock = threading.Lock()

    def check_apart(self, name: TableName, directories: Iterable[str]) -> None:
        """Refuse directories that overlap those of another table; otherwise record them.

        The first directory is the table's location.
        """
        places = [canonical_directory(d) for d in directories if scheme_of(d) in _SCHEMES]
        if not places:
            return
        for other in dict.fromkeys((*self._with_metadata_near(places), *self._with_places_near(places))):
            if other != name and (shared := self._shared(other, places)):
                raise RefusedError(
                    f"expected a directory of its own for table `{name}`, found `{shared}`, which overlaps "
                    f"the files of table `{other}`",
                    hints=["credentials for the files of one table must not open another's: use another directory"],
                )
        self._remember(name, [p for p in outermost(places) if not f"{p}/".startswith(f"{places[0]}/")])

    def _shared(self, other: TableName, places: Sequence[str]) -> str | None:
        """The directory that overlaps those of another table; the first one if the other's are unknown."""
        try:
            theirs = [canonical_directory(d) for d in self._directories(other)]
        except NotFoundError as error:
            if error.kind == "table":  # it is gone
                return None
            return places[0]
        except BerglineError:
            return places[0]
        return next((mine for mine in places for their in theirs if overlap(mine, their)), None)

    def _with_metadata_near(self, places: Sequence[str]) -> list[TableName]:
        """Tables with metadata in one of the directories, or in the default directory of a table around them."""
        above = [f"{up}/metadata/" for place in places for up in _above(place)]
        prefixes = dict.fromkeys([*(f"{place}/" for place in places), *above])
        mine = TABLES.c.catalog_name == self._catalog
        spellings = [text for prefix in prefixes for text in _spellings(prefix)]
        near = sa.or_(*(sa.and_(mine, metadata_below(self._database.by_bytes, text)) for text in spellings))
        self._make()
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(TABLES.c.table_namespace, TABLES.c.table_name).where(near)).all()
        return [_name(namespace, table) for namespace, table in rows]

    def _with_places_near(self, places: Sequence[str]) -> list[TableName]:
        self._make()
        kept, mine = self._database.by_bytes(_PLACES.c.place), _PLACES.c.catalog_name == self._catalog
        around = {up for place in places for up in (place, *_above(place))}
        near = [kept.in_(around), *(starts_with(kept, f"{place}/") for place in places)]
        query = sa.select(_PLACES.c.table_namespace, _PLACES.c.table_name)
        with self._database.reading() as connection:
            rows = connection.execute(query.where(sa.or_(*(sa.and_(mine, one) for one in near)))).all()
        return [_name(namespace, table) for namespace, table in rows]

    def _remember(self, name: TableName, places: Sequence[str]) -> None:
        """Record the directories of a table outside its location, replacing the previous ones."""
        own = {"catalog_name": self._catalog, "table_namespace": join_namespace(name.namespace)}
        own["table_name"] = name.name
        mine = sa.and_(*(_PLACES.c[key] == value for key, value in own.items()))
        self._make()
        with self._database.reading() as connection:
            known = set(connection.execute(sa.select(_PLACES.c.place).where(mine)).scalars())
        if known == set(places):
            return
        with self._database.changing() as connection:
            connection.execute(sa.delete(_PLACES).where(mine))
            if places:
                connection.execute(sa.insert(_PLACES), [own | {"place": place} for place in places])

    def _make(self) -> None:
        """Create the database table and the indexes, which only servers need that keep tables apart."""
        with self._lock:
            if self._is_made:
                return
            with self._database.reading() as connection:
                found = sa.inspect(connection)
                is_there = found.has_table(_PLACES.name) and any(
                    index["name"] == _PLACE_INDEX for index in found.get_indexes(_PLACES.name)
                )
            if not is_there:
                with self._database.changing() as connection:
                    self._database.lock_layout(connection)
                    _PLACES.create(connection, checkfirst=True)
                    self._index(connection)
            self._is_made = True

    def _index(self, connection: sa.Connection) -> None:
        """Create the indexes by which directories are searched for a prefix."""
        by = self._database.collation
        index_locations(connection, by)
        index_shared_table(connection, _PLACE_INDEX, f"{_PLACES.name} (catalog_name, place{by})")


def canonical_directory(location: str) -> str:
    """The canonical spelling of a directory."""
    return normalized(location).rstrip("/")


def overlap(one: str, other: str) -> bool:
    """Whether one directory is the other or lies in it."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def outermost(places: Iterable[str]) -> list[str]:
    """Directories without those inside another one, in order."""
    once = list(dict.fromkeys(places))
    return [p for p in once if not any(p != other and f"{p}/".startswith(f"{other}/") for other in once)]


def _spellings(prefix: str) -> list[str]:
    """A location with each scheme that means the same."""
    scheme, _, rest = prefix.partition("://")
    return [f"{other}://{rest}" for other in sorted(_SCHEMES[scheme])]


def _above(place: str) -> list[str]:
    """The directories above a directory, from the bucket down."""
    scheme, _, rest = place.partition("://")
    parts = rest.split("/")
    return [f"{scheme}://{'/'.join(parts[:count])}" for count in range(1, len(parts))]


def _name(namespace: str, table: str) -> TableName:
    return TableName(tuple(namespace.split(".")), table)
