"""A cache of loaded tables, so that a server need not send unchanged metadata again."""

import threading
from collections import OrderedDict
from typing import NamedTuple

from bergline.catalog.catalog import LoadedTable
from bergline.catalog.identifiers import TableName

_MOST_BYTES = 32 * 1024 * 1024  # of JSON, which takes several times as much memory once parsed


class CachedLoad(NamedTuple):
    """A table, its ETag and the size of the response."""

    table: LoadedTable
    etag: str | None
    size: int


class LoadCache:
    """The latest load of each table, in bounded memory; thread-safe."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._loads: OrderedDict[TableName, CachedLoad] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def find(self, name: TableName) -> CachedLoad | None:
        """The latest load of a table."""
        with self._lock:
            if name in self._loads:
                self._loads.move_to_end(name)
            return self._loads.get(name)

    def remember(self, load: CachedLoad) -> None:
        """Cache a load, evicting those not used for longest."""
        with self._lock:
            self._drop(load.table.name)
            self._loads[load.table.name] = load
            self._bytes += load.size
            while self._bytes > self._most_bytes and len(self._loads) > 1:
                self._drop(next(iter(self._loads)))

    def forget(self, name: TableName) -> None:
        """Remove a table that was dropped or renamed."""
        with self._lock:
            self._drop(name)

    def _drop(self, name: TableName) -> None:
        if name in self._loads:
            self._bytes -= self._loads.pop(name).size
