"""Dispatches each location to the storage for its scheme."""

from collections.abc import Iterable, Iterator, Mapping
from typing import BinaryIO

from bergline.errors import UnsupportedError
from bergline.io.fileio import FileIO, ListedFile, OutputFile
from bergline.io.local import LocalFileIO
from bergline.io.locations import scheme_of
from bergline.io.object_store import ObjectStoreFileIO
from bergline.io.open_store import OBJECT_STORE_SCHEMES


class SchemeFileIO:
    """FileIO that delegates to the storage for the scheme of a location.

    Local files and object stores (opened with `properties`) are built in. It can be pickled if the storages added by
    `schemes` can.
    """

    def __init__(
        self, schemes: Mapping[str, FileIO] | None = None, *, properties: Mapping[str, str] | None = None
    ) -> None:
        objects = ObjectStoreFileIO(properties)
        self._schemes: dict[str, FileIO] = {
            "file": LocalFileIO(),
            **dict.fromkeys(sorted(OBJECT_STORE_SCHEMES), objects),
            **(schemes or {}),
        }

    def storage_for(self, location: str) -> FileIO:
        """The storage that holds a location."""
        scheme = scheme_of(location)
        try:
            return self._schemes[scheme]
        except KeyError:
            known = ", ".join(sorted(self._schemes))
            raise UnsupportedError(f"expected a location with one of the schemes {known}, found `{location}`") from None

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
