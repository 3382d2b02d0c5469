"""The storage interface that the rest of bergline uses."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, Protocol

from bergline.errors import FormatError


class ListedFile(NamedTuple):
    """An object in a listing."""

    location: str
    size: int
    modified_ms: int
    """When it was last written, in milliseconds since 1970, by the storage's clock."""


class OutputFile(Protocol):
    """A file being written; readers see it only after `close`."""

    def stream(self) -> BinaryIO:
        """The stream to write to; tell() returns the number of bytes so far."""
        ...

    def close(self) -> int:
        """Make the file durable and visible, and return its length.

        AlreadyExistsError if another writer created the file meanwhile; StorageError if it could not be written.
        """
        ...

    def abort(self) -> None:
        """Remove what was written, and the file if it was closed, but never another writer's; safe to call twice."""
        ...


class FileIO(Protocol):
    """Storage for one or more schemes. Locations are URIs or bare paths."""

    def read(self, location: str, most: int | None = None) -> bytes:
        """The whole object; NotFoundError if there is none, StorageError if it cannot be read.

        FormatError, without reading it, if it has more than `most` bytes.
        """
        ...

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from byte `offset`, without reading the rest of the object.

        FormatError if the range does not lie inside the object, negative numbers included; NotFoundError if there is
        no object, StorageError if it cannot be read.
        """
        ...

    def open_input(self, location: str) -> BinaryIO:
        """A seekable stream over the object; NotFoundError if there is none."""
        ...

    def create(self, location: str, data: bytes) -> None:
        """Create the object with exactly these bytes, atomically and durably.

        AlreadyExistsError if the object exists (it is never overwritten); StorageError if it could not be written,
        and then no reader sees a part of it.
        """
        ...

    def create_output(self, location: str) -> OutputFile:
        """A new object written in pieces; AlreadyExistsError, now or on close, if the object exists."""
        ...

    def exists(self, location: str) -> bool:
        """Whether there is an object at this location; StorageError if that cannot be found out."""
        ...

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete objects; missing ones count as deleted. Returns the locations that could not be deleted."""
        ...

    def list(self, prefix: str) -> list[str]:
        """The locations of all objects below a directory, at any depth, sorted; none if there is no such directory.

        Locations include their scheme. StorageError if the listing is incomplete.
        """
        ...

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        """The same objects in any order, with size and time, streamed so that millions fit in memory.

        Links, devices and the like are left out; objects created or deleted meanwhile may be listed or not.
        """
        ...


def check_range(location: str, offset: int, length: int, size: int) -> None:
    """FormatError unless the range lies inside an object of `size` bytes."""
    if offset < 0 or length < 0 or offset + length > size:
        raise FormatError(f"expected {length} bytes from byte {offset}, found {size} bytes in all in {location}")


def check_size(location: str, size: int, most: int | None) -> None:
    """FormatError if an object exceeds the size limit."""
    if most is not None and size > most:
        raise FormatError(f"expected at most {most:,} bytes, found {size:,} in {location}")
