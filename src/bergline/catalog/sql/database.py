"""A database that holds a catalog: what is different from one to the other, and its layout."""

import contextlib
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.pointer.pointer_store import missing_catalog
from bergline.catalog.sql.layout import NAMESPACES, TABLES
from bergline.catalog.sql.migrations import MIGRATIONS, FoundLayout, check_known, find_layout, migrate
from bergline.errors import RefusedError

Note = Callable[[sa.Connection, tuple[tuple[TableName, str | None], ...]], None]


@contextlib.contextmanager
def transaction(
    connection: sa.Connection,
    nothing_changed: AbstractContextManager[None],
    while_committing: Callable[[sa.exc.DBAPIError], Exception],
) -> Iterator[None]:
    """A transaction, committed at the end: what fails before is said by the one, what fails then by the other."""
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
        connection.invalidate(error)  # ends a transaction that is still open, and its locks
        raise while_committing(error) from error


class SqlDatabase(ABC):
    """Which database it is shows in `reading` and `writing`, and in what their errors mean."""

    def __init__(self, engine: sa.Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self._migrating = threading.Lock()
        self._is_current = False
        self._noting = threading.local()

    answers_at_once = False
    """Whether `row_at_once` finds rows, so that a server may look them up between two requests."""
    sorts_by_bytes = False
    """Whether texts are compared by their bytes, so that what begins alike stands together in an index."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A connection to read with."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction, committed at the end.

        UnavailableError or RefusedError if and only if nothing was changed for certain.
        """

    @abstractmethod
    def insert(self, table: sa.Table) -> Any:
        """An INSERT that knows ON CONFLICT."""

    @abstractmethod
    def lock_layout(self, connection: sa.Connection) -> None:
        """Keep all other processes from migrating until the end of the transaction."""

    def first_row(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The one row of a query that is made once and run often; None if there is none."""
        with self.reading() as connection:
            row = connection.execute(query, values).one_or_none()
        return None if row is None else tuple(row)

    def row_at_once(self, query: sa.Select[Any], values: dict[str, str]) -> tuple[Any, ...] | None:
        """The row of `first_row` where it is found without waiting for anybody; None also where it is not."""
        del query, values
        return None

    def check_ready(self) -> None:
        """UnavailableError, or another error, unless the database answers and has the layout."""
        with self.reading() as connection:
            for table in (TABLES, NAMESPACES):
                connection.execute(sa.select(table.c.catalog_name).limit(1)).all()

    def open_layout(self, *, create: bool) -> FoundLayout:
        """The layout; where there is none it is made or a NotFoundError, and one that is there is only looked at."""
        with self.reading() as connection:
            found = find_layout(connection)
        check_known(found, self.name, len(MIGRATIONS))
        self._is_current = found.is_there and found.version == len(MIGRATIONS)
        if found.is_there:
            return found
        if not create:
            raise missing_catalog(f"no catalog at `{self.name}`: the database has no catalog's tables", self.name)
        self.migrate()
        with self.reading() as connection:
            return find_layout(connection)

    @contextlib.contextmanager
    def changing(self) -> Iterator[sa.Connection]:
        """A transaction on a layout that is up to date."""
        if not self._is_current:
            self._bring_up_to_date()
        with self.writing() as connection:
            yield connection

    @contextlib.contextmanager
    def noting(self, note: Note) -> Iterator[None]:
        """Let a note be taken of every change that this thread makes, in the transaction of the change."""
        self._noting.note = note
        try:
            yield
        finally:
            self._noting.note = None

    def note(self, connection: sa.Connection, *changed: tuple[TableName, str | None]) -> None:
        """Take the note: called by whatever changes something, once it has, with the pointers that moved.

        What the note raises undoes the change.
        """
        note: Note | None = getattr(self._noting, "note", None)
        if note is not None:
            note(connection, changed)

    def migrate(self) -> None:
        """Make all migrations that are missing, each in a transaction of its own."""
        more = True
        while more:
            with self.writing() as connection:
                self.lock_layout(connection)
                more = migrate(connection, self.name, MIGRATIONS)
        self._is_current = True

    def close(self) -> None:
        """Let go of the database."""
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
                self._is_current = True  # others made it, and we may change rows but not add tables: theirs suffice
