"""The directories of a table: files in them belong to the table, and no others are ever deleted.

Only the manifests name data files, and reading them all takes long. So whoever adds a file outside of the table's
directories marks the table with a property, and a directory that the table no longer writes to is kept in another.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from bergline.catalog.catalog import LoadedTable
from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import RemoveProperties, SetLocation, SetProperties, Update
from bergline.io.local import real_location
from bergline.io.locations import absolute_location, normalized, scheme_of

FILES_ELSEWHERE = "bergline.files-elsewhere"
FORMER_DIRECTORIES = "bergline.former-directories"
"""A JSON array of the directories that the table has left, whose files are still its own."""
PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_OWN_NAMES = ("write.location-provider.impl", "write.py-location-provider.impl")
_TAKEN_IN_PLACE = ("snapshot", "migrated")  # set by Java's procedures of these names on tables that they create
_MOVING = (SetLocation, SetProperties, RemoveProperties)


class OwnFiles:
    """Which files are a table's own: those in its directories, also where links lead."""

    def __init__(self, metadata: TableMetadata | None, more: Iterable[str] = ()) -> None:
        own = () if metadata is None else table_directories(metadata)
        self._own = tuple(_normalized(map(absolute_location, (*own, *more))))
        self._real: tuple[str, ...] | None = None
        self._known: dict[str, bool] = {}

    def has(self, location: str) -> bool:
        """Whether a file belongs to the table; others are never deleted, because they may belong to anybody."""
        directory = location.rpartition("/")[0]
        if directory not in self._known:
            self._known[directory] = self._holds(location)
        return self._known[directory]

    def _holds(self, location: str) -> bool:
        try:
            directory = f"{normalized(location).rpartition('/')[0]}/"
        except InvalidInputError:
            return False
        if not {".", ".."}.isdisjoint(directory.split("/")) or not directory.startswith(self._own):
            return False
        if scheme_of(directory) != "file":
            return True
        if self._real is None:
            self._real = tuple(f"{_real(own)}/" for own in self._own)
        return f"{_real(directory)}/".startswith(self._real)


def directories_of(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The directories of a table's files as written in its metadata, its location first, those that it left last."""
    written = (location, *(properties.get(name) for name in PATH_PROPERTIES))
    return tuple(directory for directory in (*written, *_former(properties)) if directory)


def directories_set(updates: Iterable[Update]) -> list[str]:
    """The directories that updates give a table, be it for one of them alone."""
    found: list[str] = []
    for update in updates:
        if isinstance(update, SetLocation):
            found.append(update.location)
        elif isinstance(update, SetProperties):
            found += directories_of("", update.updates)
    return found


def table_directories(metadata: TableMetadata) -> list[str]:
    """The absolute directories that a table writes to, and those that it has left."""
    return _absolute(directories_of(metadata.location, metadata.properties))


def written_directories(metadata: TableMetadata) -> list[str]:
    """The absolute directories that a table writes to."""
    current = {name: value for name, value in metadata.properties.items() if name in PATH_PROPERTIES}
    return _absolute(directories_of(metadata.location, current))


def is_outside(metadata: TableMetadata, locations: Iterable[str]) -> bool:
    """Whether one of the locations is in none of the table's directories."""
    own = OwnFiles(metadata)
    return not all(map(own.has, locations))


def remembering_former(before: TableMetadata, after: TableMetadata, updates: Iterable[Update]) -> TableMetadata:
    """A table with snapshots, with the directories that it had before or in the course of the updates."""
    visited = [*table_directories(before), *directories_set(updates)]
    if not after.snapshots or not any(isinstance(update, _MOVING) for update in updates):
        return after
    current = OwnFiles(without_former(after))
    left = [directory for directory in _absolute(visited) if not current.has(f"{directory}/x")]
    if left == list(_former(after.properties)):
        return after
    others = without_former(after)
    if not left:
        return others
    told = {FORMER_DIRECTORIES: msgspec.json.encode(left).decode()}
    return msgspec.structs.replace(others, properties={**others.properties, **told})


def without_former(metadata: TableMetadata) -> TableMetadata:
    """A table as if it had left no directory."""
    if FORMER_DIRECTORIES not in metadata.properties:
        return metadata
    kept = {name: value for name, value in metadata.properties.items() if name != FORMER_DIRECTORIES}
    return msgspec.structs.replace(metadata, properties=kept)


def _former(properties: Mapping[str, str]) -> tuple[str, ...]:
    """The directories that a table has left; none where the property is not understood."""
    try:
        return msgspec.json.decode(properties.get(FORMER_DIRECTORIES, "[]"), type=tuple[str, ...])
    except msgspec.MsgspecError:
        return ()


def _absolute(directories: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(absolute_location(directory) for directory in directories))


def _normalized(directories: Iterable[str]) -> Iterator[str]:
    """What locations in the directories begin with, without those that have no canonical spelling."""
    for directory in directories:
        with contextlib.suppress(InvalidInputError):
            yield f"{normalized(directory).rstrip('/')}/"


def _real(directory: str) -> str:
    """A directory with symbolic links resolved, if it is local."""
    return real_location(directory).rstrip("/") if scheme_of(directory) == "file" else directory


def may_have_files_elsewhere(table: LoadedTable, named: Iterable[str]) -> bool:
    """Whether a table's metadata file suggests that its manifests may name files outside of its directories.

    `named` are the locations in the metadata file. Without snapshots there are no manifests.
    """
    metadata, properties = table.metadata, table.metadata.properties
    if not metadata.snapshots:
        return False
    return (
        properties.get("gc.enabled", "true").lower() != "true"
        or any(properties.get(name, "false").lower() != "false" for name in (FILES_ELSEWHERE, *_TAKEN_IN_PLACE))
        or any(name in properties for name in _OWN_NAMES)
        or is_outside(metadata, named)
    )
