"""The locations of new tables and views of a pointer catalog."""

from collections.abc import Mapping
from uuid import uuid4

from bergline.arguments import shown
from bergline.catalog.identifiers import Namespace, TableName
from bergline.catalog.pointer.named_pointers import check_namespace
from bergline.catalog.pointer.store_access import StoreAccess
from bergline.errors import InvalidInputError, NotFoundError, RefusedError
from bergline.io.fileio import FileIO
from bergline.io.locations import absolute_location, is_absolute, join, scheme_of

_NOT_IN_DIRECTORIES = frozenset("/\\%?#") | frozenset(map(chr, (*range(32), 127)))
_MAX_DIRECTORY_BYTES = 255  # the limit of most file systems
_UNIQUE = 8
_LOOKS = 3
_LOOK_AGAIN_S = 0.1


class NewLocations:
    """Where new tables and views go: below their namespace's `location`, or below the warehouse."""

    def __init__(self, access: StoreAccess, io: FileIO, warehouse: str | None) -> None:
        self._access = access
        self._io = io
        self._warehouse = warehouse

    def of_namespace(self, namespace: Namespace, properties: Mapping[str, str]) -> str | None:
        """The location for new tables of a namespace with these properties; None without `location` and warehouse."""
        if properties.get("location"):
            check_home(namespace, properties)
            return absolute_location(properties["location"])
        if self._warehouse is None:
            return None
        return join(self._warehouse, *map(_directory, namespace))

    def default(self, name: TableName) -> str:
        """A directory below the namespace's `location`, or below the warehouse with one directory per level.

        The directory of a table that was renamed, dropped without its files, or created by another catalog is not
        reused: a new one beside it keeps the two apart.
        """
        home, directory = self._home(name.namespace), _directory(name.name)
        if scheme_of(home) == "file":
            _check_directories(name)
        if not self._has_metadata(join(home, directory)):
            return join(home, directory)
        return join(home, f"{_shortened(directory, _MAX_DIRECTORY_BYTES - _UNIQUE - 1)}-{uuid4().hex[:_UNIQUE]}")

    def check(self, name: TableName, location: str) -> None:
        """Look for metadata, which may belong to a table that is being created under this very name."""
        for _ in range(_LOOKS):
            if not self._has_metadata(location):
                return
            self._access.names("table").check_free(name)
            self._access.sleep(_LOOK_AGAIN_S)
        raise RefusedError(
            f"cannot create `{name}` at {location}: metadata of another table is there",
            hints=[
                "to have that table, register it by its newest metadata file",
                "to be rid of a table that was dropped, delete its files; or give another location",
            ],
        )

    def _home(self, namespace: Namespace) -> str:
        """The directory of a namespace."""
        store = self._access.store
        home = self.of_namespace(namespace, store.namespace_properties(namespace) or {})
        if home is None:
            check_namespace(store, namespace)
            raise InvalidInputError(
                f"expected a warehouse for what is new in namespace `{'.'.join(namespace)}`, found none",
                hints=["connect with `warehouse`, or give a location, or the property `location` to the namespace"],
            )
        return home

    def _has_metadata(self, location: str) -> bool:
        try:
            return any(".metadata.json" in found for found in self._io.list(join(location, "metadata")))
        except NotFoundError:
            return False


def check_home(namespace: Namespace, properties: Mapping[str, str]) -> None:
    """Refuse a location for new tables that depends on the process."""
    home = properties.get("location")
    if home and not is_absolute(home):
        raise InvalidInputError(
            f"expected an absolute location for namespace `{'.'.join(namespace)}`, found {shown(home)}"
        )


def _check_directories(name: TableName) -> None:
    """Refuse names that are no valid file names."""
    for part in (*name.namespace, name.name):
        if (size := len(_directory(part).encode())) > _MAX_DIRECTORY_BYTES:
            raise InvalidInputError(
                f"expected a name of up to {_MAX_DIRECTORY_BYTES} bytes on a disk, found {size} in `{part[:40]}…`",
                hints=["choose a shorter one, or give a location"],
            )


def _shortened(directory: str, most: int) -> str:
    return directory.encode()[:most].decode(errors="ignore")


def _directory(name: str) -> str:
    """A name as a single directory, with escapes for characters that would end it here or for other readers."""
    dots = name in {".", ".."}
    return "".join(f"%{ord(c):02X}" if c in _NOT_IN_DIRECTORIES or dots else c for c in name)
