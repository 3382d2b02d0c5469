"""Metadata files: immutable, with names that are never reused, and parsed once per process."""

import re
import threading
import uuid
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from bergline.catalog.metadata_digests import MetadataDigests
from bergline.errors import NotFoundError, RefusedError
from bergline.format.metadata.gzip import MAX_METADATA_BYTES, metadata_extension, pack, unpack
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.view.view_metadata import ViewMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import absolute_location, join
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.format.metadata import json as table_json
    from bergline.format.view import json as view_json
else:  # connecting reads no metadata
    table_json = LazyModule("bergline.format.metadata.json")
    view_json = LazyModule("bergline.format.view.json")

_VERSION = re.compile(r"(?:^|/)(\d{1,18})-[^/]*$")
_CACHED_BYTES = 32 * 1024 * 1024  # of JSON, which takes several times as much memory once parsed

Metadata = TypeVar("Metadata", bound=TableMetadata | ViewMetadata)


class MetadataFiles(Generic[Metadata]):
    """Reads and writes metadata files of tables or views, and caches the latest ones."""

    def __init__(
        self,
        io: FileIO,
        parse: Callable[[bytes, str, Metadata | None], Metadata],
        render: Callable[[Metadata], bytes],
        default_codec: str,
        most_bytes: int = MAX_METADATA_BYTES,
        *,
        digests: Callable[[], MetadataDigests | None] = lambda: None,
    ) -> None:
        self._io = io
        self._digests = digests
        self._most_bytes = most_bytes
        self._parse = parse
        self._render = render
        self._default_codec = default_codec
        self._cache: OrderedDict[str, tuple[Metadata, int]] = OrderedDict()
        self._cached_bytes = 0
        self._cached_in: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """The keys of each directory, the latest last."""
        self._lock = threading.Lock()

    def load(self, location: str) -> Metadata:
        """Load a metadata file; FormatError if it is too large, MetadataChangedError if it is known to be another."""
        return self._find(location) or self._parsed(location, self._checked(location), location)

    def load_for(self, owner: str, pointer: str) -> Metadata:
        """Load the metadata of a pointer; NotFoundError names the owner of a missing file."""
        try:
            return self.load(pointer)
        except NotFoundError as error:
            raise NotFoundError(
                f"{owner} points to {pointer}, which does not exist", kind="file", name=pointer
            ) from error

    def write(self, metadata: Metadata, previous_location: str | None) -> str:
        """Write the next metadata file and return its location."""
        location = next_location(metadata, previous_location, self._default_codec)
        text = self._rendered(metadata)
        data = pack(text, location)
        self._io.create(location, data)
        if (digests := self._digests()) is not None:
            digests.remember(location, data)
        self._remember(location, metadata, len(text))
        return location

    def is_written(self, location: str) -> bool:
        """Whether the file still exists."""
        return self._io.exists(location)

    def discard(self, location: str) -> None:
        """Delete a file that certainly never became current."""
        with self._lock:
            self._forget(location)
        self._io.delete([location])

    def _checked(self, location: str) -> bytes:
        """Read a file, which must be the one that a pointer was moved to."""
        data = self._read(location)
        if (digests := self._digests()) is not None:
            digests.check(location, data)
        return data

    def _read(self, location: str) -> bytes:
        """Read a file up to the size limit."""
        return self._io.read(location, self._most_bytes)

    def _rendered(self, metadata: Metadata) -> bytes:
        """Serialize metadata; RefusedError if it would be too large to read back."""
        text = self._render(metadata)
        if len(text) > self._most_bytes:
            most = self._most_bytes
            raise RefusedError(
                f"cannot write metadata of {len(text):,} bytes: at most {most:,} are read, at {metadata.location}",
                hints=["expire snapshots, remove properties, or allow larger metadata files"],
            )
        return text

    def _find(self, key: str) -> Metadata | None:
        with self._lock:
            if key not in self._cache:
                return None
            self._cache.move_to_end(key)
            return self._cache[key][0]

    def _parsed(self, location: str, data: bytes, key: str) -> Metadata:
        """Parse a file, and cache the result under a key."""
        text = unpack(data, location, self._most_bytes)
        metadata = self._parse(text, location, self._latest_in(_directory(location)))
        self._remember(key, metadata, len(text))
        return metadata

    def _remember(self, key: str, metadata: Metadata, size: int) -> None:
        with self._lock:
            self._forget(key)
            self._cache[key] = metadata, size
            self._cached_in[_directory(key)][key] = None
            self._cached_bytes += size
            while self._cached_bytes > _CACHED_BYTES and len(self._cache) > 1:
                self._forget(next(iter(self._cache)))

    def _forget(self, key: str) -> None:
        if key in self._cache:
            self._cached_bytes -= self._cache.pop(key)[1]
            directory = _directory(key)
            del self._cached_in[directory][key]
            if not self._cached_in[directory]:
                del self._cached_in[directory]

    def _latest_in(self, directory: str) -> Metadata | None:
        """What was cached last of a directory, which is likely to be an earlier state of what is loaded from it."""
        with self._lock:
            keys = self._cached_in.get(directory)
            return self._cache[next(reversed(keys))][0] if keys else None


def table_files(
    io: FileIO,
    most_bytes: int = MAX_METADATA_BYTES,
    digests: Callable[[], MetadataDigests | None] = lambda: None,
) -> MetadataFiles[TableMetadata]:
    """Metadata files of tables."""
    return MetadataFiles(io, _parse_table, _render_table, "none", most_bytes, digests=digests)


def view_files(
    io: FileIO,
    most_bytes: int = MAX_METADATA_BYTES,
    digests: Callable[[], MetadataDigests | None] = lambda: None,
) -> MetadataFiles[ViewMetadata]:
    """Metadata files of views, which are compressed unless a view says otherwise, as in Java."""
    return MetadataFiles(io, _parse_view, _render_view, "gzip", most_bytes, digests=digests)


def next_location(
    metadata: TableMetadata | ViewMetadata, previous_location: str | None, default_codec: str = "none"
) -> str:
    """A new file name: the version is for people, the UUID makes it unique."""
    match = _VERSION.search(previous_location or "")
    version = int(match[1]) + 1 if match else 0
    extension = metadata_extension(metadata.properties, default_codec)
    return join(metadata_directory(metadata), f"{version:05d}-{uuid.uuid4()}{extension}")


def metadata_directory(metadata: TableMetadata | ViewMetadata) -> str:
    """Where a table's metadata files, manifests and manifest lists go."""
    return absolute_location(metadata.properties.get("write.metadata.path") or join(metadata.location, "metadata"))


def _directory(location: str) -> str:
    return location.rpartition("/")[0]


def _parse_table(data: bytes, source: str, known: TableMetadata | None) -> TableMetadata:
    return table_json.parse_metadata(data, source, known)


def _render_table(metadata: TableMetadata) -> bytes:
    return table_json.render_metadata(metadata)


def _parse_view(data: bytes, source: str, _: ViewMetadata | None) -> ViewMetadata:
    return view_json.parse_view_metadata(data, source)


def _render_view(metadata: ViewMetadata) -> bytes:
    return view_json.render_view_metadata(metadata)
