"""Caches of decoded manifests and manifest lists, by storage and path, in bounded memory."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from itertools import count
from typing import Generic, TypeVar

import polars as pl

from bergline.format.manifest.manifest import ManifestEntry, ManifestFile
from bergline.io.fileio import FileIO

DEFAULT_LIMIT = 256 * 1024 * 1024
_LISTED_MANIFESTS = 100_000
_WRITTEN_METRICS = 20_000
_FEW_ENTRIES = 8

Content = TypeVar("Content")


class FreshReads:
    """Tracks the files that an operation has read itself: operations that delete files do not trust earlier reads."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def add(self, path: str) -> None:
        """Record that a file was just read from storage."""
        self._paths.add(path)


class FileCache(Generic[Content]):
    """An LRU cache of files up to a total size. In one storage, the content of a path never changes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._files: OrderedDict[tuple[int, str], tuple[Content, int]] = OrderedDict()
        self._storages: weakref.WeakKeyDictionary[FileIO, int] = weakref.WeakKeyDictionary()
        self._ids = count()
        self._lock = threading.Lock()
        self.size = 0

    def find(self, io: FileIO, path: str, fresh: FreshReads | None = None) -> Content | None:
        """The cached content of a file; entries that must be `fresh` and are not are dropped."""
        with self._lock:
            key = self._key(io, path)
            if key not in self._files:
                return None
            if fresh is not None and path not in fresh:
                self.size -= self._files.pop(key)[1]
                return None
            self._files.move_to_end(key)
            return self._files[key][0]

    def keep(self, io: FileIO, path: str, content: Content, size: int, fresh: FreshReads | None = None) -> None:
        """Cache a file, evicting those not used for longest."""
        if fresh is not None:
            fresh.add(path)
        with self._lock:
            key = self._key(io, path)
            if size > self._limit or key in self._files:
                return
            self._files[key] = (content, size)
            self.size += size
            while self.size > self._limit:
                _, (_, dropped) = self._files.popitem(last=False)
                self.size -= dropped

    def clear(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._files.clear()
            self.size = 0

    def _key(self, io: FileIO, path: str) -> tuple[int, str]:
        if io not in self._storages:
            self._storages[io] = next(self._ids)
        return self._storages[io], path


MANIFESTS: FileCache[pl.DataFrame] = FileCache(DEFAULT_LIMIT)
"""The manifests cached by this process, limited by bytes."""

MANIFEST_LISTS: FileCache[tuple[ManifestFile, ...]] = FileCache(_LISTED_MANIFESTS)
"""The manifest lists cached by this process, limited by the manifests in them."""

WRITTEN_ENTRIES: FileCache[tuple[ManifestEntry, ...]] = FileCache(_WRITTEN_METRICS)
"""The entries of small manifests that this process wrote and will soon merge; limited by the columns in them."""


def keep_written_entries(io: FileIO, path: str, entries: Sequence[ManifestEntry]) -> None:
    """Cache the entries of a manifest that was just written, if they are few."""
    if len(entries) <= _FEW_ENTRIES:
        size = sum(1 + len(entry.data_file.value_counts or ()) for entry in entries)
        WRITTEN_ENTRIES.keep(io, path, tuple(entries), size)


def forget_files() -> None:
    """Empty all caches, for callers that change files that should be immutable."""
    MANIFESTS.clear()
    MANIFEST_LISTS.clear()
    WRITTEN_ENTRIES.clear()
