"""The database of a SQL catalog: connections, transactions and its layout, for any engine."""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import missing_catalog
from bergline.catalog.sql.layout import NAMESPACES, TABLES
from bergline.catalog.sql.layout_version import (
    AUDIT_VERSION,
    CONTENTION_VERSION,
    LAKE_BRANCHES_VERSION,
    SECURITY_VERSION,
)
from bergline.catalog.sql.migrations import FoundLayout, check_known, find_layout, migrate
from bergline.errors import RefusedError

Connection = sa.Connection
"""A transaction, for those who only hand it on: all SQL is in this package, and in the stores of governance."""
DatabaseError = sa.exc.SQLAlchemyError
CommitHook = Callable[[Connection, tuple[tuple[TableName, str | None], ...]], None]


@contextlib.contextmanager
def transaction(
    connection: sa.Connection,
    nothing_changed: AbstractContextManager[None],
    while_committing: Callable[[sa.exc.DBAPIError], Exception],
) -> Iterator[None]:
    """A transaction; errors up to its commit are converted by `nothing_changed`, later ones by `while_committing`."""
    with nothing_changed:
        begun = connection.begin()
        try:
            yield
        except BaseException:
            try:
                begun.rollback()
            except sa.exc.DBAPIError as error:
                connection.invalidate(error)
            raise
    try:
        begun.commit()
    except sa.exc.DBAPIError as error:
        connection.invalidate(error)  # ends an open transaction and its locks
        raise while_committing(error) from error


class SqlDatabase(ABC):
    """Base class; engines differ in `reading` and `writing` and in the meaning of their errors."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self._migrating = threading.Lock()
        self._is_current = False
        self.has_turns = False
        """Whether the tables by which writers take turns are known to be there."""
        self.has_digests = False
        """Whether the table of digests of metadata files is known to be there."""
        self._has_lake_branches = False
        self._hooks = threading.local()

    answers_at_once = False
    """Whether `row_at_once` finds rows, so that a server can look them up in the event loop."""
    collation = ""
    """How statements say that text is compared by bytes; empty if it always is."""
    find_function = "instr"
    """The function for the position of a text in another."""

    @property
    def sorts_by_bytes(self) -> bool:
        """Whether namespaces are in an index in the order of their bytes, which can be searched by prefix."""
        return True

    def by_bytes(self, column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """A column of text, compared by its bytes."""
        return column

    def in_order(self, connection: sa.Connection, names: Sequence[str]) -> list[str]:
        """Names in the order of the primary keys of the shared tables."""
        del connection
        return sorted(names)

    @abstractmethod
    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A connection to read with."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction, committed at the end.

        UnavailableError or RefusedError if and only if certainly nothing was changed.
        """

    @abstractmethod
    def insert(self, table: sa.Table) -> Any:
        """An INSERT with support for ON CONFLICT."""

    @abstractmethod
    def lock_layout(self, connection: sa.Connection) -> None:
        """Lock out other processes from migrating until the end of the transaction."""

    @abstractmethod
    def lock_directories(self, connection: sa.Connection) -> None:
        """Lock out other processes from reserving directories until the end of the transaction."""

    @abstractmethod
    def reading_snapshot(self) -> AbstractContextManager[sa.Connection]:
        """A connection whose reads all see the same state of the database, whatever is committed meanwhile."""

    @abstractmethod
    def now_ms(self) -> sa.ColumnElement[int]:
        """The database's own clock."""

    @contextlib.contextmanager
    def loading(self, tables: Sequence[sa.Table]) -> Iterator[sa.Connection]:
        """A transaction that writes many rows to tables to which nobody else writes meanwhile."""
        del tables
        with self.changing() as connection:
            yield connection

    def file_open_to_others(self) -> str | None:
        """The database's file, if other users of this machine may read or change it."""
        return None

    @abstractmethod
    def continue_keys(self, connection: sa.Connection, tables: Sequence[sa.Table]) -> None:
        """Let the keys that the database gives come after those that rows were written with."""

    def first_row(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The row of a prepared query; None if there is none."""
        with self.reading() as connection:
            row = connection.execute(query, values).one_or_none()
        return None if row is None else tuple(row)

    def row_at_once(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The row of `first_row` if it is found without waiting for locks; None otherwise."""
        del query, values
        return None

    def check_ready(self) -> None:
        """UnavailableError, or another error, unless the database responds and has the layout."""
        with self.reading() as connection:
            for table in (TABLES, NAMESPACES):
                connection.execute(sa.select(table.c.catalog_name).limit(1)).all()

    def open_layout(self, *, create: bool) -> FoundLayout:
        """Find the layout; if there is none, create it or raise NotFoundError. An existing one is not changed."""
        with self.reading() as connection:
            found = find_layout(connection)
        check_known(found, self.name)
        self._is_current = found.is_current
        self.has_turns = found.version >= CONTENTION_VERSION
        self.has_digests = found.version >= SECURITY_VERSION
        self._has_lake_branches = found.version >= LAKE_BRANCHES_VERSION
        if found.is_there:
            return found
        if not create:
            raise missing_catalog(f"no catalog at `{self.name}`: the database has no catalog's tables", self.name)
        self.migrate()
        with self.reading() as connection:
            return find_layout(connection)

    def has_audit_log(self) -> bool:
        """Whether the audit log can be read; nothing is changed to find out."""
        with self.reading() as connection:
            return find_layout(connection).version >= AUDIT_VERSION

    def has_lake_branches(self) -> bool:
        """Whether the table of branches of the lake is there; once it is, nothing is read to find out."""
        if not self._has_lake_branches:
            with self.reading() as connection:
                self._has_lake_branches = find_layout(connection).version >= LAKE_BRANCHES_VERSION
        return self._has_lake_branches

    @contextlib.contextmanager
    def changing(self) -> Iterator[sa.Connection]:
        """A transaction on a layout that is up to date."""
        if not self._is_current:
            self._bring_up_to_date()
        with self.writing() as connection:
            yield connection

    @contextlib.contextmanager
    def before_commit(self, hook: CommitHook) -> Iterator[None]:
        """Run a hook in the transaction of every change this thread makes in the block; inner blocks come first."""
        outer: tuple[CommitHook, ...] = getattr(self._hooks, "of_thread", ())
        self._hooks.of_thread = (hook, *outer)
        try:
            yield
        finally:
            self._hooks.of_thread = outer

    def run_hooks(self, connection: sa.Connection, *moved: tuple[TableName, str | None]) -> None:
        """Run the hooks: called after every change, in its transaction, with the pointers that moved.

        An exception of a hook rolls the change back.
        """
        hooks: tuple[CommitHook, ...] = getattr(self._hooks, "of_thread", ())
        for hook in hooks:
            hook(connection, moved)

    def migrate(self) -> None:
        """Run all missing migrations, each in its own transaction unless the database is new."""
        more = True
        while more:
            with self.writing() as connection:
                self.lock_layout(connection)
                more = migrate(connection, self.name)
        self._is_current = self.has_turns = self.has_digests = self._has_lake_branches = True

    def close(self) -> None:
        """Close connections."""
        self.engine.dispose()

    def _bring_up_to_date(self) -> None:
        with self._migrating:
            if self._is_current:
                return
            try:
                self.migrate()
            except RefusedError:
                with self.reading() as connection:
                    if find_layout(connection).version > 0:
                        raise
                self._is_current = True  # created by others, and we may change rows but not add tables: theirs suffice
