"""The directories of a table's files, and whether it may have files elsewhere.

Metadata files do not name data files: only the many manifests do. So whoever adds a file outside of the table's
directories, or removes a directory that may hold files, marks the table with a property.
"""

from collections.abc import Iterable, Mapping

from bergline.catalog.catalog import LoadedTable
from bergline.errors import InvalidInputError
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import SetLocation, SetProperties, Update
from bergline.io.local import real_location
from bergline.io.locations import absolute_location, normalized, scheme_of

FILES_ELSEWHERE = "bergline.files-elsewhere"
PATH_PROPERTIES = ("write.data.path", "write.metadata.path", "write.object-storage.path", "write.folder-storage.path")
_OWN_NAMES = ("write.location-provider.impl", "write.py-location-provider.impl")
_TAKEN_IN_PLACE = ("snapshot", "migrated")  # set by Java's procedures of these names on tables that they create


def directories_of(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The directories of a table's files as written in its metadata, its location first."""
    given = (properties.get(name) for name in PATH_PROPERTIES)
    return tuple(directory for directory in (location, *given) if directory)


def table_directories(metadata: TableMetadata) -> list[str]:
    """The absolute directories that a table writes to."""
    directories = directories_of(metadata.location, metadata.properties)
    return list(dict.fromkeys(absolute_location(directory) for directory in directories))


def is_outside(metadata: TableMetadata, locations: Iterable[str]) -> bool:
    """Whether one of the locations is in none of the table's directories, as spelled or with links resolved."""
    try:
        own = [normalized(directory).rstrip("/") for directory in table_directories(metadata)]
        found = {normalized(location).rpartition("/")[0] for location in locations}
    except InvalidInputError:
        return True
    return not (_all_in(found, own) and _all_in(map(_real, found), map(_real, own)))


def drops_directory(before: TableMetadata, after: TableMetadata, updates: Iterable[Update]) -> bool:
    """Whether a table with snapshots loses a directory that it had before or in the course of the updates."""
    visited = table_directories(before)
    for update in updates:
        if isinstance(update, SetLocation):
            visited.append(update.location)
        elif isinstance(update, SetProperties):
            visited += directories_of("", update.updates)
    if not after.snapshots or set(visited) <= set(table_directories(after)):
        return False
    return is_outside(after, (f"{directory.rstrip('/')}/x" for directory in visited))


def _all_in(directories: Iterable[str], parents: Iterable[str]) -> bool:
    prefixes = tuple(f"{parent}/" for parent in parents)
    return all(f"{directory}/".startswith(prefixes) for directory in directories)


def _real(directory: str) -> str:
    """A directory with symbolic links resolved, if it is local."""
    return real_location(directory) if scheme_of(directory) == "file" else directory


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
