"""A storage for trying things out: existing files are read from another storage, new ones stay in memory."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import BinaryIO

from bergline.errors import AlreadyExistsError
from bergline.io.fileio import FileIO, ListedFile, OutputFile
from bergline.io.memory import MemoryFileIO


class ScratchFileIO:
    """FileIO that never changes the store below it: new files are in memory, and only they are deleted."""

    def __init__(self, below: FileIO) -> None:
        self._below = below
        self._new = MemoryFileIO()

    def read(self, location: str, most: int | None = None) -> bytes:
        return self._of(location).read(location, most)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return self._of(location).read_range(location, offset, length)

    def open_input(self, location: str) -> BinaryIO:
        return self._of(location).open_input(location)

    def create(self, location: str, data: bytes) -> None:
        self._check_free(location)
        self._new.create(location, data)

    def create_output(self, location: str) -> OutputFile:
        self._check_free(location)
        return self._new.create_output(location)

    def exists(self, location: str) -> bool:
        return self._new.exists(location) or self._below.exists(location)

    def delete(self, locations: Iterable[str]) -> list[str]:
        return self._new.delete(locations)

    def list(self, prefix: str) -> list[str]:
        return sorted({*self._new.list(prefix), *self._below.list(prefix)})

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        return chain(self._new.list_files(prefix), self._below.list_files(prefix))

    def _of(self, location: str) -> FileIO:
        return self._new if self._new.exists(location) else self._below

    def _check_free(self, location: str) -> None:
        if self._below.exists(location):
            raise AlreadyExistsError(f"file {location} exists already", kind="file", name=location)
