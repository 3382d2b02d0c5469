"""Which tables and views of a SQL catalog share directories: credentials for one's files must not open another's.

Most directories are reserved. Tables that other programs make in the database are not: they are found by their
metadata location, without reading it.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.directories.reserved_directories import (
    Claim,
    DirectoryKind,
    DirectoryState,
    Reservation,
    ReservedDirectories,
    above,
    directory_kind,
    overlap,
    reserved_spelling,
)
from bergline.catalog.sql.layout import TABLES, index_locations, metadata_below
from bergline.catalog.sql.records import Records
from bergline.errors import BerglineError, NotFoundError, RefusedError
from bergline.io.locations import normalized, spellings


class TableDirectories:
    """The directories of tables and views, and their overlaps."""

    def __init__(
        self, records: Records, directories: Callable[[DirectoryKind, TableName], Sequence[str]], *, typed: bool = True
    ) -> None:
        self._database = records.database
        self._catalog = records.catalog_name
        self.read = directories
        self._typed = typed
        self.reserved = ReservedDirectories(self._database, self._catalog, typed=typed)
        self._is_indexed = False
        self._lock = threading.Lock()

    def check_apart(self, claim: Claim, directories: Sequence[str]) -> None:
        """RefusedError for directories that overlap those of another; those of a table that is there are reserved."""
        with self._database.reading() as connection:
            taken = self.reserved.find_taken(connection, claim, directories)
        if taken is not None:
            raise not_apart(claim, taken.directory, taken.other)
        places = [reserved_spelling(directory) for directory in directories]
        spelled = list(dict.fromkeys((*places, *map(canonical_directory, directories))))
        for kind, name in dict.fromkeys(self._with_metadata_near(spelled)):
            if (kind, name) != (claim.kind, claim.name) and (shared := self._shared(kind, name, places)):
                raise not_apart(claim, shared, Reservation(shared, kind, DirectoryState.HELD, name))
        if claim.by is None:
            self.reserved.remember([(claim, directories)])

    def holders(self, directories: Iterable[str]) -> list[Reservation]:
        """All that has, or had, files in directories that overlap some directories."""
        places = [reserved_spelling(directory) for directory in directories]
        with self._database.reading() as connection:
            found = list(self.reserved.overlapping(connection, places))
        for kind, name in dict.fromkeys(self._with_metadata_near(places)):
            if shared := self._shared(kind, name, places):
                found.append(Reservation(shared, kind, DirectoryState.HELD, name))
        return found

    def _shared(self, kind: DirectoryKind, other: TableName, places: Sequence[str]) -> str | None:
        """The directory that overlaps those of another table; the first one if the other's are unknown."""
        try:
            theirs = [reserved_spelling(directory) for directory in self.read(kind, other)]
        except NotFoundError as error:
            if error.kind == kind:  # it is gone
                return None
            return places[0]
        except BerglineError:
            return places[0]
        return next((mine for mine in places for their in theirs if overlap(mine, their)), None)

    def _with_metadata_near(self, places: Sequence[str]) -> list[tuple[DirectoryKind, TableName]]:
        """Those with metadata in one of the directories, or in the default directory of a table around them."""
        prefixes = [*(f"{place}/" for place in places), *(f"{up}/metadata/" for place in places for up in above(place))]
        mine = TABLES.c.catalog_name == self._catalog
        texts = dict.fromkeys(text for prefix in prefixes for text in spellings(prefix))
        near = sa.or_(sa.false(), *(sa.and_(mine, metadata_below(self._database.by_bytes, text)) for text in texts))
        kind: sa.ColumnElement[Any] = TABLES.c.iceberg_type if self._typed else sa.null()
        self._index()
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(TABLES.c.table_namespace, TABLES.c.table_name, kind).where(near)).all()
        return [
            (directory_kind(iceberg_type), TableName(tuple(namespace.split(".")), table))
            for namespace, table, iceberg_type in rows
        ]

    def _index(self) -> None:
        """Create the index of metadata locations, which only servers need that keep tables apart."""
        with self._lock:
            if not self._is_indexed:
                with self._database.changing() as connection:
                    self._database.lock_layout(connection)
                    index_locations(connection, self._database.collation)
                self._is_indexed = True


def not_apart(claim: Claim, directory: str, other: Reservation) -> RefusedError:
    """The error for a directory that overlaps those of another."""
    states = {
        DirectoryState.HELD: "",
        DirectoryState.DROPPED: ", which was dropped and may still have files there",
        DirectoryState.STAGED: ", which somebody is about to create",
    }
    return RefusedError(
        f"expected a directory of its own for {claim.kind} `{claim.name}`, found `{directory}`, which overlaps the "
        f"files of {other.kind} `{other.name}`{states[other.state]}",
        hints=["credentials for the files of one must not open another's: use another directory"],
    )


def canonical_directory(location: str) -> str:
    """The canonical spelling of a directory."""
    return normalized(location).rstrip("/")


def outermost(places: Iterable[str]) -> list[str]:
    """Directories without those inside another one, in order."""
    once = list(dict.fromkeys(places))
    return [p for p in once if not any(p != other and f"{p}/".startswith(f"{other}/") for other in once)]
