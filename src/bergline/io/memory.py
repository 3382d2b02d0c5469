"""Files in memory under `memory:` locations, for tests and experiments."""

import io
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

from bergline.errors import AlreadyExistsError, NotFoundError
from bergline.io.fileio import ListedFile, check_range, check_size


class MemoryFileIO:
    """FileIO over a dictionary."""

    def __init__(self, *, clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000) -> None:
        self._files: dict[str, bytes] = {}
        self._modified: dict[str, int] = {}
        self._clock_ms = clock_ms
        self._lock = threading.Lock()

    def read(self, location: str, most: int | None = None) -> bytes:
        try:
            data = self._files[location]
        except KeyError:
            raise NotFoundError(f"no file {location}", kind="file", name=location) from None
        check_size(location, len(data), most)
        return data

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        data = self.read(location)
        check_range(location, offset, length, len(data))
        return data[offset : offset + length]

    def open_input(self, location: str) -> BinaryIO:
        return io.BytesIO(self.read(location))

    def create(self, location: str, data: bytes) -> None:
        with self._lock:
            if location in self._files:
                raise AlreadyExistsError(f"file {location} exists already", kind="file", name=location)
            self._modified[location] = self._clock_ms()
            self._files[location] = bytes(data)

    def create_output(self, location: str) -> "MemoryOutputFile":
        if self.exists(location):
            raise AlreadyExistsError(f"file {location} exists already", kind="file", name=location)
        return MemoryOutputFile(self, location)

    def exists(self, location: str) -> bool:
        return location in self._files

    def delete(self, locations: Iterable[str]) -> list[str]:
        with self._lock:
            for location in locations:
                self._files.pop(location, None)
                self._modified.pop(location, None)
        return []

    def list(self, prefix: str) -> list[str]:
        return sorted(name for name in self._files if name.startswith(prefix.rstrip("/") + "/"))

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        below = prefix.rstrip("/") + "/"
        with self._lock:
            found = [
                ListedFile(name, len(data), self._modified[name])
                for name, data in self._files.items()
                if name.startswith(below)
            ]
        return iter(found)


class MemoryOutputFile:
    """An object buffered until it is closed."""

    def __init__(self, files: MemoryFileIO, location: str) -> None:
        self._files = files
        self._location = location
        self._buffer = io.BytesIO()
        self._created = False

    def stream(self) -> BinaryIO:
        return self._buffer

    def close(self) -> int:
        data = self._buffer.getvalue()
        self._files.create(self._location, data)
        self._created = True
        return len(data)

    def abort(self) -> None:
        if self._created:
            self._files.delete([self._location])
