"""Dispatches each location to the storage for its scheme."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, BinaryIO

from bergline.errors import UnsupportedError
from bergline.io.fileio import FileIO, ListedFile, OutputFile
from bergline.io.local import LocalFileIO
from bergline.io.locations import scheme_of
from bergline.io.open_store import OBJECT_STORE_SCHEMES
from bergline.io.settings import StoreSettings
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.io import object_store
else:  # most lakes that are opened are on disk
    object_store = LazyModule("bergline.io.object_store")


def store_settings(io: FileIO, location: str) -> StoreSettings | None:
    """The settings with which the object store of a location is opened; None if it is not one of our object stores."""
    storage = io.storage_for(location) if isinstance(io, SchemeFileIO) else io
    return storage.settings_for(location) if isinstance(storage, object_store.ObjectStoreFileIO) else None


class SchemeFileIO:
    """FileIO that delegates to the storage for the scheme of a location.

    Local files and object stores (opened with `properties`) are built in. It can be pickled if the storages added by
    `schemes` can.
    """

    def __init__(
        self, schemes: Mapping[str, FileIO] | None = None, *, properties: Mapping[str, str] | None = None
    ) -> None:
        self._properties = dict(properties or {})
        self._schemes: dict[str, FileIO] = {"file": LocalFileIO(), **(schemes or {})}

    def storage_for(self, location: str) -> FileIO:
        """The storage that holds a location."""
        scheme = scheme_of(location)
        found = self._schemes.get(scheme)
        if found is None and scheme in OBJECT_STORE_SCHEMES:
            found = self._open_objects(scheme)
        if found is None:
            known = ", ".join(sorted({*self._schemes, *OBJECT_STORE_SCHEMES}))
            raise UnsupportedError(f"expected a location with one of the schemes {known}, found `{location}`")
        return found

    def _open_objects(self, scheme: str) -> FileIO:
        """One storage for all object stores that `schemes` does not name, which opens each on first use."""
        objects = object_store.ObjectStoreFileIO(self._properties)
        for other in OBJECT_STORE_SCHEMES:
            self._schemes.setdefault(other, objects)
        return self._schemes[scheme]

    def read(self, location: str, most: int | None = None) -> bytes:
        return self.storage_for(location).read(location, most)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return self.storage_for(location).read_range(location, offset, length)

    def open_input(self, location: str) -> BinaryIO:
        return self.storage_for(location).open_input(location)

    def create(self, location: str, data: bytes) -> None:
        self.storage_for(location).create(location, data)

    def create_output(self, location: str) -> OutputFile:
        return self.storage_for(location).create_output(location)

    def exists(self, location: str) -> bool:
        return self.storage_for(location).exists(location)

    def delete(self, locations: Iterable[str]) -> list[str]:
        groups: dict[int, tuple[FileIO, list[str]]] = {}
        for location in locations:
            storage = self.storage_for(location)
            groups.setdefault(id(storage), (storage, []))[1].append(location)
        return [failed for storage, group in groups.values() for failed in storage.delete(group)]

    def list(self, prefix: str) -> list[str]:
        return self.storage_for(prefix).list(prefix)

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        return self.storage_for(prefix).list_files(prefix)
