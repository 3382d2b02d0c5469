"""Pointers of tables or of views in the shared SQL layout."""

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from bergline.arguments import check_no_nul
from bergline.catalog.identifiers import Namespace, TableName, check_lengths
from bergline.catalog.pointer.pointer_store import FoundNames, PointerSwap
from bergline.catalog.sql.database import CommitHook, SqlDatabase
from bergline.catalog.sql.digests import SqlDigests
from bergline.catalog.sql.layout import (
    MAX_LOCATION_LENGTH,
    TABLES,
    RowKind,
    by_name,
    join_namespace,
    metadata_below,
    of_kind,
)
from bergline.errors import FormatError, InvalidInputError

_ROWS_AT_ONCE = 1000
_MOST_ROWS = 10_000
_NAMESPACE_IS = TABLES.c.table_namespace == sa.bindparam("of_namespace")
_NAME_IS = TABLES.c.table_name == sa.bindparam("of_name")


@lru_cache(maxsize=64)
def _row_statements(catalog_name: str, kind: RowKind) -> tuple[sa.Select[Any], sa.Update]:
    """Statements to read and to swap a pointer, built once: building and compiling them is slower than running them."""
    row = sa.and_(TABLES.c.catalog_name == catalog_name, _NAMESPACE_IS, _NAME_IS, by_name(kind))
    swap = (
        sa.update(TABLES)
        .where(row, TABLES.c.metadata_location == sa.bindparam("expected"))
        .values(metadata_location=sa.bindparam("new"), previous_metadata_location=sa.bindparam("expected"))
    )
    return sa.select(TABLES.c.metadata_location).where(row), swap


class SqlPointers:
    """Pointers of tables, or of views, which share the names of all rows."""

    atomic_tables = True

    def __init__(self, database: SqlDatabase, catalog_name: str, kind: RowKind, digests: SqlDigests) -> None:
        self.database = database
        self.digests = digests
        self.catalog_name = self._catalog = catalog_name
        self._kind = kind
        self._read_row, self._swap_row = _row_statements(catalog_name, kind)

    def read(self, table: TableName) -> str | None:
        return self._pointer(table, self.database.first_row(self._read_row, name_values(table)))

    def read_at_once(self, table: TableName) -> str | None:
        """The pointer if it is found without waiting for locks; None says nothing."""
        row = self.database.row_at_once(self._read_row, name_values(table))
        return None if row is None or row[0] is None else str(row[0])

    def create(self, table: TableName, pointer: str) -> bool:
        """Insert the row if there is none."""
        return self.swap_all((PointerSwap(table, None, pointer),))

    def swap(self, table: TableName, expected: str, new: str) -> bool:
        """Swap the pointer by one UPDATE with the expected value in its condition."""
        return self.swap_all((PointerSwap(table, expected, new),))

    def swap_all(self, swaps: Sequence[PointerSwap], within: Callable[[sa.Connection], None] | None = None) -> bool:
        """Swap the pointers in one transaction, rolled back if one is not as expected, or if `within` raises."""
        for swap in swaps:
            _check_pointer(swap.new)
        try:
            with self.database.changing() as connection:
                # always in the same order, so that two writers do not deadlock
                for swap in sorted(swaps, key=lambda s: s.table):
                    self._swap_in(connection, swap)
                self.digests.move(connection, swaps)
                if within is not None:
                    within(connection)
                self.database.run_hooks(connection, *((swap.table, swap.new) for swap in swaps))
        except _Stale:
            return False
        return True

    def before_commit(self, hook: CommitHook) -> AbstractContextManager[None]:
        """Run a hook in the transaction of every change that this thread makes in the block."""
        return self.database.before_commit(hook)

    def list_in(self, connection: sa.Connection, tables: Iterable[TableName], kind: RowKind) -> None:
        """Have tables in the lists of a kind from now on."""
        for table in tables:
            connection.execute(sa.update(TABLES).where(self._row(table)).values(iceberg_type=kind.value))

    def holds(self, connection: sa.Connection, table: TableName, expected: str) -> bool:
        """Whether a pointer is as expected; if so, it stays until the end of the transaction."""
        query = sa.select(TABLES.c.metadata_location).where(self._row(table)).with_for_update()
        return connection.execute(query).scalar_one_or_none() == expected

    def drop(self, table: TableName, expected: str | None = None) -> bool:
        statement = sa.delete(TABLES).where(self._row(table))
        if expected is not None:
            statement = statement.where(TABLES.c.metadata_location == expected)
        with self.database.changing() as connection:
            dropped = bool(connection.execute(statement).rowcount == 1)
            if dropped:
                self.database.run_hooks(connection, (table, expected))
                if expected is not None:
                    self.digests.forget(connection, table, expected)
            return dropped

    def rename(self, table: TableName, new: TableName) -> bool:
        """Rename the row; a row with the new name makes it fail."""
        name = self._name(new)
        if table == new:
            return False
        statement = sa.update(TABLES).where(self._row(table)).values(name)
        try:
            with self.database.changing() as connection:
                renamed = bool(connection.execute(statement).rowcount == 1)
                if renamed:
                    self.database.run_hooks(connection, (table, None), (new, None))
                return renamed
        except sa.exc.IntegrityError:
            return False

    def lists(self, table: TableName) -> bool:
        """Whether a name is in the lists of this kind."""
        query = sa.select(TABLES.c.table_name).where(self._row(table), of_kind(self._kind))
        with self.database.reading() as connection:
            return connection.execute(query).first() is not None

    def list_names(self, namespace: Namespace) -> list[TableName]:
        with self.database.reading() as connection:
            found = connection.execute(self._names(namespace)).scalars()
            return sorted(TableName(namespace, name) for name in found)

    def names_after(self, namespace: Namespace, after: str | None, most: int) -> list[TableName]:
        """The next names of this kind in a namespace, in the order of the primary key."""
        with self.database.reading() as connection:
            return [TableName(namespace, name) for name in self._next(connection, namespace, after, most)]

    def names_among(
        self, namespace: Namespace, names: Collection[str], after: str | None, most: int | None
    ) -> list[TableName]:
        """The next of some names, or all that follow, that exist in a namespace, in the same order.

        Each is looked up. If there are many, as many rows are read first, which may already be enough.
        """
        found = list[str]()
        left, at_once = len(names) if len(names) > _ROWS_AT_ONCE else 0, _ROWS_AT_ONCE
        with self.database.reading_snapshot() as connection:
            while left > 0:
                rows = self._next(connection, namespace, after, asked := min(left, at_once))
                found += (name for name in rows if name in names)
                if len(rows) < asked or (most is not None and len(found) >= most):
                    return [TableName(namespace, name) for name in found[:most]]
                left, after, at_once = left - asked, rows[-1], min(2 * at_once, _MOST_ROWS)
            found += self._looked_up(connection, namespace, names, after)
        return [TableName(namespace, name) for name in found[:most]]

    def search_names(self, words: Sequence[str], namespace: Namespace | None, offset: int, limit: int) -> FoundNames:
        """In the order of the primary key; the database counts if there is no word, else the rows pass by."""
        mine = TABLES.c.catalog_name == self._catalog if namespace is None else self._in(namespace)
        query = sa.select(TABLES.c.table_namespace, TABLES.c.table_name).where(mine, of_kind(self._kind))
        query = query.order_by(TABLES.c.table_namespace, TABLES.c.table_name)
        found, matching = list[TableName](), 0
        with self.database.reading() as connection:
            if not words:
                counted = sa.select(sa.func.count()).select_from(TABLES).where(mine, of_kind(self._kind))
                matching = connection.execute(counted).scalar_one()
                rows = connection.execute(query.offset(offset).limit(limit))
                return FoundNames([TableName(tuple(levels.split(".")), name) for levels, name in rows], matching)
            for levels, name in connection.execution_options(yield_per=_ROWS_AT_ONCE).execute(query):
                text = f"{levels}.{name}".casefold()
                if all(word in text for word in words):
                    if offset <= matching < offset + limit:
                        found.append(TableName(tuple(levels.split(".")), name))
                    matching += 1
        return FoundNames(found, matching)

    def names_with_metadata_in(self, directories: Collection[str]) -> list[TableName]:
        """The names of this kind whose metadata file is below one of the directories, spelt the same."""
        mine = sa.and_(TABLES.c.catalog_name == self._catalog, by_name(self._kind))
        below = [sa.and_(mine, metadata_below(self.database.by_bytes, f"{text}/")) for text in directories]
        query = sa.select(TABLES.c.table_namespace, TABLES.c.table_name).where(sa.or_(sa.false(), *below))
        with self.database.reading() as connection:
            return [TableName(tuple(namespace.split(".")), name) for namespace, name in connection.execute(query)]

    def names_around(self, table: TableName, most: int) -> list[TableName]:
        """The names of this kind among the rows next to a name, so many on each side."""
        name, columns = TABLES.c.table_name, [TABLES.c.table_name]
        if self._kind is not RowKind.UNTYPED:
            columns.append(TABLES.c.iceberg_type)
        sides = (name < table.name, name.desc()), (name > table.name, name)
        found: list[TableName] = []
        with self.database.reading() as connection:
            for is_there, order in sides:
                query = sa.select(*columns).where(self._in(table.namespace), is_there).order_by(order).limit(most)
                rows = connection.execute(query)
                found += [TableName(table.namespace, row[0]) for row in rows if self._is_of_kind(*row[1:])]
        return found

    def _next(self, connection: sa.Connection, namespace: Namespace, after: str | None, most: int) -> list[str]:
        query = self._names(namespace).order_by(TABLES.c.table_name).limit(most)
        if after is not None:
            query = query.where(TABLES.c.table_name > after)
        return [str(name) for name in connection.execute(query).scalars()]

    def _looked_up(
        self, connection: sa.Connection, namespace: Namespace, names: Collection[str], after: str | None
    ) -> list[str]:
        """Those of some names that exist, in the order of the primary key."""
        query, asked, found = self._names(namespace), sorted(names), list[str]()
        if after is not None:  # not the column itself, for which an index would be read from there on
            query = query.where(TABLES.c.table_name + "" > after)
        for start in range(0, len(asked), _ROWS_AT_ONCE):
            some = TABLES.c.table_name.in_(asked[start : start + _ROWS_AT_ONCE])
            found += connection.execute(query.where(some)).scalars()
        return self.database.in_order(connection, found)

    def _names(self, namespace: Namespace) -> sa.Select[Any]:
        return sa.select(TABLES.c.table_name).where(self._in(namespace), of_kind(self._kind))

    def _pointer(self, table: TableName, row: tuple[Any, ...] | None) -> str | None:
        """The pointer in the first column of its row, if there is one."""
        if row is not None and row[0] is None:
            raise FormatError(f"expected a metadata location for `{table}`, found none in its row of the catalog")
        return None if row is None else str(row[0])

    def _swap_in(self, connection: sa.Connection, swap: PointerSwap) -> None:
        if swap.expected is None:
            self._insert_in(connection, swap)
            return
        values = name_values(swap.table) | {"expected": swap.expected, "new": swap.new}
        if connection.execute(self._swap_row, values).rowcount != 1:
            raise _Stale

    def _insert_in(self, connection: sa.Connection, swap: PointerSwap) -> None:
        row = self._name(swap.table) | {"metadata_location": swap.new, "previous_metadata_location": None}
        if self._kind is not RowKind.UNTYPED:
            row |= {"iceberg_type": self._kind.value}
        try:
            connection.execute(sa.insert(TABLES).values(row))
        except sa.exc.IntegrityError as error:
            raise _Stale from error

    def _row(self, table: TableName) -> sa.ColumnElement[bool]:
        """A condition for the row of this name and kind."""
        return sa.and_(
            TABLES.c.catalog_name == self._catalog,
            TABLES.c.table_namespace == join_namespace(table.namespace),
            TABLES.c.table_name == table.name,
            by_name(self._kind),
        )

    def _in(self, namespace: Namespace) -> sa.ColumnElement[bool]:
        """A condition for all rows of a namespace."""
        return sa.and_(TABLES.c.catalog_name == self._catalog, TABLES.c.table_namespace == join_namespace(namespace))

    def _is_of_kind(self, iceberg_type: str | None = None) -> bool:
        """Whether a row of this type is of this kind; rows without a type are tables."""
        return self._kind is RowKind.UNTYPED or (iceberg_type or RowKind.TABLE.value) == self._kind.value

    def _name(self, table: TableName) -> dict[str, str | None]:
        """The key columns of a row; refused if the layout would truncate a name."""
        namespace = join_namespace(table.namespace)
        check_lengths(namespace, table.name)
        return {"catalog_name": self._catalog, "table_namespace": namespace, "table_name": table.name}


class _Stale(Exception):  # noqa: N818  (never leaves this module)
    """A pointer is not as expected: roll back."""


def name_values(table: TableName) -> dict[str, str]:
    """The values of a table's name in a prepared query."""
    return {"of_namespace": join_namespace(table.namespace), "of_name": table.name}


def _check_pointer(pointer: str) -> None:
    check_no_nul(pointer, "a location")
    if len(pointer) > MAX_LOCATION_LENGTH:
        raise InvalidInputError(f"expected a location of up to {MAX_LOCATION_LENGTH} characters, found {len(pointer)}")
