"""The steps of a catalog database's layout, oldest first; imported only where one is due."""

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.schema import CreateIndex

from bergline.catalog.sql.contention_layout import CONTENTION, FOOTPRINTS, footprint_indexes
from bergline.catalog.sql.footprint_marks import add_marks
from bergline.catalog.sql.governance_layout import GOVERNANCE, OWNER_INDEX
from bergline.catalog.sql.layout import NAMESPACE_INDEXES, SHARED, TABLES, VIEW_INDEX, index_shared_table
from bergline.catalog.sql.records_layout import (
    AUDIT,
    AUDIT_INDEXES,
    BIN,
    BIN_HOME,
    BIN_HOME_INDEX,
    BIN_INDEXES,
    BIN_LAYOUT,
    RECORDS,
)

Migration = Callable[[sa.Connection], None]


def create_shared(connection: sa.Connection) -> None:
    """Create the shared tables that are missing."""
    SHARED.create_all(connection)


def _create_records(connection: sa.Connection) -> None:
    """Create the tables of a server's records."""
    RECORDS.create_all(connection)


def _index_audit(connection: sa.Connection) -> None:
    """Create the indexes of the audit log, in databases that lack them."""
    for index in AUDIT_INDEXES:
        connection.execute(CreateIndex(index, if_not_exists=True))


def _create_bin(connection: sa.Connection) -> None:
    """Create the table of dropped tables."""
    BIN_LAYOUT.create_all(connection)


def _add_conflicts(connection: sa.Connection) -> None:
    """Add the column for conflicts to audit logs that lack it."""
    if all(column["name"] != "conflict" for column in sa.inspect(connection).get_columns(AUDIT.name)):
        connection.execute(sa.text(f"ALTER TABLE {AUDIT.name} ADD COLUMN conflict TEXT"))


def _create_governance(connection: sa.Connection) -> None:
    """Create the tables of governance."""
    GOVERNANCE.create_all(connection)


def _create_contention(connection: sa.Connection) -> None:
    """Create the tables by which writers take turns."""
    CONTENTION.create_all(connection)
    _index_shared(connection)
    for index in (*BIN_INDEXES, OWNER_INDEX):
        connection.execute(CreateIndex(index, if_not_exists=True))


def _add_marks(connection: sa.Connection) -> None:
    """Add marks to the rows that have metadata files, and directories to the bin; footprints are read again."""
    collation = ' COLLATE "C"' if connection.dialect.name == "postgresql" else ""
    connection.execute(sa.delete(FOOTPRINTS))
    for name, what in footprint_indexes(collation).items():
        index_shared_table(connection, name, what)
    add_marks(connection, collation)
    if all(column["name"] != BIN_HOME for column in sa.inspect(connection).get_columns(BIN.name)):
        connection.execute(sa.text(f"ALTER TABLE {BIN.name} ADD COLUMN {BIN_HOME} TEXT"))
    index_shared_table(connection, BIN_HOME_INDEX, f"{BIN.name} (catalog_name, {BIN_HOME}{collation})")


def _index_shared(connection: sa.Connection) -> None:
    """Create our indexes of the shared tables."""
    wanted: list[tuple[str, str]] = []
    if any(column["name"] == "iceberg_type" for column in sa.inspect(connection).get_columns(TABLES.name)):
        wanted.append(VIEW_INDEX)
    if connection.dialect.name == "postgresql":
        wanted += NAMESPACE_INDEXES.items()
    for name, what in wanted:
        index_shared_table(connection, name, what)


MIGRATIONS: tuple[Migration, ...] = (
    create_shared,
    _create_records,
    _index_audit,
    _create_bin,
    _add_conflicts,
    _create_governance,
    _create_contention,
    _add_marks,
)
"""As many as `LAYOUT_VERSION`; a database has run the first ones of them."""
