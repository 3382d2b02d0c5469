"""Where the files of tables and views are, kept by a catalog so that not every metadata file has to be read."""

from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Protocol

import msgspec

from bergline.catalog.identifiers import TableName


class FootprintKind(Enum):
    """What has files."""

    TABLE = "table"
    VIEW = "view"
    DROPPED_TABLE = "dropped table"


class FootprintOwner(msgspec.Struct, frozen=True):
    """A table or view by its name and current metadata file."""

    kind: FootprintKind
    name: TableName
    metadata_location: str


class FilesDirectory(msgspec.Struct, frozen=True):
    """A directory with files, and its path, by which it is compared; none on a disk, where links may change it."""

    location: str
    path: str | None


class Footprint(msgspec.Struct, frozen=True):
    """The directories with all files of a table or view; none if there may be files elsewhere."""

    owner: FootprintOwner
    table_uuid: str | None
    directories: tuple[FilesDirectory, ...]


class NearFootprint(msgspec.Struct, frozen=True):
    """One that may have files near others: a directory that may be, or none if nothing is known."""

    owner: FootprintOwner
    table_uuid: str | None
    directory: str | None


class Footprints(Protocol):
    """The footprints that a catalog keeps, of metadata files, which never change."""

    def unknown(self) -> Iterator[Sequence[FootprintOwner]]:
        """Tables, views and tables in the trash of whose metadata file nothing is kept, some at a time."""
        ...

    def keep(self, footprints: Sequence[Footprint]) -> None:
        """Keep what metadata files say; RefusedError or UnavailableError if that is impossible now."""
        ...

    def near(self, paths: Sequence[str], table_uuid: str | None) -> list[NearFootprint]:
        """All of which nothing is kept, or that may have files above or below a path, or have the UUID.

        Each path ends in a slash. Whatever is not among them had no files there when it was asked.
        """
        ...
