"""Decoded manifests and manifest lists, kept by storage and path as they stand in their files, in bounded memory."""

import threading
import weakref
from collections import OrderedDict
from itertools import count
from typing import Generic, TypeVar

import polars as pl

from bergline.format.manifest.manifest import ManifestFile
from bergline.io.fileio import FileIO

DEFAULT_LIMIT = 256 * 1024 * 1024
_LISTED_MANIFESTS = 100_000

Content = TypeVar("Content")


class FreshReads:
    """The files that one operation has read itself: for those that delete, nothing read before it counts."""

    def __init__(self) -> None:
        self._paths: set[str] = set()

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def add(self, path: str) -> None:
        """A file was read from storage just now."""
        self._paths.add(path)


class FileCache(Generic[Content]):
    """The files used last, up to a total size. A path means the same bytes for ever, in one storage."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._files: OrderedDict[tuple[int, str], tuple[Content, int]] = OrderedDict()
        self._storages: weakref.WeakKeyDictionary[FileIO, int] = weakref.WeakKeyDictionary()
        self._ids = count()
        self._lock = threading.Lock()
        self.size = 0

    def find(self, io: FileIO, path: str, fresh: FreshReads | None = None) -> Content | None:
        """What is in the file at a path, if it is here; what must be `fresh` and is not is forgotten."""
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
        """Remember a file, in place of those that nobody has asked for in a long time."""
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
        """Forget everything."""
        with self._lock:
            self._files.clear()
            self.size = 0

    def _key(self, io: FileIO, path: str) -> tuple[int, str]:
        if io not in self._storages:
            self._storages[io] = next(self._ids)
        return self._storages[io], path


MANIFESTS: FileCache[pl.DataFrame] = FileCache(DEFAULT_LIMIT)
"""The manifests of this process, by bytes."""

MANIFEST_LISTS: FileCache[tuple[ManifestFile, ...]] = FileCache(_LISTED_MANIFESTS)
"""The manifest lists of this process, by the manifests in them."""


def forget_files() -> None:
    """Read every file again; for those who change what must not change."""
    MANIFESTS.clear()
    MANIFEST_LISTS.clear()
