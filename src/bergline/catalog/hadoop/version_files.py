"""Numbered metadata files in a table's directory, named as in Java's Hadoop catalog: the newest is the table.

The only change is to create the next number; a file is created once and never deleted. So all writers must use the
same name for a number: it has the extension of the previous one. A drop takes the next number too, for a tombstone, and
a new table the one after that.
"""

import contextlib
import errno
import re
from collections.abc import Iterator
from typing import NamedTuple
from uuid import uuid4

from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from bergline.io.directories import Directories
from bergline.io.fileio import FileIO
from bergline.io.locations import join

_HINT = "version-hint.text"
_TOMBSTONE = b'{"format-version": "this table was dropped by bergline"'  # Java's word when it cannot read the hint
_ENDINGS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_VERSION = re.compile(r"v(0|[1-9]\d{0,8})((\.gz)?\.metadata\.json|\.metadata\.json\.gz)")
_NUMBER = re.compile(r"\s*(\d{1,9})\s*")
_LONGEST_HINT = 100
# errors raised before anything was done; after others, such as EIO, a file server may still do it
_NOT_CREATED = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EMFILE,
        errno.EMLINK,
        errno.ENAMETOOLONG,
        errno.ENFILE,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.EPERM,
        errno.EROFS,
    }
)


class Version(NamedTuple):
    """A metadata file and its number."""

    number: int
    location: str


def is_version_file(location: str) -> bool:
    """Whether a file is the version hint or has the name of a version or tombstone."""
    name = location.rpartition("/")[2]
    return name == _HINT or _VERSION.fullmatch(name) is not None


class VersionFiles:
    """Finds, adds and ends versions in the metadata directories of tables."""

    def __init__(self, io: FileIO, directories: Directories) -> None:
        self._io = io
        self._directories = directories

    def newest(self, directory: str) -> Version | None:
        """The current version; None if there is no table."""
        while found := self._newest(directory):
            with contextlib.suppress(NotFoundError):  # deleted meanwhile: look again
                return None if self._is_tombstone(found) else found
        return None

    def is_taken(self, directory: str) -> bool:
        """Whether there is or was a table, of this catalog or another."""
        return self._newest(directory) is not None or self.is_foreign(directory)

    def is_foreign(self, directory: str) -> bool:
        """Whether there is metadata without a version number, from another catalog."""
        entries = self._directories.entries(directory)
        return any(
            ".metadata.json" in name and not _VERSION.fullmatch(name) for name in (entries.files if entries else ())
        )

    def next_location(self, directory: str, previous: str | None) -> str:
        """The name of the next version, or of the first of a new table."""
        if previous is None:
            tombstone = self._newest(directory)
            return join(directory, f"v{tombstone.number + 1 if tombstone else 1}{_ENDINGS[0]}")
        number, name = _number_of(previous), previous.rpartition("/")[2]
        return join(directory, name.replace(f"v{number}", f"v{number + 1}", 1))

    def add(self, directory: str, previous: str | None, location: str, data: bytes) -> bool:
        """True if and only if the version did not exist and now has this content; the hint is updated too."""
        if not create_file(self._io, location, data):
            return False
        number = _number_of(location)
        with _in_doubt():  # Java may delete old versions, which a slow writer would take for free
            if previous is not None and not self._io.exists(previous) and self._has_newer(directory, number):
                raise StorageError(f"cannot find out whether {location} was there before old files were cleared away")
        self._hint_at(directory, number)
        return True

    def drop(self, directory: str, version: Version) -> bool:
        """True if and only if the version was the newest and the table is dropped; all files stay."""
        tombstone = self.next_location(directory, version.location)
        return self.add(directory, version.location, tombstone, _TOMBSTONE + f', "by": "{uuid4()}"}}\n'.encode())

    def holds(self, location: str, data: bytes) -> bool | None:
        """Whether a file has exactly this content; None if there is no such file."""
        return _holds(self._io, location, data)

    def _newest(self, directory: str) -> Version | None:
        """The version with the highest number, which may be a tombstone."""
        found = self._hinted(directory)
        while found and (following := self._find(directory, found.number + 1)):
            found = following
        return found or max(self._versions(directory), default=None, key=lambda v: (v.number, -len(v.location)))

    def _has_newer(self, directory: str, number: int) -> bool:
        return any(version.number > number for version in self._versions(directory))

    def _hinted(self, directory: str) -> Version | None:
        """The version that the hint names, if it exists."""
        try:
            with self._io.open_input(join(directory, _HINT)) as stream:
                text = stream.read(_LONGEST_HINT).decode("ascii", errors="replace")
        except NotFoundError:
            return None
        number = _NUMBER.fullmatch(text)
        return self._find(directory, int(number[1])) if number else None

    def _find(self, directory: str, number: int) -> Version | None:
        locations = (join(directory, f"v{number}{ending}") for ending in _ENDINGS)
        return next((Version(number, location) for location in locations if self._io.exists(location)), None)

    def _versions(self, directory: str) -> list[Version]:
        entries = self._directories.entries(directory)
        matches = (_VERSION.fullmatch(name) for name in (entries.files if entries else ()))
        return [Version(int(m[1]), join(directory, m[0])) for m in matches if m]

    def _is_tombstone(self, version: Version) -> bool:
        with self._io.open_input(version.location) as stream:
            return stream.read(len(_TOMBSTONE)) == _TOMBSTONE

    def _hint_at(self, directory: str, number: int) -> None:
        hint = join(directory, _HINT)
        with contextlib.suppress(BerglineError):  # best effort
            self._io.delete([hint])
            self._io.create(hint, str(number).encode())


def create_file(io: FileIO, location: str, data: bytes) -> bool:
    """Create a file with unique content; after a refusal, the existing content shows who created it.

    StorageError means that it may have been created, UnavailableError that it was not.
    """
    try:
        io.create(location, data)
    except (AlreadyExistsError, StorageError) as error:
        with _in_doubt():
            found = _holds(io, location, data)
            if found is None and isinstance(error, AlreadyExistsError):
                raise StorageError(f"cannot find out whose file {location} was, which is gone") from error
        cause = error.__cause__
        if found is None and isinstance(cause, OSError) and cause.errno in _NOT_CREATED:
            raise UnavailableError(error.message, hints=error.hints) from error
        if found is None:
            raise
        return found
    return True


def _holds(io: FileIO, location: str, data: bytes) -> bool | None:
    try:
        return io.read(location) == data
    except NotFoundError:
        return None


def _number_of(location: str) -> int:
    version = _VERSION.fullmatch(location.rpartition("/")[2])
    if version is None:
        raise InvalidInputError(f"expected a file like `v1.metadata.json`, found `{location}`")
    return int(version[1])


@contextlib.contextmanager
def _in_doubt() -> Iterator[None]:
    """After a file was created, or may have been, no error may claim that nothing was changed."""
    try:
        yield
    except BerglineError as error:
        raise StorageError(error.message, hints=error.hints) from error
