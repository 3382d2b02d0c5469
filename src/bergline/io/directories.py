"""Directory listings, one level at a time; operations on files are in `fileio`."""

import contextlib
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from bergline.errors import NotFoundError, StorageError, UnsupportedError
from bergline.io.locations import local_path, scheme_of
from bergline.io.open_store import OBJECT_STORE_SCHEMES
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.io import object_store
else:  # not needed on disk
    object_store = LazyModule("bergline.io.object_store")


class Entries(NamedTuple):
    """The names in a directory, sorted."""

    directories: list[str]
    files: list[str]


class Directories(Protocol):
    """Operations on directories; StorageError if they cannot be read or changed."""

    def entries(self, location: str) -> Entries | None:
        """The contents of a directory; None if there is no such directory."""
        ...

    def make(self, location: str) -> bool:
        """Create a directory; False if the storage cannot have an empty one."""
        ...

    def remove(self, location: str) -> bool:
        """Remove a directory if it is empty; returns whether it is gone."""
        ...


class LocalDirectories:
    """Directories on local disk."""

    def entries(self, location: str) -> Entries | None:
        found = Entries([], [])
        try:
            with os.scandir(local_path(location)) as entries:
                for entry in entries:
                    (found.directories if entry.is_dir() else found.files).append(entry.name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StorageError(f"cannot list {location}: {error.strerror or error}") from error
        return Entries(sorted(found.directories), sorted(found.files))

    def make(self, location: str) -> bool:
        try:
            os.makedirs(local_path(location), exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make directory {location}: {error.strerror or error}") from error
        return True

    def remove(self, location: str) -> bool:
        with contextlib.suppress(OSError):
            os.rmdir(local_path(location))
        return not os.path.lexists(local_path(location))


class ObjectDirectories:
    """Directories of an object store, by the prefixes of keys. A directory exists while anything is in it."""

    def __init__(self, files: "object_store.ObjectStoreFileIO") -> None:
        self._files = files

    def entries(self, location: str) -> Entries | None:
        """The next segment of every key below the directory."""
        try:
            directories, files = self._files.list_level(location)
        except NotFoundError:
            return None
        return Entries(list(directories), list(files)) if directories or files else None

    def make(self, location: str) -> bool:
        """Does nothing: object stores have no empty directories."""
        return False

    def remove(self, location: str) -> bool:
        """A directory is gone with the last object in it."""
        return self.entries(location) is None


def directories_for(location: str, properties: Mapping[str, str]) -> Directories:
    """The directories for the scheme of a location; UnsupportedError for other schemes."""
    scheme = scheme_of(location)
    if scheme == "file":
        return LocalDirectories()
    if scheme in OBJECT_STORE_SCHEMES:
        return ObjectDirectories(object_store.ObjectStoreFileIO(properties))
    raise UnsupportedError(f"expected a directory on disk or in an object store, found `{location}`")
