"""Storage restricted to given directories, for servers that act on behalf of clients."""

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from bergline.errors import BerglineError, RefusedError
from bergline.io.fileio import FileIO, ListedFile, OutputFile
from bergline.io.local import real_location
from bergline.io.locations import directory_location, normalized, scheme_of


class FencedFileIO:
    """FileIO restricted to locations below `allowed` and not below `denied`; RefusedError for others.

    Symbolic links are resolved first: a link inside that leads outside is outside.
    """

    def __init__(
        self,
        inner: FileIO,
        allowed: Iterable[str],
        *,
        denied: Iterable[str] = (),
        what: str = "a location in the warehouse",
        hint: str = "the operator of the server can allow further locations",
    ) -> None:
        """`what` is allowed, in words, and `hint` who can allow more."""
        self._inner = inner
        self._what = what
        self._hint = hint
        self._allowed = tuple(map(_canonical, allowed))
        self._denied = tuple(map(_canonical, denied))

    def check(self, location: str) -> str:
        """Return the location if it is allowed; RefusedError if not."""
        canonical = _canonical(location)
        inside = any(_is_below(canonical, directory) for directory in self._allowed)
        if not inside or any(_is_below(canonical, directory) for directory in self._denied):
            raise RefusedError(f"expected {self._what}, found `{location}`", hints=[self._hint])
        return location

    def read(self, location: str, most: int | None = None) -> bytes:
        return self._inner.read(self.check(location), most)

    def read_range(self, location: str, offset: int, length: int) -> bytes:
        return self._inner.read_range(self.check(location), offset, length)

    def open_input(self, location: str) -> BinaryIO:
        return self._inner.open_input(self.check(location))

    def create(self, location: str, data: bytes) -> None:
        self._inner.create(self.check(location), data)

    def create_output(self, location: str) -> OutputFile:
        return self._inner.create_output(self.check(location))

    def exists(self, location: str) -> bool:
        return self._inner.exists(self.check(location))

    def delete(self, locations: Iterable[str]) -> list[str]:
        """Delete objects; locations that are not allowed are returned as not deleted."""
        inside: list[str] = []
        outside: list[str] = []
        for location in locations:
            (inside if self._is_inside(location) else outside).append(location)
        return [*outside, *self._inner.delete(inside)]

    def list(self, prefix: str) -> list[str]:
        return self._inner.list(self.check(prefix))

    def list_files(self, prefix: str) -> Iterator[ListedFile]:
        return self._inner.list_files(self.check(prefix))

    def _is_inside(self, location: str) -> bool:
        try:
            self.check(location)
        except BerglineError:
            return False
        return True


def _canonical(location: str) -> str:
    """The canonical spelling without `..`; an error if there is none."""
    if scheme_of(location) == "file":
        return real_location(location)
    directory_location(location)
    return normalized(location).rstrip("/")


def _is_below(location: str, directory: str) -> bool:
    return location == directory or location.startswith(f"{directory.rstrip('/')}/")
