"""Metadata files: immutable, never reused names, parsed once per process."""

import gzip
import re
import threading
import uuid
import zlib
from collections import OrderedDict

from bergline.errors import FormatError
from bergline.format.metadata import TableMetadata
from bergline.format.metadata_json import parse_metadata, render_metadata
from bergline.io.fileio import FileIO
from bergline.io.locations import join

_VERSION = re.compile(r"(\d+)-[^/]*$")
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
        return cached or self._remember(location, parse_metadata(self._read(location), location))

    def write(self, metadata: TableMetadata, previous_location: str | None) -> str:
        """Write the next metadata file and return its location."""
        location = next_location(metadata, previous_location)
        self._io.create(location, render_metadata(metadata))
        self._remember(location, metadata)
        return location

    def discard(self, location: str) -> None:
        """Delete a file that certainly never became current."""
        with self._lock:
            self._cache.pop(location, None)
        self._io.delete([location])

    def _read(self, location: str) -> bytes:
        data = self._io.read(location)
        if not location.endswith((".gz.metadata.json", ".metadata.json.gz")):
            return data
        try:
            return gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise FormatError(f"expected gzip data, found {error} in {location}") from error

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
    return join(metadata_directory(metadata), f"{version:05d}-{uuid.uuid4()}.metadata.json")


def metadata_directory(metadata: TableMetadata) -> str:
    """Where a table's metadata files, manifests and manifest lists go."""
    return metadata.properties.get("write.metadata.path") or join(metadata.location, "metadata")
