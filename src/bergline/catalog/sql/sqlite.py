"""Pointers in an SQLite database."""

import contextlib
import functools
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.pool import QueuePool

from bergline.catalog.sql.busy_timeout import DEFAULT_BUSY_TIMEOUT_S
from bergline.catalog.sql.database import SqlDatabase, transaction
from bergline.catalog.sql.migrations import FoundLayout
from bergline.catalog.sql.sql_store import SqlPointerStore
from bergline.catalog.sql.sqlite_file import open_file
from bergline.errors import BerglineError, RefusedError, StorageError, UnavailableError

FileIdentity = tuple[int, tuple[int, int] | None]
"""A process and the identity of a file on disk."""

_FROM_PARENT_ROWS: list[sqlite3.Connection] = []


class QuickRows:
    """Runs prepared queries without SQLAlchemy; every read sees what was committed before it."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], identity: Callable[[], FileIdentity]) -> None:
        self._connect = connect
        self._identity = identity
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._of: FileIdentity | None = None

    def first(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The first row; sqlite3.Error if it cannot be read."""
        text, fixed = _text(query)
        with self._lock:
            connection = self._open()
            try:
                rows = connection.execute(text, fixed | values).fetchall()  # fetch all, so that no cursor stays open
            except sqlite3.Error:
                self._let_go()
                raise
            return rows[0] if rows else None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._let_go()

    def _open(self) -> sqlite3.Connection:
        """The connection of this process to the current file; reopened if either changed."""
        now = self._identity()
        if self._connection is None or self._of != now:
            self._let_go()
            self._connection, self._of = self._connect(), now
        return self._connection

    def _let_go(self) -> None:
        if self._connection is not None:
            if self._of is not None and self._of[0] != self._identity()[0]:
                _FROM_PARENT_ROWS.append(self._connection)  # closing it here could release the parent's locks
            else:
                self._connection.close()
        self._connection = None


_NAMED = sqlite.dialect(paramstyle="named")
_NOW_MS = sa.cast((sa.func.julianday("now") - sa.literal_column("2440587.5")) * 86_400_000, sa.BigInteger)


@functools.lru_cache(maxsize=256)
def _text(query: sa.Select[Any]) -> tuple[str, dict[str, Any]]:
    """The query as SQLite reads it, and the values in it."""
    compiled = query.compile(dialect=_NAMED)
    return str(compiled), dict(compiled.params)


_LOOK_AGAIN_S = 0.02
_FROM_PARENT: list[Any] = []
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}
_NOT_COMMITTED = {*_BUSY, sqlite3.SQLITE_FULL}


class SqlitePointerStore(SqlPointerStore):
    """PointerStore in a SQLite file."""

    def __init__(
        self,
        path: str,
        *,
        catalog_name: str = "lake",
        busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S,
        create: bool = True,
        any_name: bool = False,
    ) -> None:
        super().__init__(SqliteDatabase(path, busy_timeout_s), catalog_name, create=create, any_name=any_name)


class SqliteDatabase(SqlDatabase):
    """A SQLite file: one writer at a time, never blocked by readers."""

    answers_at_once = True

    def __init__(self, path: str, busy_timeout_s: float) -> None:
        self._quick = QuickRows(self._connect, self._identity)
        self._at_once = QuickRows(lambda: self._connect(busy_timeout_s=0), self._identity)
        self._path = os.path.abspath(path)
        self._busy_timeout_s = busy_timeout_s
        self._mode = "rw"  # a database that is deleted while open must not be re-created empty
        self._turn = threading.Lock()
        engine = sa.create_engine("sqlite://", poolclass=QueuePool, max_overflow=-1, creator=self._connect)
        super().__init__(engine, path)
        sa.event.listen(self.engine, "connect", self._opened)
        sa.event.listen(self.engine, "checkout", self._lent)
        sa.event.listen(self.engine, "begin", _begin)
        self._writer = self.engine.execution_options(bergline_write=True)

    def open_layout(self, *, create: bool) -> FoundLayout:
        """Create the file if there is none, for its owner alone: it has rules, audit log and hashes of tokens."""
        if create and not os.path.exists(self._path):
            self._create_file()
        return super().open_layout(create=create)

    @contextlib.contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        try:
            with self.engine.connect() as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            raise _certain(self.name, error) or StorageError(
                f"catalog database {self.name} failed: {error.orig}"
            ) from error

    @contextlib.contextmanager
    def reading_snapshot(self) -> Iterator[sa.Connection]:
        """A read transaction: in WAL mode it neither waits for writers nor stops them."""
        with self.reading() as connection:
            connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")  # the snapshot begins with the first read
            yield connection

    @contextlib.contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction that takes the write lock first, so that "locked" always means that nothing was changed."""
        with self._nothing_changed():
            connection = self._writer.connect()
        with connection, self._in_turn(), transaction(connection, self._nothing_changed(), self._while_committing):
            yield connection

    def first_row(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """Read the row without SQLAlchemy, ten times as fast; on any error fall back to it."""
        try:
            return self._quick.first(query, values)
        except sqlite3.Error:
            return super().first_row(query, values)

    def row_at_once(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The row, unless a writer blocks readers, which can take long in modes other than WAL."""
        try:
            return self._at_once.first(query, values)
        except sqlite3.Error:
            return None

    def close(self) -> None:
        self._quick.close()
        self._at_once.close()
        super().close()

    def insert(self, table: sa.Table) -> Any:
        return sqlite.insert(table)

    def lock_layout(self, connection: sa.Connection) -> None:
        """No-op: every writer has the lock already."""

    def lock_directories(self, connection: sa.Connection) -> None:
        """No-op, likewise."""

    def now_ms(self) -> sa.ColumnElement[int]:
        """The clock of this machine; older versions of SQLite have it in days only."""
        return _NOW_MS

    def continue_keys(self, connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
        """No-op: SQLite gives keys after the highest one."""

    def file_open_to_others(self) -> str | None:
        """The file, if its mode lets users other than its owner read or change it."""
        try:
            return self._path if os.name == "posix" and os.stat(self._path).st_mode & 0o066 else None
        except OSError:
            return None

    def _create_file(self) -> None:
        try:
            os.makedirs(os.path.dirname(self._path), exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot open catalog database {self.name}: {error.strerror or error}") from error
        with contextlib.suppress(OSError):  # SQLite says the same, and gives its side files the mode of this one
            os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600))
        self._mode = "rwc"
        deadline = time.monotonic() + self._busy_timeout_s
        try:
            while not self._choose_wal(last=time.monotonic() > deadline):
                time.sleep(_LOOK_AGAIN_S)
        finally:
            self._mode = "rw"

    def _choose_wal(self, *, last: bool) -> bool:
        """Switch to WAL mode, in which readers never wait; SQLite itself does not wait for the switch."""
        autocommit = self.engine.execution_options(bergline_autocommit=True)
        try:
            with autocommit.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
        except sa.exc.DBAPIError as error:
            if last or _code(error) not in _BUSY:
                raise _refused(self.name, error) from error
            return False
        return True

    def _connect(self, busy_timeout_s: float | None = None) -> sqlite3.Connection:
        wait_s = self._busy_timeout_s if busy_timeout_s is None else busy_timeout_s
        return open_file(self._path, mode=self._mode, busy_timeout_s=wait_s)

    def _opened(self, _connection: Any, record: Any) -> None:
        record.info["of"] = self._identity()

    def _lent(self, connection: Any, record: Any, _proxy: Any) -> None:
        """Reject a connection of another process or to a replaced file: a commit to a removed file would be lost."""
        process, file = record.info["of"]
        if process != os.getpid():
            _FROM_PARENT.append(connection)  # closing it here could release the parent's locks
            record.dbapi_connection = None
        if (process, file) != self._identity():
            raise sa.exc.DisconnectionError

    def _identity(self) -> FileIdentity:
        try:
            status = os.stat(self._path)
        except OSError:
            return os.getpid(), None
        return os.getpid(), (status.st_dev, status.st_ino)

    def _while_committing(self, error: sa.exc.DBAPIError) -> BerglineError:
        """Convert errors of the commit: certain only if SQLite was locked or out of space, which it detects before."""
        certain = _certain(self.name, error) if _code(error) in _NOT_COMMITTED else None
        return certain or StorageError(f"catalog database {self.name} failed while committing: {error.orig}")

    @contextlib.contextmanager
    def _in_turn(self) -> Iterator[None]:
        """One thread at a time: SQLite's waiting writers sleep longer and longer even while the lock is free."""
        if not self._turn.acquire(timeout=self._busy_timeout_s):
            raise _locked(self.name)
        try:
            yield
        finally:
            self._turn.release()

    @contextlib.contextmanager
    def _nothing_changed(self) -> Iterator[None]:
        """Convert errors before the commit: the transaction is rolled back."""
        try:
            yield
        except sa.exc.IntegrityError:
            raise
        except sa.exc.DBAPIError as error:
            raise _refused(self.name, error) from error


def _begin(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("bergline_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif not options.get("bergline_autocommit"):
        connection.exec_driver_sql("BEGIN")


def _refused(name: str, error: sa.exc.DBAPIError) -> BerglineError:
    """The error for a change that was certainly not made."""
    return _certain(name, error) or UnavailableError(
        f"catalog database {name} refused a change: {error.orig}", hints=["nothing was changed"]
    )


def _certain(name: str, error: sa.exc.DBAPIError) -> BerglineError | None:
    """The error if SQLite has certainly changed nothing; None otherwise."""
    code = _code(error)
    if code in _BUSY:
        return _locked(name)
    if code == sqlite3.SQLITE_FULL:
        return UnavailableError(
            f"catalog database {name} cannot grow: the disk is full", hints=["nothing was changed; make room first"]
        )
    if code == sqlite3.SQLITE_READONLY:
        return RefusedError(f"cannot change catalog database {name}: it is read-only")
    if code == sqlite3.SQLITE_CANTOPEN:
        return UnavailableError(
            f"cannot open catalog database {name}: {error.orig}",
            hints=["is it still there, and may this user write in its directory? SQLite needs that even for reading"],
        )
    return None


def _locked(name: str) -> UnavailableError:
    return UnavailableError(
        f"catalog database {name} is locked by another writer",
        hints=["nothing was changed; try again, or connect with a longer busy_timeout"],
    )


def _code(error: sa.exc.DBAPIError) -> int:
    return int(getattr(error.orig, "sqlite_errorcode", 0)) & 0xFF
