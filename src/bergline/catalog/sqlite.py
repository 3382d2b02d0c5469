"""Pointers in an SQLite database, in the layout shared with Java's JDBC catalog and PyIceberg's SQL catalog."""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from bergline.catalog.identifiers import Namespace, TableName, check_lengths
from bergline.catalog.sql_layout import (
    EXISTS_KEY,
    MAX_LOCATION_LENGTH,
    NAMESPACES,
    TABLES,
    create_layout,
    has_type_column,
    is_table,
    join_namespace,
    namespace_or_below,
    table_row,
)
from bergline.errors import InvalidInputError, StorageError, UnavailableError

DEFAULT_BUSY_TIMEOUT_S = 30.0
_BUSY = {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


class SqlitePointerStore:
    """PointerStore in one database file; `catalog_name` tells catalogs in one file apart."""

    def __init__(
        self, path: str, *, catalog_name: str = "lake", busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S
    ) -> None:
        self._path = path
        self._catalog = catalog_name
        check_lengths(catalog_name)
        self._engine = sa.create_engine(
            sa.URL.create("sqlite", database=path), poolclass=NullPool, connect_args={"timeout": busy_timeout_s}
        )
        sa.event.listen(self._engine, "connect", _leave_transactions_to_us)
        sa.event.listen(self._engine, "begin", _begin)
        self._typed = self._open_layout()

    def read(self, table: TableName) -> str | None:
        """The table's pointer."""
        query = sa.select(TABLES.c.metadata_location).where(self._row(table))
        with self._reading() as connection:
            return connection.execute(query).scalar_one_or_none()

    def create(self, table: TableName, pointer: str) -> bool:
        """Insert the row if there is none."""
        _check_pointer(pointer)
        check_lengths(join_namespace(table.namespace), table.name)
        row = {
            "catalog_name": self._catalog,
            "table_namespace": join_namespace(table.namespace),
            "table_name": table.name,
            "metadata_location": pointer,
            "previous_metadata_location": None,
        } | ({"iceberg_type": "TABLE"} if self._typed else {})
        try:
            with self._writing() as connection:
                connection.execute(sa.insert(TABLES).values(row))
        except sa.exc.IntegrityError:
            return False
        return True

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Move the pointer in one UPDATE that names the expected value."""
        _check_pointer(new)
        statement = (
            sa.update(TABLES)
            .where(self._row(table), TABLES.c.metadata_location == expected)
            .values(metadata_location=new, previous_metadata_location=expected)
        )
        with self._writing() as connection:
            return bool(connection.execute(statement).rowcount == 1)

    def drop(self, table: TableName) -> bool:
        """Delete the row."""
        with self._writing() as connection:
            return bool(connection.execute(sa.delete(TABLES).where(self._row(table))).rowcount == 1)

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """Tables in a namespace."""
        query = sa.select(TABLES.c.table_name).where(
            TABLES.c.catalog_name == self._catalog, TABLES.c.table_namespace == join_namespace(namespace)
        )
        if self._typed:
            query = query.where(is_table())
        with self._reading() as connection:
            return sorted(TableName(namespace, name) for name in connection.execute(query).scalars())

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> bool:
        """Insert the namespace's properties, with the mark that Java and PyIceberg use for "exists"."""
        name = join_namespace(namespace)
        check_lengths(name)
        rows = [
            {"catalog_name": self._catalog, "namespace": name, "property_key": k, "property_value": v}
            for k, v in ({EXISTS_KEY: "true"} | properties).items()
        ]
        with self._writing() as connection:
            if self._exists(connection, namespace):
                return False
            connection.execute(sa.insert(NAMESPACES), rows)
            return True

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Delete an empty namespace."""
        name = join_namespace(namespace)
        with self._writing() as connection:
            if any(n != name for n in self._names_below(connection, namespace)) or self._has_tables(connection, name):
                return False
            statement = sa.delete(NAMESPACES).where(
                NAMESPACES.c.catalog_name == self._catalog, NAMESPACES.c.namespace == name
            )
            return connection.execute(statement).rowcount > 0

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether it or anything in it exists."""
        with self._reading() as connection:
            return self._exists(connection, namespace)

    def list_namespaces(self) -> list[Namespace]:
        """All namespaces at every level."""
        with self._reading() as connection:
            names = [tuple(n.split(".")) for n in self._names_below(connection, None)]
        return sorted({n[: i + 1] for n in names for i in range(len(n))})

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _row(self, table: TableName) -> sa.ColumnElement[bool]:
        return table_row(self._catalog, table, typed=self._typed)

    def _exists(self, connection: sa.Connection, namespace: Namespace) -> bool:
        return bool(self._names_below(connection, namespace))

    def _has_tables(self, connection: sa.Connection, name: str) -> bool:
        query = sa.select(sa.func.count()).where(
            TABLES.c.catalog_name == self._catalog, TABLES.c.table_namespace == name
        )
        return connection.execute(query).scalar_one() > 0

    def _names_below(self, connection: sa.Connection, namespace: Namespace | None) -> list[str]:
        tables = sa.select(TABLES.c.table_namespace).where(TABLES.c.catalog_name == self._catalog)
        namespaces = sa.select(NAMESPACES.c.namespace).where(NAMESPACES.c.catalog_name == self._catalog)
        if namespace is not None:
            tables = tables.where(namespace_or_below(TABLES.c.table_namespace, namespace))
            namespaces = namespaces.where(namespace_or_below(NAMESPACES.c.namespace, namespace))
        return list(connection.execute(sa.union(tables, namespaces)).scalars())

    def _open_layout(self) -> bool:
        with _storage_errors(self._path):
            os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
            with self._engine.connect() as connection:
                inspector = sa.inspect(connection)
                missing = not (inspector.has_table(TABLES.name) and inspector.has_table(NAMESPACES.name))
            if missing:
                with self._engine.execution_options(bergline_autocommit=True).connect() as connection:
                    connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                with self._writing() as connection:
                    create_layout(connection)
            with self._engine.connect() as connection:
                return has_type_column(connection)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        with _storage_errors(self._path), self._engine.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """A transaction that takes the write lock first, so that "locked" always means "nothing was changed"."""
        engine = self._engine.execution_options(bergline_write=True)
        with _storage_errors(self._path), engine.begin() as connection:
            yield connection


def _leave_transactions_to_us(connection: Any, _record: Any) -> None:
    connection.isolation_level = None


def _begin(connection: sa.Connection) -> None:
    options = connection.get_execution_options()
    if options.get("bergline_write"):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    elif not options.get("bergline_autocommit"):
        connection.exec_driver_sql("BEGIN")


def _check_pointer(pointer: str) -> None:
    if len(pointer) > MAX_LOCATION_LENGTH:
        raise InvalidInputError(f"expected a location of up to {MAX_LOCATION_LENGTH} characters, found {len(pointer)}")


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
