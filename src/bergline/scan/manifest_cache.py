"""Decoded manifests, kept by storage and path as they stand in their files, in bounded memory."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
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

    def get(self, io: FileIO, path: str, load: Callable[[], pl.DataFrame]) -> pl.DataFrame:
        """The manifest at a path, loaded if it is not here; two threads may load the same one at once."""
        with self._lock:
            key = self._storages.setdefault(io, next(self._ids)), path
            if key in self._frames:
                self._frames.move_to_end(key)
                return self._frames[key][0]
        frame = load()
        size = int(frame.estimated_size())
        if size <= self._limit:
            self._keep(key, frame, size)
        return frame

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._frames.clear()
            self.size = 0

    def _keep(self, key: tuple[int, str], frame: pl.DataFrame, size: int) -> None:
        with self._lock:
            if key in self._frames:
                return
            self._frames[key] = (frame, size)
            self.size += size
            while self.size > self._limit:
                _, (_, dropped) = self._frames.popitem(last=False)
                self.size -= dropped


MANIFESTS = ManifestCache()
"""The cache of this process."""
