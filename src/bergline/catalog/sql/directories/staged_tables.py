"""Tables that clients have staged and write files for, before they exist: who may, and in which directories."""

import secrets

import msgspec
import sqlalchemy as sa

from bergline.catalog.identifiers import TableName
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import STAGED_TABLES
from bergline.catalog.sql.layout import join_namespace

_ID_BYTES = 16


class SqlStagedTables:
    """The staged tables of one catalog; they are forgotten after a time."""

    def __init__(self, database: SqlDatabase, catalog_name: str) -> None:
        self._database = database
        self._catalog = catalog_name

    def add(self, name: TableName, principal: str, directories: tuple[str, ...], now_ms: int, until_ms: int) -> str:
        """Record a staged table; returns an id that cannot be guessed."""
        staged_id = secrets.token_hex(_ID_BYTES)
        row = {
            "catalog_name": self._catalog,
            "staged_id": staged_id,
            "table_namespace": join_namespace(name.namespace),
            "table_name": name.name,
            "principal": principal,
            "directories": msgspec.json.encode(directories).decode(),
            "until_ms": until_ms,
        }
        with self._database.changing() as connection:
            connection.execute(
                sa.delete(STAGED_TABLES).where(
                    STAGED_TABLES.c.catalog_name == self._catalog, STAGED_TABLES.c.until_ms <= now_ms
                )
            )
            connection.execute(sa.insert(STAGED_TABLES), row)
        return staged_id

    def directories(self, staged_id: str, name: TableName, principal: str, now_ms: int) -> tuple[str, ...] | None:
        """The directories of a table that this principal has staged under this id and name; None if there is none."""
        columns = STAGED_TABLES.c
        query = sa.select(columns.directories).where(
            columns.catalog_name == self._catalog,
            columns.staged_id == staged_id,
            columns.table_namespace == join_namespace(name.namespace),
            columns.table_name == name.name,
            columns.principal == principal,
            columns.until_ms > now_ms,
        )
        with self._database.reading() as connection:
            if not sa.inspect(connection).has_table(STAGED_TABLES.name):  # a database of an older version
                return None
            found = connection.execute(query).scalar_one_or_none()
        return None if found is None else msgspec.json.decode(found, type=tuple[str, ...])
