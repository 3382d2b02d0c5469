"""Metadata files: immutable, never reused names, parsed once per process."""

import re
import threading
import uuid
from collections import OrderedDict

from bergline.format.metadata import TableMetadata
from bergline.format.metadata_gzip import metadata_extension, pack, unpack
from bergline.format.metadata_json import parse_metadata, render_metadata
from bergline.io.fileio import FileIO
from bergline.io.locations import absolute_location, join

_VERSION = re.compile(r"(?:^|/)(\d{1,18})-[^/]*$")
_CACHED_FILES = 64


class MetadataFiles:
    """Reads and writes metadata files, and remembers the latest ones."""

    def __init__(self, io: FileIO) -> None:
        self._io = io
        self._cache: OrderedDict[str, TableMetadata] = OrderedDict()
        self._lock = threading.Lock()

    def load(self, location: str) -> TableMetadata:
        """The metadata in a file."""
        with self._lock:
            cached = self._cache.get(location)
        return cached or self._remember(location, parse_metadata(unpack(self._io.read(location), location), location))

    def write(self, metadata: TableMetadata, previous_location: str | None) -> str:
        """Write the next metadata file and return its location."""
        location = next_location(metadata, previous_location)
        self._io.create(location, pack(render_metadata(metadata), location))
        self._remember(location, metadata)
        return location

    def discard(self, location: str) -> None:
        """Delete a file that certainly never became current."""
        with self._lock:
            self._cache.pop(location, None)
        self._io.delete([location])

    def _remember(self, location: str, metadata: TableMetadata) -> TableMetadata:
        with self._lock:
            self._cache[location] = metadata
            if len(self._cache) > _CACHED_FILES:
                self._cache.popitem(last=False)
        return metadata


def next_location(metadata: TableMetadata, previous_location: str | None) -> str:
    """A new name: the version is for people, the random part makes it unique."""
    match = _VERSION.search(previous_location or "")
    version = int(match[1]) + 1 if match else 0
    return join(metadata_directory(metadata), f"{version:05d}-{uuid.uuid4()}{metadata_extension(metadata.properties)}")


def metadata_directory(metadata: TableMetadata) -> str:
    """Where a table's metadata files, manifests and manifest lists go."""
    return absolute_location(metadata.properties.get("write.metadata.path") or join(metadata.location, "metadata"))
