"""Tables that a session has cached by their names: to read one by its name is to read the frame that Spark keeps.

Spark's cache knows a frame by its plan. So the frame that was cached is what the name means, until it is uncached, and
Spark fills it again after this process has changed the table. What other writers commit is seen after REFRESH TABLE.
"""

import threading
from collections.abc import Hashable
from typing import NamedTuple

from pyspark import StorageLevel
from pyspark.sql import DataFrame

from bergline.spark.reads.following import FollowedName
from bergline.spark.runtime.backend import SparkBackend
from bergline.table.scans.scan import TableScan


class CachedTable(NamedTuple):
    """A frame that is cached, and the read that it is of."""

    rows: DataFrame
    scan: TableScan

    @property
    def level(self) -> StorageLevel:
        """Where Spark keeps the rows: nowhere, once they were dropped by other ways."""
        return self.rows.storageLevel

    def is_of(self, scan: TableScan) -> bool:
        """Whether it has the columns of a read, and no others."""
        mine = [(field.name, field.type) for field in self.scan.schema.fields]
        return self.scan.table_identity == scan.table_identity and mine == [
            (f.name, f.type) for f in scan.schema.fields
        ]


class CachedTables:
    """The cached tables of all sessions, by session and name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._tables: dict[Hashable, CachedTable] = {}

    def find(self, scan: TableScan, backend: SparkBackend) -> CachedTable | None:
        """What is cached of a read by name; None if it is to be read from its files."""
        key = _key(scan, backend)
        found = None if key is None else self._tables.get(key)
        if found is None or not found.level.useMemory | found.level.useDisk:
            return None
        if found.scan.table_identity != scan.table_identity:  # the table was dropped, and another has its name
            self.drop(scan, backend)
            found.rows.unpersist()
            return None
        return found if found.is_of(scan) else None

    def keep(self, rows: DataFrame, scan: TableScan, backend: SparkBackend) -> None:
        """Take a frame, which is cached, for what a name means."""
        with self._lock:
            self._tables[_key(scan, backend)] = CachedTable(rows, scan)

    def drop(self, scan: TableScan, backend: SparkBackend) -> CachedTable | None:
        """Forget what a name meant, and give it back."""
        with self._lock:
            return self._tables.pop(_key(scan, backend), None)

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._tables.clear()


CACHED = CachedTables()


def _key(scan: TableScan, backend: SparkBackend) -> Hashable:
    """What a read by name is known by; None for other reads."""
    if not isinstance(scan.followed, FollowedName):
        return None
    return backend.session_id, scan.followed, scan.version.branch
