"""Pointers in an SQLite database."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import QueuePool

from bergline.catalog.sql_database import SqlDatabase
from bergline.catalog.sql_layout import NAMESPACES, TABLES, create_layout, has_type_column
from bergline.catalog.sql_store import SqlPointerStore
from bergline.errors import StorageError, UnavailableError

DEFAULT_BUSY_TIMEOUT_S = 30.0
_FROM_PARENT: list[Any] = []
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqlitePointerStore(SqlPointerStore):
    """PointerStore in one database file."""

    def __init__(
        self, path: str, *, catalog_name: str = "lake", busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S
    ) -> None:
        database = SqliteDatabase(path, busy_timeout_s)
        super().__init__(database, catalog_name, typed=database.open_layout())


class SqliteDatabase(SqlDatabase):
    """One file; one writer at a time, and readers are never in its way."""

    def __init__(self, path: str, busy_timeout_s: float) -> None:
        self._path = path
        url = sa.URL.create("sqlite", database=path)
        arguments = {"timeout": busy_timeout_s, "check_same_thread": False}  # the pool lends to one thread at a time
        super().__init__(sa.create_engine(url, poolclass=QueuePool, max_overflow=-1, connect_args=arguments))
        sa.event.listen(self.engine, "connect", self._opened)
        sa.event.listen(self.engine, "checkout", self._lent)
        sa.event.listen(self.engine, "begin", _begin)

    def open_layout(self) -> bool:
        """Create what is missing; whether rows have a type."""
        with _storage_errors(self._path):
            os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
            with self.engine.connect() as connection:
                inspector = sa.inspect(connection)
                missing = not (inspector.has_table(TABLES.name) and inspector.has_table(NAMESPACES.name))
            if missing:
                with self.engine.execution_options(bergline_autocommit=True).connect() as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                with self.writing() as connection:
                    create_layout(connection)
            with self.engine.connect() as connection:
                return has_type_column(connection)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """A connection to read with."""
        with _storage_errors(self._path), self.engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that takes the write lock first, so that "locked" always means "nothing was changed"."""
        engine = self.engine.execution_options(bergline_write=True)
        with _storage_errors(self._path), engine.begin() as connection:
            yield connection

    def insert(self, table: sa.Table) -> Any:
        """SQLite's own INSERT."""
        return sqlite.insert(table)

    def _opened(self, connection: Any, record: Any) -> None:
        connection.isolation_level = None  # transactions are ours
        record.info["of"] = self._identity()

    def _lent(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Only in the process and for the file that it was opened in: a commit to a removed file would be lost."""
        process, file = record.info["of"]
        if process != os.getpid():
            _FROM_PARENT.append(connection)  # closing it here could take the parent's locks away
            record.dbapi_connection = None
        if (process, file) != self._identity():
            raise sa.exc.DisconnectionError

    def _identity(self) -> tuple[int, tuple[int, int] | None]:
        try:
            status = os.stat(self._path)
        except OSError:
            return os.getpid(), None
        return os.getpid(), (status.st_dev, status.st_ino)


def _begin(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("bergline_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif not options.get("bergline_autocommit"):
        connection.exec_driver_sql("BEGIN")


@contextlib.contextmanager
def _storage_errors(path: str) -> Iterator[None]:
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except sa.exc.DBAPIError as error:
        code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
        if code in _BUSY:
            raise UnavailableError(
                f"catalog database {path} is locked by another writer",
                hints=["nothing was changed; try again, or connect with a longer busy_timeout"],
            ) from error
        raise StorageError(f"catalog database {path} failed: {error.orig}") from error
    except OSError as error:
        raise StorageError(f"cannot open catalog database {path}: {error.strerror or error}") from error
