"""Where a lake lives, as several processes see it: each opens a store of its own on the same pointers and files."""

import tempfile
import uuid
from pathlib import Path
from typing import Protocol

from bergline.catalog.pointer.memory import MemoryPointerStore
from bergline.catalog.pointer.pointer_store import PointerStore
from bergline.catalog.sql.postgres import PostgresPointerStore
from bergline.catalog.sql.sqlite import SqlitePointerStore
from bergline.io.fileio import FileIO
from bergline.io.memory import MemoryFileIO
from bergline.io.schemes import SchemeFileIO


class Place(Protocol):
    """A place for a lake that is gone when it is closed."""

    warehouse: str

    def store(self) -> PointerStore:
        """A process's own store on the shared pointers."""
        ...

    def io(self) -> FileIO:
        """The shared files."""
        ...

    def close(self) -> None:
        """Remove everything."""
        ...


class MemoryPlace:
    """Pointers and files in this process."""

    warehouse = "memory://warehouse"

    def __init__(self) -> None:
        self._store = MemoryPointerStore()
        self._io = SchemeFileIO({"memory": MemoryFileIO()})

    def store(self) -> PointerStore:
        return self._store

    def io(self) -> FileIO:
        return self._io

    def close(self) -> None:
        pass


class SqlitePlace:
    """An SQLite database and files on disk."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory()
        self._stores: list[SqlitePointerStore] = []
        self.directory = Path(self._directory.name)
        self.warehouse = f"file://{self._directory.name}/warehouse"

    def store(self) -> PointerStore:
        self._stores.append(SqlitePointerStore(f"{self._directory.name}/catalog.db"))
        return self._stores[-1]

    def io(self) -> FileIO:
        return SchemeFileIO()

    def close(self) -> None:
        for store in self._stores:
            store.close()
        self._directory.cleanup()


class PostgresPlace:
    """A catalog of its own in a PostgreSQL database, and files in memory."""

    warehouse = "memory://warehouse"

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._name = uuid.uuid4().hex
        self._io = SchemeFileIO({"memory": MemoryFileIO()})
        self._stores: list[PostgresPointerStore] = []

    def store(self) -> PointerStore:
        self._stores.append(PostgresPointerStore(self._uri, catalog_name=self._name))
        return self._stores[-1]

    def io(self) -> FileIO:
        return self._io

    def close(self) -> None:
        for store in self._stores:
            store.close()
