"""The directories that a table says are its own, and what shows that it may have files elsewhere.

Metadata files do not name data files: only manifests do, which are many. So whoever puts a file outside of the table's
places, or takes a place away while files may be there, marks the table with a property.
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
_TAKEN_IN_PLACE = ("snapshot", "migrated")  # what Java's procedures of these names set on tables that they make


def directories_of(location: str, properties: Mapping[str, str]) -> tuple[str, ...]:
    """The directories of a table's files as the table spells them, its location first."""
    given = (properties.get(name) for name in PATH_PROPERTIES)
    return tuple(place for place in (location, *given) if place)


def places_of(metadata: TableMetadata) -> list[str]:
    """The directories that a table writes to."""
    directories = directories_of(metadata.location, metadata.properties)
    return list(dict.fromkeys(absolute_location(place) for place in directories))


def lies_elsewhere(metadata: TableMetadata, locations: Iterable[str]) -> bool:
    """Whether one of the locations, as they are spelt, is in none of the table's places, or means nothing."""
    try:
        places = [normalized(place).rstrip("/") for place in places_of(metadata)]
        directories = {normalized(location).rpartition("/")[0] for location in locations}
    except InvalidInputError:
        return True
    return not (_all_in(directories, places) and _all_in(map(_real, directories), map(_real, places)))


def leaves_places(before: TableMetadata, after: TableMetadata, updates: Iterable[Update]) -> bool:
    """Whether a table with snapshots lacks a place that it had before, or in the course of the updates."""
    visited = places_of(before)
    for update in updates:
        if isinstance(update, SetLocation):
            visited.append(update.location)
        elif isinstance(update, SetProperties):
            visited += directories_of("", update.updates)
    return bool(after.snapshots) and lies_elsewhere(after, (f"{place.rstrip('/')}/x" for place in visited))


def _all_in(directories: Iterable[str], places: Iterable[str]) -> bool:
    above = tuple(f"{place}/" for place in places)
    return all(f"{directory}/".startswith(above) for directory in directories)


def _real(directory: str) -> str:
    """A directory with its links followed, on a disk."""
    return real_location(directory) if scheme_of(directory) == "file" else directory


def may_have_files_elsewhere(table: LoadedTable, named: Iterable[str]) -> bool:
    """Whether anything in a table's metadata file shows that its manifests may name files outside of its places.

    `named` are the locations in the metadata file. Without snapshots there are no manifests.
    """
    metadata, properties = table.metadata, table.metadata.properties
    if not metadata.snapshots:
        return False
    return (
        properties.get("gc.enabled", "true").lower() != "true"
        or any(properties.get(name, "false").lower() != "false" for name in (FILES_ELSEWHERE, *_TAKEN_IN_PLACE))
        or any(name in properties for name in _OWN_NAMES)
        or lies_elsewhere(metadata, named)
    )
