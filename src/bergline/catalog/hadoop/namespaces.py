"""Namespaces as directories, with their properties in a hidden file that Java ignores.

The file has a number in its name and is superseded by the next number, so that no change is lost. A file without
properties marks a namespace that was dropped while files of dropped tables were still in it.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from bergline.catalog.hadoop.version_files import VersionFiles, create_file
from bergline.catalog.identifiers import Namespace
from bergline.catalog.object_store.format import NamespaceObject, new_stamp, parse_namespace, render
from bergline.errors import InvalidInputError, NotFoundError, RefusedError, StorageError
from bergline.io.directories import Directories
from bergline.io.fileio import FileIO
from bergline.io.locations import join

METADATA = "metadata"
_PROPERTIES = re.compile(r"\.namespace-(\d{1,9})\.json")
_LONGEST_NAME = 255
_NOT_IN_NAMES = frozenset("/") | frozenset(map(chr, (*range(32), 127)))


class _Found(NamedTuple):
    """A namespace's directory: the number of its newest properties file, its properties, and other contents."""

    number: int
    properties: dict[str, str] | None
    directories: list[str]
    files: list[str]


class DirectoryNamespaces:
    """The namespaces below a warehouse."""

    def __init__(self, io: FileIO, directories: Directories, warehouse: str, versions: VersionFiles) -> None:
        self._io = io
        self._directories = directories
        self._warehouse = warehouse
        self._versions = versions

    def directory(self, *levels: str) -> str:
        """The directory of a namespace or table; names are not escaped, as in Java."""
        for level in levels:
            _check_level(level)
        return join(self._warehouse, *levels)

    def exists(self, namespace: Namespace) -> bool:
        """Whether it or anything in it exists."""
        return self.properties(namespace) is not None

    def properties(self, namespace: Namespace) -> dict[str, str] | None:
        """Its properties; None if there is no such namespace."""
        found = self._find(namespace)
        if found is None or (found.properties is None and not self._holds_anything(namespace, found)):
            return None
        return found.properties or {}

    def create(self, namespace: Namespace, properties: Mapping[str, str]) -> bool:
        """True if and only if it did not exist and now does."""
        directory = self.directory(*namespace)
        self._check_no_table(namespace)
        while not self.exists(namespace):
            self._check_no_table(namespace)
            found = self._find(namespace)
            stands_alone = self._directories.make(directory)
            if found is None and stands_alone and not properties:
                return True
            if self._write(namespace, found.number if found else 0, dict(properties)):
                return True
        return False

    def update(self, namespace: Namespace, changes: Mapping[str, str], removals: Collection[str]) -> bool:
        """True if and only if it exists and has these changes now."""
        while (before := self.properties(namespace)) is not None:
            found = self._find(namespace)
            after = {k: v for k, v in before.items() if k not in removals} | dict(changes)
            if found and (found.properties or {}) == before and self._write(namespace, found.number, after):
                return True
        return False

    def drop(self, namespace: Namespace) -> bool:
        """True if and only if it existed and held nothing; its directory stays if other files are in it."""
        found = self._find(namespace)
        if found is None or found.properties is None or self._holds_anything(namespace, found):
            return False
        own = [name for name in found.files if _PROPERTIES.fullmatch(name)]
        if found.directories or len(own) < len(found.files):
            return self._write(namespace, found.number, None)
        directory = self.directory(*namespace)
        self._io.delete([join(directory, name) for name in own])
        return self._directories.remove(directory)

    def list_below(self, namespace: Namespace) -> list[Namespace]:
        """All namespaces below one, at every level, sorted."""
        found = self._find(namespace)
        if found is None:
            return []
        below = []
        for name in found.directories:
            child = (*namespace, name)
            if not self._versions.is_taken(join(self.directory(*child), METADATA)):
                deeper = self.list_below(child)
                below += [child, *deeper] if deeper or self.exists(child) else []
        return sorted(below)

    def list_tables(self, namespace: Namespace) -> list[str]:
        """The names of the tables directly in a namespace, sorted."""
        found = self._find(namespace)
        return [name for name in (found.directories if found else ()) if self._is_table(namespace, name)]

    def _check_no_table(self, namespace: Namespace) -> None:
        """Refuse the directory of a table, even a dropped one, and everything below it."""
        for depth in range(1, len(namespace) + 1):
            directory = self.directory(*namespace[:depth])
            if self._versions.is_taken(join(directory, METADATA)):
                name = ".".join(namespace)
                raise RefusedError(
                    f"cannot create namespace `{name}`: a table, or what is left of one, is at {directory}"
                )

    def _is_table(self, namespace: Namespace, name: str) -> bool:
        return self._versions.newest(join(self.directory(*namespace, name), METADATA)) is not None

    def _holds_anything(self, namespace: Namespace, found: _Found) -> bool:
        return any(self._is_table(namespace, name) for name in found.directories) or bool(self.list_below(namespace))

    def _find(self, namespace: Namespace) -> _Found | None:
        """The namespace's directory, unless it is a table's."""
        directory = self.directory(*namespace)
        entries = self._directories.entries(directory)
        if entries is None or (namespace and self._versions.is_taken(join(directory, METADATA))):
            return None
        directories = [name for name in entries.directories if not name.startswith(".")]
        number = max((int(m[1]) for name in entries.files if (m := _PROPERTIES.fullmatch(name))), default=0)
        if number == 0:
            return _Found(0, {}, directories, entries.files)
        location = join(directory, f".namespace-{number}.json")
        try:
            properties = parse_namespace(self._io.read(location), location).properties
        except NotFoundError:  # dropped since it was listed
            return self._find(namespace)
        return _Found(number, properties, directories, entries.files)

    def _write(self, namespace: Namespace, number: int, properties: dict[str, str] | None) -> bool:
        """Write the file with the next number; False if another writer was faster.

        Older files stay: a slow writer could take a deleted number for a free one.
        """
        directory = self.directory(*namespace)
        value = NamespaceObject(stamp=new_stamp(), name=list(namespace), properties=properties)
        location, data = join(directory, f".namespace-{number + 1}.json"), render(value)
        try:
            return create_file(self._io, location, data)
        except StorageError:  # repeating the same write is harmless, and the directory exists already
            return create_file(self._io, location, data)


def _check_level(name: str) -> None:
    try:
        encoded = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidInputError(f"expected a name that can be encoded, found {name!a}") from None
    if not name or name.startswith(".") or _NOT_IN_NAMES & set(name) or encoded > _LONGEST_NAME:
        raise InvalidInputError(
            f"expected a name that a directory can have, of up to {_LONGEST_NAME} bytes, found {name[:100]!a}"
        )
