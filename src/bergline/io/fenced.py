"""Storage that touches nothing outside the places it was given, for servers that do what others ask."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from bergline.errors import BerglineError, RefusedError
from bergline.io.fileio import FileIO, ListedFile, OutputFile
from bergline.io.local import real_location
from bergline.io.locations import directory_location, normalized, scheme_of


class FencedFileIO:
    """FileIO that passes on what lies below one of `places` and not below one of `never`; RefusedError for the rest.

    Links on a disk are followed first: a link inside that leads outside is outside.
    """

    def __init__(self, inner: FileIO, places: Iterable[str], *, never: Iterable[str] = ()) -> None:
        self._inner = inner
        self._places = tuple(map(_spelt, places))
        self._never = tuple(map(_spelt, never))

    def check(self, location: str) -> str:
        """The location itself, if it is inside."""
        spelt = _spelt(location)
        inside = any(_is_below(spelt, place) for place in self._places)
        if not inside or any(_is_below(spelt, place) for place in self._never):
            raise RefusedError(
                f"expected a location in the warehouse, found `{location}`",
                hints=["whoever runs the server can allow further places"],
            )
        return location

    def read(self, location: str, most: int | None = None) -> bytes:
        """The whole object."""
        return self._inner.read(self.check(location), most)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        """A part of the object."""
        return self._inner.read_range(self.check(location), offset, length)

    def open_input(self, location: str) -> BinaryIO:
        """A seekable stream over the object."""
        return self._inner.open_input(self.check(location))

    def create(self, location: str, data: bytes) -> None:
        """Create the object."""
        self._inner.create(self.check(location), data)

    def create_output(self, location: str) -> OutputFile:
        """A new object written in pieces."""
        return self._inner.create_output(self.check(location))

    def exists(self, location: str) -> bool:
        """Whether there is an object."""
        return self._inner.exists(self.check(location))

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete objects; those outside are among the ones that could not be deleted."""
        inside: list[str] = []
        outside: list[str] = []
        for location in locations:
            (inside if self._is_inside(location) else outside).append(location)
        return [*outside, *self._inner.delete(inside)]

    def list(self, prefix: str) -> list[str]:
        """Objects below a prefix."""
        return self._inner.list(self.check(prefix))

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        """Objects below a prefix with size and time."""
        return self._inner.list_files(self.check(prefix))

    def _is_inside(self, location: str) -> bool:
        try:
            self.check(location)
        except BerglineError:
            return False
        return True


def _spelt(location: str) -> str:
    """One spelling without steps upwards; errors for locations that have none."""
    if scheme_of(location) == "file":
        return real_location(location)
    directory_location(location)
    return normalized(location).rstrip("/")


def _is_below(location: str, place: str) -> bool:
    return location == place or location.startswith(f"{place.rstrip('/')}/")
