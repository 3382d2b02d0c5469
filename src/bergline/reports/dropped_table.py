"""The last state of a table that was dropped without its files, found by its metadata files."""

import re
from collections import defaultdict
from collections.abc import Iterable

import msgspec

from bergline.catalog.identifiers import TableName
from bergline.catalog.metadata_files import table_files
from bergline.errors import BerglineError, NotFoundError, RefusedError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import absolute_location, normalized
from bergline.lake.lake import Lake
from bergline.table.expiry.reachable import reachable_files
from bergline.table.orphans.catalog_tables import every_table

_METADATA_FILE = re.compile(
    r"(?P<home>.*)/(?P<directory>[^/]+)/metadata/(?:(?P<version>\d{1,18})-[^/]*|v(?P<hint>\d{1,9}))(?:\.gz)?\.metadata\.json(?:\.gz)?"
)
_UNIQUE = re.compile(r"-[0-9a-f]{8,32}\Z")
_MOST_NAMED = 10


class LastState(msgspec.Struct, frozen=True):
    """A state in which a table can be registered again."""

    metadata_location: str
    metadata: TableMetadata
    missing_files: tuple[str, ...]
    """Files that its snapshots need and that are gone, or files that could not be read to find out; some, if there are
    many."""


def find_dropped(lake: Lake, name: TableName, *, location: str | None = None) -> LastState:
    """The newest state among the metadata files of a table's directory, by default where the catalog puts the table.

    NotFoundError if there is none, RefusedError if two files could be the last one. Files of the catalog's tables are
    left out: a second name for a table would be a second table to every writer.
    """
    io = lake.catalog.io
    files = _by_directory(_metadata_files(io, lake, name, location), _live_directories(lake))
    if not files:
        where = "" if location is None else f" in {location}"
        raise NotFoundError(
            f"no metadata of a dropped table `{name}`{where}",
            kind="table",
            name=str(name),
            hints=["a table elsewhere is found with its location, or registered by its metadata file"],
        )
    newest = [_newest(name, found) for found in files.values()]
    states = [read_dropped(lake, one) for one in newest]
    return max(states, key=lambda state: state.metadata.last_updated_ms)


def read_dropped(lake: Lake, metadata_location: str) -> LastState:
    """The state in a metadata file, and which of its files are gone."""
    io = lake.catalog.io
    metadata = table_files(io).load(absolute_location(metadata_location))
    return LastState(metadata_location, metadata, tuple(_missing(io, metadata)))


def _metadata_files(io: FileIO, lake: Lake, name: TableName, location: str | None) -> Iterable[tuple[str, int]]:
    """Metadata files with their versions, in the directory of a table or in others beside it that may be its own."""
    if location is None:
        home, _, directory = lake.catalog.default_location(name).rstrip("/").rpartition("/")
        wanted, below = _UNIQUE.sub("", directory), home
    else:
        below = absolute_location(location).rstrip("/")
        wanted = below.rpartition("/")[2]
    for file in io.list_files(below):
        match = _METADATA_FILE.fullmatch(file.location)
        if match is None:
            continue
        plain = _UNIQUE.sub("", match["directory"]) if location is None else match["directory"]
        is_beside = location is not None or normalized(match["home"]) == normalized(below)
        if plain == wanted and is_beside:
            yield file.location, int(match["version"] or match["hint"])


def _live_directories(lake: Lake) -> set[str]:
    found = set()
    for table in every_table(lake.catalog):
        try:
            found.add(normalized(lake.catalog.pointer(table).rpartition("/")[0]))
        except NotFoundError:  # dropped since it was listed
            continue
    return found


def _by_directory(files: Iterable[tuple[str, int]], live: set[str]) -> dict[str, list[tuple[str, int]]]:
    found = defaultdict(list)
    for location, version in files:
        directory = normalized(location.rpartition("/")[0])
        if directory not in live:
            found[directory].append((location, version))
    return found


def _newest(name: TableName, files: list[tuple[str, int]]) -> str:
    """The file of the highest version; two of them come from a commit whose outcome was never settled."""
    highest = max(version for _, version in files)
    last = [location for location, version in files if version == highest]
    if len(last) > 1:
        raise RefusedError(
            f"cannot tell which metadata file of `{name}` was its last: {', '.join(sorted(last))}",
            hints=["register the right one by its location"],
        )
    return last[0]


def _missing(io: FileIO, metadata: TableMetadata) -> list[str]:
    try:
        needed = [file.location for file in reachable_files(io, metadata)]
    except BerglineError as error:
        return [str(error)]
    there = {normalized(location) for location in io.list(metadata.location)}
    gone = []
    for location in needed:
        if normalized(location) not in there and not io.exists(location):
            gone.append(location)
            if len(gone) == _MOST_NAMED:
                break
    return gone
