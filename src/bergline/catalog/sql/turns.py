"""Turns on tables, in the database of a SQL catalog: one row for each table that ever had one, by its clock."""

from collections.abc import Collection
from functools import lru_cache
from typing import Any

import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.contention_layout import TURNS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import TABLES, RowKind, by_name, join_namespace
from bergline.catalog.turns import LONGEST_TURN_MS, Turn

_FORGOTTEN_AFTER_MS = 3_600_000


@lru_cache(maxsize=64)
def _pointer_and_turn(catalog_name: str, kind: RowKind, now_ms: sa.ColumnElement[int]) -> sa.Select[Any]:
    """Built once for all stores of a catalog: building and compiling a query is slower than running it."""
    same = sa.and_(*(TURNS.c[c.name] == TABLES.c[c.name] for c in TURNS.primary_key))
    return (
        sa.select(TABLES.c.metadata_location, TURNS.c.holder, TURNS.c.until_ms - now_ms)
        .select_from(TABLES.outerjoin(TURNS, same))
        .where(
            TABLES.c.catalog_name == catalog_name,
            TABLES.c.table_namespace == sa.bindparam("of_namespace"),
            TABLES.c.table_name == sa.bindparam("of_name"),
            by_name(kind),
        )
    )


class SqlTurns:
    """The turns of one catalog."""

    def __init__(self, database: SqlDatabase, catalog_name: str, kind: RowKind) -> None:
        self._database = database
        self._catalog = catalog_name
        self._now = sa.select(database.now_ms())
        self.pointer_and_turn = _pointer_and_turn(catalog_name, kind, database.now_ms())
        """The query of the pointer and the turn of table `of_name` in `of_namespace`."""

    def of_row(self, row: tuple[Any, ...] | None) -> Turn | None:
        """The turn in a row of that query; one that lasts longer than any may is of a clock that was set back."""
        if row is None or row[2] is None or not 0 < row[2] <= LONGEST_TURN_MS:
            return None
        return Turn(str(row[1]), int(row[2]))

    def take(self, tables: Collection[TableName], holder: str, lease_ms: int) -> bool:
        """One row for each table, in the same order for all; no row at all if one of them is taken."""
        try:
            with self._database.changing() as connection:
                if not self._database.has_turns:
                    return False
                now = connection.execute(self._now).scalar_one()
                for table in sorted(tables):
                    connection.execute(self._taking(table, holder, now, lease_ms))
                    self._check_taken(connection, table, holder, now)
                forgotten = TURNS.c.until_ms < now - _FORGOTTEN_AFTER_MS
                connection.execute(sa.delete(TURNS).where(TURNS.c.catalog_name == self._catalog, forgotten))
        except _NotNow:
            return False
        return True

    def give_back(self, tables: Collection[TableName], holder: str) -> None:
        """The rows stay: how long the turn was is how long the others go first."""
        with self._database.changing() as connection:
            if not self._database.has_turns:
                return
            now = connection.execute(self._now).scalar_one()
            for table in sorted(tables):
                own = sa.and_(self._row(table), TURNS.c.holder == holder, TURNS.c.until_ms > now)
                connection.execute(sa.update(TURNS).where(own).values(until_ms=now))

    def _check_taken(self, connection: sa.Connection, table: TableName, holder: str, now: int) -> None:
        """A look at the row: how many rows an upsert has changed, not every driver says."""
        has_it = sa.and_(self._row(table), TURNS.c.holder == holder, TURNS.c.until_ms > now)
        if connection.execute(sa.select(TURNS.c.holder).where(has_it)).first() is None:
            raise _NotNow

    def _taking(self, table: TableName, holder: str, now: int, lease_ms: int) -> Any:
        """Insert the row, or take it over if it is the holder's own or nobody's."""
        until = now + min(lease_ms, LONGEST_TURN_MS)
        insert = self._database.insert(TURNS).values(
            catalog_name=self._catalog,
            table_namespace=join_namespace(table.namespace),
            table_name=table.name,
            holder=holder,
            since_ms=now,
            until_ms=until,
        )
        ends, since = TURNS.c.until_ms, TURNS.c.since_ms
        is_own = sa.and_(TURNS.c.holder == holder, ends > now, ends <= now + LONGEST_TURN_MS)
        is_over = sa.or_(ends + (ends - since) <= now, ends > now + LONGEST_TURN_MS)
        most = since + LONGEST_TURN_MS
        return insert.on_conflict_do_update(
            index_elements=[column.name for column in TURNS.primary_key],
            set_={
                "holder": holder,
                "since_ms": sa.case((is_own, since), else_=now),
                "until_ms": sa.case((sa.and_(is_own, most < until), most), else_=until),
            },
            where=sa.or_(is_own, is_over),
        )

    def _row(self, table: TableName) -> sa.ColumnElement[bool]:
        return sa.and_(
            TURNS.c.catalog_name == self._catalog,
            TURNS.c.table_namespace == join_namespace(table.namespace),
            TURNS.c.table_name == table.name,
        )


class _NotNow(Exception):  # noqa: N818  (never leaves this module)
    """Somebody else has a turn, or has just had one: roll back."""
