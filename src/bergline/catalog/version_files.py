"""Numbered metadata files in a table's directory, as Java's Hadoop catalog names them: the newest is the table.

Creating the next number is the commit, so all writers must want the same name for it: it ends as the one before it.
A drop takes the next number for a gravestone, leaves its words in `dropped-v…`, with the table's UUID, and clears the
files away. What has the UUID and a number up to that one no longer counts, also if a slow writer creates it later.
New tables of ours go on with higher numbers; those of Java begin again.
"""

import contextlib
import re
from collections.abc import Iterator
from typing import NamedTuple
from uuid import uuid4

import msgspec

from bergline.errors import (
    AlreadyExistsError,
    BerglineError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    UnavailableError,
)
from bergline.format.metadata_gzip import unpack
from bergline.io.directories import Directories
from bergline.io.fileio import FileIO
from bergline.io.locations import join, scheme_of

_HINT = "version-hint.text"
_DROPPED = "dropped.text"
_GRAVESTONE = '{"bergline": "dropped", '
_ENDINGS = (".metadata.json", ".gz.metadata.json", ".metadata.json.gz")
_VERSION = re.compile(r"v(0|[1-9]\d{0,8})((\.gz)?\.metadata\.json|\.metadata\.json\.gz)")
_DROPPED_UP_TO = re.compile(r"dropped-v(\d{1,9})\.text")
_NUMBER = re.compile(r"\s*(\d{1,9})\s*")
_LONGEST_HINT = 100


class Version(NamedTuple):
    """A metadata file and its number."""

    number: int
    location: str


class VersionFiles:
    """Finds, adds and ends versions; directories are those that tables have their metadata in."""

    def __init__(self, io: FileIO, directories: Directories) -> None:
        self._io = io
        self._directories = directories

    def newest(self, directory: str) -> Version | None:
        """The version that counts; None if there is no table."""
        while found := self._newest(directory):
            with contextlib.suppress(NotFoundError):  # gone since it was found: look again
                return None if self._is_gravestone(found) else found
        return None

    def is_taken(self, directory: str) -> bool:
        """Whether a table is there, of this catalog or another, or what is left of one."""
        if self._io.exists(join(directory, _DROPPED)) or self._newest(directory) is not None:
            return True
        return self.is_foreign(directory)

    def is_foreign(self, directory: str) -> bool:
        """Whether metadata is there that has no version: another catalog's."""
        entries = self._directories.entries(directory)
        return any(
            ".metadata.json" in name and not _VERSION.fullmatch(name) for name in (entries.files if entries else ())
        )

    def next_location(self, directory: str, previous: str | None) -> str:
        """The name for the version after another one, or for the first of a new table."""
        if previous is None:
            self._mark_gravestone(directory)
            numbers = {v.number for v in self._versions(directory)} | {v.number for v in self._marks(directory)}
            return join(directory, f"v{max(numbers, default=0) + 1}{_ENDINGS[0]}")
        number, name = _number_of(previous), previous.rpartition("/")[2]
        return join(directory, name.replace(f"v{number}", f"v{number + 1}", 1))

    def add(self, directory: str, previous: str | None, location: str, data: bytes) -> bool:
        """True if and only if the version was free and has these bytes now; then the hint says so too."""
        if not self._add(directory, previous, location, data, uuid_in(data, location)):
            return False
        self._hint_at(directory, _number_of(location))
        return True

    def drop(self, directory: str, version: Version) -> bool:
        """True if and only if the version was the newest, and there is no table any more; its last metadata is kept."""
        data = self._read(version)
        if data is None:
            return False
        gravestone = Version(version.number + 1, self.next_location(directory, version.location))
        uuid = uuid_in(data, version.location)
        words = f'{_GRAVESTONE}"table-uuid": "{uuid}", "by": "{uuid4()}"}}\n'.encode()
        if not self._create(gravestone.location, words):
            return False
        with _in_doubt():
            ours = self._mark(directory, gravestone, words)
            if not ours or self._dropped(directory).get(uuid, 0) > gravestone.number:
                self._io.delete([gravestone.location])  # another drop came first, and was cleared away
                return False
        with contextlib.suppress(BerglineError):  # nothing of the rest changes what readers see
            with contextlib.suppress(FormatError):  # what cannot be read is not worth keeping
                text = unpack(data, version.location)
                self._create_if_missing(join(directory, f"dropped-v{version.number}.json"), text)
            self._clear(directory, gravestone.number)
        return True

    def holds(self, location: str, data: bytes) -> bool | None:
        """Whether a file has exactly these bytes; None if there is no such file."""
        try:
            return self._io.read(location) == data
        except NotFoundError:
            return None

    def _newest(self, directory: str) -> Version | None:
        found = self._hinted(directory)
        while found and (following := self._find(directory, found.number + 1)):
            found = following
        # marks are looked for last: whatever came too late was created after its mark
        return self._listed(directory) if found is None or self._io.exists(join(directory, _DROPPED)) else found

    def _add(self, directory: str, previous: str | None, location: str, data: bytes, uuid: str) -> bool:
        """Create a version, and look whether that was possible only because others had cleared its number away."""
        if not self._create(location, data):
            return False
        number = _number_of(location)
        with _in_doubt():
            dropped = self._dropped(directory) if self._io.exists(join(directory, _DROPPED)) else {}
            own, any_table = dropped.get(uuid, 0), max(dropped.values(), default=0)
            if number <= own or (previous is None and number <= any_table):
                self._io.delete([location])
                if number >= own:  # the gravestone had this number, or another table: never we
                    return False
                raise StorageError(f"cannot find out whether {location} was there before the table was dropped")
            if previous is not None and not self._io.exists(previous) and self._has_newer(directory, number):
                raise StorageError(f"cannot find out whether {location} was there before old files were cleared away")
        return True

    def _has_newer(self, directory: str, number: int) -> bool:
        return any(version.number > number for version in self._versions(directory))

    def _hinted(self, directory: str) -> Version | None:
        """The version that the hint names, if it names one that is there."""
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

    def _listed(self, directory: str) -> Version | None:
        versions = sorted(self._versions(directory), key=lambda v: (-v.number, len(v.location)))
        dropped = self._dropped(directory)
        return next((v for v in versions if not dropped or self._counts(v, dropped)), None)

    def _counts(self, version: Version, dropped: dict[str, int]) -> bool:
        """Whether a version belongs to a table that was not dropped, or is a gravestone without its mark yet."""
        data = self._read(version)
        if data is None:
            return False
        uuid = uuid_in(data, version.location)
        return version.number > dropped.get(uuid, 0)

    def _versions(self, directory: str) -> list[Version]:
        entries = self._directories.entries(directory)
        matches = (_VERSION.fullmatch(name) for name in (entries.files if entries else ()))
        return [Version(int(m[1]), join(directory, m[0])) for m in matches if m]

    def _marks(self, directory: str) -> list[Version]:
        """The marks that drops left, by their numbers."""
        entries = self._directories.entries(directory)
        matches = (_DROPPED_UP_TO.fullmatch(name) for name in (entries.files if entries else ()))
        return [Version(int(m[1]), join(directory, m[0])) for m in matches if m]

    def _dropped(self, directory: str) -> dict[str, int]:
        """Which tables were dropped here, each with the last number that is gone with it."""
        marks: list[Version] = []
        while marks != (found := sorted(self._marks(directory))):  # a listing may miss what came while it was made
            marks = found
        return {uuid_in(self._io.read(mark.location), ""): mark.number for mark in marks}

    def _mark(self, directory: str, gravestone: Version, words: bytes) -> bool:
        """Leave the words of a gravestone where they stay; False if those of another with this number are there."""
        mark = join(directory, f"dropped-v{gravestone.number}.text")
        self._create_if_missing(mark, words)
        self._create_if_missing(join(directory, _DROPPED), b"")
        return self._io.read(mark) == words

    def _mark_gravestone(self, directory: str) -> None:
        """Do what a drop that died had left to do, before a higher number is used."""
        found = self._newest(directory)
        words = self._read(found) if found else None
        if found and words and words.startswith(_GRAVESTONE.encode()):
            self._mark(directory, found, words)

    def _read(self, version: Version) -> bytes | None:
        try:
            return self._io.read(version.location)
        except NotFoundError:
            return None

    def _is_gravestone(self, version: Version) -> bool:
        with self._io.open_input(version.location) as stream:
            return stream.read(len(_GRAVESTONE)) == _GRAVESTONE.encode()

    def _create(self, location: str, data: bytes) -> bool:
        """Create a file; after an error the bytes that are there tell whether it was created."""
        try:
            self._io.create(location, data)
        except AlreadyExistsError:
            return False
        except StorageError as error:
            with _in_doubt():
                found = self.holds(location, data)
            if found is None and scheme_of(location) == "file":  # no request is still on its way on a disk
                raise UnavailableError(error.message, hints=error.hints) from error
            if found is None:
                raise
            return found
        return True

    def _create_if_missing(self, location: str, data: bytes) -> None:
        with contextlib.suppress(AlreadyExistsError):
            self._io.create(location, data)

    def _clear(self, directory: str, number: int) -> None:
        """Delete the versions up to a number, the oldest first, so that none of them ever seems to be the newest."""
        self._io.delete([join(directory, _HINT)])
        for version in sorted(v for v in self._versions(directory) if v.number <= number):
            self._io.delete([version.location])

    def _hint_at(self, directory: str, number: int) -> None:
        hint = join(directory, _HINT)
        with contextlib.suppress(BerglineError):  # it is only a hint
            self._io.delete([hint])
            self._io.create(hint, str(number).encode())


class _Identity(msgspec.Struct, rename="kebab"):
    table_uuid: str = ""


def uuid_in(data: bytes, location: str) -> str:
    """The UUID of the table whose metadata this is; no text if it has none."""
    try:
        return msgspec.json.decode(unpack(data, location), type=_Identity).table_uuid
    except (msgspec.MsgspecError, UnicodeDecodeError, FormatError):
        return ""


def _number_of(location: str) -> int:
    version = _VERSION.fullmatch(location.rpartition("/")[2])
    if version is None:
        raise InvalidInputError(f"expected a file like `v1.metadata.json`, found `{location}`")
    return int(version[1])


@contextlib.contextmanager
def _in_doubt() -> Iterator[None]:
    """After a file was created, or may have been, no error says that nothing was changed."""
    try:
        yield
    except BerglineError as error:
        raise StorageError(error.message, hints=error.hints) from error
