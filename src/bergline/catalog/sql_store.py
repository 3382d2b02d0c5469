"""Pointers in an SQL database, in the layout shared with Java's JDBC catalog and PyIceberg's SQL catalog."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

import sqlalchemy as sa

from bergline.catalog.identifiers import Namespace, TableName, check_lengths
from bergline.catalog.pointer_store import PointerSwap
from bergline.catalog.sql_layout import (
    EXISTS_KEY,
    MAX_LOCATION_LENGTH,
    NAMESPACES,
    TABLES,
    is_table,
    join_namespace,
    namespace_or_below,
    table_row,
)
from bergline.errors import InvalidInputError


class SqlPointerStore(ABC):
    """PointerStore on the shared layout; `catalog_name` tells catalogs in one database apart.

    Which database it is shows in `reading` and `writing`, and in what their errors mean.
    """

    atomic_tables = True

    def __init__(self, engine: sa.Engine, catalog_name: str) -> None:
        check_lengths(catalog_name)
        self._engine = engine
        self._catalog = catalog_name
        self._typed = True

    @abstractmethod
    def reading(self) -> AbstractContextManager[sa.Connection]:
        """A connection to read with."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[sa.Connection]:
        """A transaction, committed at the end; UnavailableError if and only if nothing was changed for certain."""

    def read(self, table: TableName) -> str | None:
        """The table's pointer."""
        query = sa.select(TABLES.c.metadata_location).where(self._row(table))
        with self.reading() as connection:
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
            with self.writing() as connection:
                connection.execute(sa.insert(TABLES).values(row))
        except sa.exc.IntegrityError:
            return False
        return True

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Move the pointer in one UPDATE that names the expected value."""
        return self.swap_all((PointerSwap(table, expected, new),))

    def swap_all(self, swaps: Sequence[PointerSwap]) -> bool:
        """Move the pointers in one transaction, which is rolled back if one is not as expected."""
        for swap in swaps:
            _check_pointer(swap.new)
        try:
            with self.writing() as connection:
                # always in the same order, so that two writers of the same tables do not wait for each other
                for swap in sorted(swaps, key=lambda s: s.table):
                    self._swap_in(connection, swap)
        except _Stale:
            return False
        return True

    def drop(self, table: TableName) -> bool:
        """Delete the row."""
        with self.writing() as connection:
            return bool(connection.execute(sa.delete(TABLES).where(self._row(table))).rowcount == 1)

    def rename(self, table: TableName, new: TableName) -> bool:
        """Give the row another name; a row that has it already stands against it."""
        check_lengths(join_namespace(new.namespace), new.name)
        if table == new:
            return False
        statement = (
            sa.update(TABLES)
            .where(self._row(table))
            .values(table_namespace=join_namespace(new.namespace), table_name=new.name)
        )
        try:
            with self.writing() as connection:
                return bool(connection.execute(statement).rowcount == 1)
        except sa.exc.IntegrityError:
            return False

    def list_tables(self, namespace: Namespace) -> list[TableName]:
        """Tables in a namespace."""
        query = sa.select(TABLES.c.table_name).where(
            TABLES.c.catalog_name == self._catalog, TABLES.c.table_namespace == join_namespace(namespace)
        )
        if self._typed:
            query = query.where(is_table())
        with self.reading() as connection:
            return sorted(TableName(namespace, name) for name in connection.execute(query).scalars())

    def create_namespace(self, namespace: Namespace, properties: dict[str, str]) -> bool:
        """Insert the namespace's properties, with the mark that Java and PyIceberg use for "exists"."""
        name = join_namespace(namespace)
        check_lengths(name)
        rows = [
            {"catalog_name": self._catalog, "namespace": name, "property_key": k, "property_value": v}
            for k, v in ({EXISTS_KEY: "true"} | properties).items()
        ]
        with self.writing() as connection:
            if self._exists(connection, namespace):
                return False
            connection.execute(sa.insert(NAMESPACES), rows)
            return True

    def drop_namespace(self, namespace: Namespace) -> bool:
        """Delete an empty namespace."""
        name = join_namespace(namespace)
        with self.writing() as connection:
            if any(n != name for n in self._names_below(connection, namespace)) or self._has_tables(connection, name):
                return False
            statement = sa.delete(NAMESPACES).where(
                NAMESPACES.c.catalog_name == self._catalog, NAMESPACES.c.namespace == name
            )
            return connection.execute(statement).rowcount > 0

    def namespace_exists(self, namespace: Namespace) -> bool:
        """Whether it or anything in it exists."""
        with self.reading() as connection:
            return self._exists(connection, namespace)

    def list_namespaces(self) -> list[Namespace]:
        """All namespaces at every level."""
        with self.reading() as connection:
            names = [tuple(n.split(".")) for n in self._names_below(connection, None)]
        return sorted({n[: i + 1] for n in names for i in range(len(n))})

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _swap_in(self, connection: sa.Connection, swap: PointerSwap) -> None:
        statement = (
            sa.update(TABLES)
            .where(self._row(swap.table), TABLES.c.metadata_location == swap.expected)
            .values(metadata_location=swap.new, previous_metadata_location=swap.expected)
        )
        if connection.execute(statement).rowcount != 1:
            raise _Stale

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


class _Stale(Exception):  # noqa: N818  (never leaves this module)
    """A pointer is not as expected: roll back."""


def _check_pointer(pointer: str) -> None:
    if len(pointer) > MAX_LOCATION_LENGTH:
        raise InvalidInputError(f"expected a location of up to {MAX_LOCATION_LENGTH} characters, found {len(pointer)}")
