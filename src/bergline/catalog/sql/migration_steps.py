"""The steps of a catalog database's layout, oldest first; imported only where one is due."""

from collections.abc import Callable

import sqlalchemy as sa

from bergline.catalog.sql.contention_layout import CONTENTION
from bergline.catalog.sql.governance_layout import GOVERNANCE, LAKE_BRANCHES, OPEN_INDEX, OWNER_INDEX
from bergline.catalog.sql.layout import NAMESPACE_INDEXES, SHARED, TABLES, VIEW_INDEX, index_shared_table
from bergline.catalog.sql.records_layout import AUDIT, AUDIT_INDEXES, DROPPED_TABLES_INDEXES, RECORDS, TRASH_LAYOUT
from bergline.catalog.sql.security_layout import RESERVED_DIRECTORIES, SECURITY

Migration = Callable[[sa.Connection], None]

_RESERVE_PLACES = f"""
    INSERT INTO {RESERVED_DIRECTORIES.name} (catalog_name, directory, kind, state, namespace, name)
    SELECT catalog_name, place, 'table', 'held', table_namespace, table_name FROM bergline_places
"""  # noqa: S608  (names of our own)


def create_shared(connection: sa.Connection) -> None:
    """Create the shared tables that are missing."""
    SHARED.create_all(connection)


def _create_records(connection: sa.Connection) -> None:
    """Create the tables of a server's records."""
    RECORDS.create_all(connection)


def _index_audit(connection: sa.Connection) -> None:
    """Create the indexes of the audit log, in databases that lack them."""
    for index in AUDIT_INDEXES:
        index.create(connection, checkfirst=True)


def _create_trash(connection: sa.Connection) -> None:
    """Create the table of dropped tables."""
    TRASH_LAYOUT.create_all(connection)


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
    for index in (*DROPPED_TABLES_INDEXES, OWNER_INDEX):
        index.create(connection, checkfirst=True)


def _create_security(connection: sa.Connection) -> None:
    """Create the tables of security: directories that were kept apart are reserved, branches shared."""
    SECURITY.create_all(connection)
    if sa.inspect(connection).has_table("bergline_places"):
        connection.execute(sa.text(_RESERVE_PLACES))
    connection.execute(sa.text("DROP INDEX IF EXISTS bergline_pull_requests_open"))
    OPEN_INDEX.create(connection, checkfirst=True)


def _create_lake_branches(connection: sa.Connection) -> None:
    """Create the table of branches of the lake."""
    LAKE_BRANCHES.create(connection, checkfirst=True)


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
    _create_trash,
    _add_conflicts,
    _create_governance,
    _create_contention,
    _create_security,
    _create_lake_branches,
)
"""As many as `LAYOUT_VERSION`; a database has run the first ones of them."""
