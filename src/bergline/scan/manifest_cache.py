"""Decoded manifests, kept by storage and path as they stand in their files, in bounded memory."""

import threading
import weakref
from collections import OrderedDict
from itertools import count

import polars as pl

from bergline.io.fileio import FileIO

DEFAULT_LIMIT = 256 * 1024 * 1024


class ManifestCache:
    """The manifests used last, up to a number of bytes. A path means the same bytes for ever, in one storage."""

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self._limit = limit
        self._frames: OrderedDict[tuple[int, str], tuple[pl.DataFrame, int]] = OrderedDict()
        self._storages: weakref.WeakKeyDictionary[FileIO, int] = weakref.WeakKeyDictionary()
        self._ids = count()
        self._lock = threading.Lock()
        self.size = 0

    def find(self, io: FileIO, path: str) -> pl.DataFrame | None:
        """The manifest at a path, if it is here."""
        with self._lock:
            key = self._key(io, path)
            if key not in self._frames:
                return None
            self._frames.move_to_end(key)
            return self._frames[key][0]

    def keep(self, io: FileIO, path: str, frame: pl.DataFrame) -> None:
        """Remember a manifest, in place of those that nobody has asked for in a long time."""
        size = int(frame.estimated_size())
        with self._lock:
            key = self._key(io, path)
            if size > self._limit or key in self._frames:
                return
            self._frames[key] = (frame, size)
            self.size += size
            while self.size > self._limit:
                _, (_, dropped) = self._frames.popitem(last=False)
                self.size -= dropped

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._frames.clear()
            self.size = 0

    def _key(self, io: FileIO, path: str) -> tuple[int, str]:
        if io not in self._storages:
            self._storages[io] = next(self._ids)
        return self._storages[io], path


MANIFESTS = ManifestCache()
"""The cache of this process."""
