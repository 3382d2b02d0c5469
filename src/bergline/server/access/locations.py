"""Where tables may be: only locations that the server may touch, and none that holds all other tables."""

from collections.abc import Mapping

from bergline.catalog.sql.directories.table_directories import canonical_directory
from bergline.catalog.table_locations import PATH_PROPERTIES
from bergline.errors import BerglineError, InvalidInputError, RefusedError
from bergline.io.fenced import FencedFileIO
from bergline.io.fileio import FileIO
from bergline.io.locations import directory_location, is_absolute, scheme_of

_METADATA_FILE = ".metadata.json"
_LONGEST_LOCATION = 4096
_MAX_BYTES, _MAX_BYTES_OF_A_PART = 2000, 255  # of a path on most disks, with room for names below it


class Locations:
    """The locations that requests name, checked against the fence of the server's files."""

    def __init__(self, io: FileIO, warehouse: str | None) -> None:
        self._io = io
        self._warehouse = warehouse

    def check_location(self, location: str | None) -> None:
        """RefusedError for a location that the server may not touch."""
        if location is None:
            return
        if not location:
            raise InvalidInputError("expected a location, found an empty text")
        if len(location) > _LONGEST_LOCATION:
            most, size = _LONGEST_LOCATION, len(location)
            raise InvalidInputError(
                f"expected a location of up to {most} characters, found {size} in `{location[:80]}…`"
            )
        if scheme_of(location) == "file" and _is_too_long(location):
            raise InvalidInputError(f"expected a location that a disk can have, found `{location[:200]}…`")
        if isinstance(self._io, FencedFileIO):
            self._io.check(location)

    def check_directory(self, location: str) -> None:
        """RefusedError for a directory that is outside, or that contains all other tables."""
        self.check_location(location)
        scheme, home = scheme_of(location), self._warehouse
        is_whole = scheme != "file" and not directory_location(location).key
        if is_whole or (
            home is not None and f"{canonical_directory(home)}/".startswith(f"{canonical_directory(location)}/")
        ):
            raise RefusedError(
                f"expected a directory below the warehouse, found `{location[:200]}`, which is all of it",
                hints=["other tables lie there: give this one a directory of its own"],
            )

    def check_properties(self, properties: Mapping[str, str]) -> None:
        """Refuse properties of a table or view that place its files outside."""
        for key in PATH_PROPERTIES:
            place = properties.get(key)
            if place and not is_absolute(place):
                raise InvalidInputError(f"expected an absolute location for property `{key}`, found `{place[:200]}`")
            if place:
                self.check_directory(place)

    def check_metadata(self, location: str) -> None:
        """Refuse a metadata file that is outside, or whose name is not that of one: it might be of any size."""
        self.check_location(location)
        if _METADATA_FILE not in location.rpartition("/")[2]:
            raise InvalidInputError(f"expected a metadata file (…{_METADATA_FILE}), found `{location[:200]}`")

    def is_reachable(self, location: str) -> bool:
        """Whether the server may touch a location."""
        try:
            self.check_location(location)
        except BerglineError:
            return False
        return True


def _is_too_long(location: str) -> bool:
    parts = location.encode().split(b"/")
    return sum(map(len, parts)) > _MAX_BYTES or max(map(len, parts)) > _MAX_BYTES_OF_A_PART
