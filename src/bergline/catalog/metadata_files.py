"""Metadata files: immutable, never reused names, parsed once per process."""

import re
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

from bergline.format.metadata import TableMetadata
from bergline.format.metadata_gzip import metadata_extension, pack, unpack
from bergline.format.metadata_json import parse_metadata, render_metadata
from bergline.format.view import ViewMetadata
from bergline.format.view_json import parse_view_metadata, render_view_metadata
from bergline.io.fileio import FileIO
from bergline.io.locations import absolute_location, join

_VERSION = re.compile(r"(?:^|/)(\d{1,18})-[^/]*$")
_CACHED_FILES = 64

Metadata = TypeVar("Metadata", bound=TableMetadata | ViewMetadata)


class MetadataFiles(Generic[Metadata]):
    """Reads and writes metadata files of tables or of views, and remembers the latest ones."""

    def __init__(
        self,
        io: FileIO,
        parse: Callable[[bytes, str], Metadata],
        render: Callable[[Metadata], bytes],
        default_codec: str,
    ) -> None:
        self._io = io
        self._parse = parse
        self._render = render
        self._default_codec = default_codec
        self._cache: OrderedDict[str, Metadata] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, location: str) -> Metadata:
        """The metadata in a file."""
        with self._lock:
            cached = self._cache.get(location)
        return cached or self._remember(location, self._parse(unpack(self._io.read(location), location), location))

    def write(self, metadata: Metadata, previous_location: str | None) -> str:
        """Write the next metadata file and return its location."""
        location = next_location(metadata, previous_location, self._default_codec)
        self._io.create(location, pack(self._render(metadata), location))
        self._remember(location, metadata)
        return location

    def discard(self, location: str) -> None:
        """Delete a file that certainly never became current."""
        with self._lock:
            self._cache.pop(location, None)
        self._io.delete([location])

    def _remember(self, location: str, metadata: Metadata) -> Metadata:
        with self._lock:
            self._cache[location] = metadata
            if len(self._cache) > _CACHED_FILES:
                self._cache.popitem(last=False)
        return metadata


def table_files(io: FileIO) -> MetadataFiles[TableMetadata]:
    """Metadata files of tables."""
    return MetadataFiles(io, parse_metadata, render_metadata, "none")


def view_files(io: FileIO) -> MetadataFiles[ViewMetadata]:
    """Metadata files of views, which are compressed unless a view says otherwise, as in Java."""
    return MetadataFiles(io, parse_view_metadata, render_view_metadata, "gzip")


def next_location(
    metadata: TableMetadata | ViewMetadata, previous_location: str | None, default_codec: str = "none"
) -> str:
    """A new name: the version is for people, the random part makes it unique."""
    match = _VERSION.search(previous_location or "")
    version = int(match[1]) + 1 if match else 0
    extension = metadata_extension(metadata.properties, default_codec)
    return join(metadata_directory(metadata), f"{version:05d}-{uuid.uuid4()}{extension}")


def metadata_directory(metadata: TableMetadata | ViewMetadata) -> str:
    """Where a table's metadata files, manifests and manifest lists go."""
    return absolute_location(metadata.properties.get("write.metadata.path") or join(metadata.location, "metadata"))
