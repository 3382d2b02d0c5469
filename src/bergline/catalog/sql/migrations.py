"""Migrations of a catalog database: the version found, and the steps to the current one.

The tables shared with Java and PyIceberg are never changed: a database that they created is used as it is, and gets
our own tables beside theirs with the first change.
"""

from collections.abc import Callable

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.governance_layout import GOVERNANCE
from bergline.catalog.sql.layout import NAMESPACES, SHARED, TABLES
from bergline.catalog.sql.records_layout import AUDIT, AUDIT_INDEXES, BIN_LAYOUT, RECORDS
from bergline.errors import UnsupportedError

_OWN = sa.MetaData()
LAYOUT = sa.Table(
    "bergline_layout",
    _OWN,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)
"""One row per migration."""

Migration = Callable[[sa.Connection], None]


class FoundLayout(msgspec.Struct, frozen=True):
    """The layout found: our version (0 if none), the shared tables, and whether their rows have a type."""

    version: int
    is_there: bool
    typed: bool


def find_layout(connection: sa.Connection) -> FoundLayout:
    """Inspect a database without changing anything."""
    inspector = sa.inspect(connection)
    version = 0
    if inspector.has_table(LAYOUT.name):
        version = connection.execute(sa.select(sa.func.max(LAYOUT.c.version))).scalar_one() or 0
    has_tables = inspector.has_table(TABLES.name)
    typed = has_tables and any(c["name"] == "iceberg_type" for c in inspector.get_columns(TABLES.name))
    return FoundLayout(version, has_tables and inspector.has_table(NAMESPACES.name), typed)


def check_known(found: FoundLayout, database: str, known: int) -> None:
    """Refuse a layout of a newer bergline."""
    if found.version > known:
        raise UnsupportedError(
            f"expected a catalog of layout version {known} or older, found version {found.version} in {database}",
            hints=["a newer bergline changed it: upgrade bergline to work with it"],
        )


def migrate(connection: sa.Connection, database: str, migrations: tuple[Migration, ...]) -> bool:
    """Run the next migration in the connection's transaction; False if there is none left.

    The caller has locked out every other process that may migrate.
    """
    found = find_layout(connection)
    check_known(found, database, len(migrations))
    if found.is_there and found.version >= len(migrations):
        return False
    _OWN.create_all(connection)
    if not found.is_there:
        _create_shared(connection)
    if found.version < len(migrations):
        migrations[found.version](connection)
        connection.execute(sa.insert(LAYOUT).values(version=found.version + 1))
    return True


def _create_shared(connection: sa.Connection) -> None:
    """Create the shared tables that are missing."""
    SHARED.create_all(connection)


def _create_records(connection: sa.Connection) -> None:
    """Create the tables of a server's records."""
    RECORDS.create_all(connection)


def _index_audit(connection: sa.Connection) -> None:
    """Create the indexes of the audit log, in databases that lack them."""
    for index in AUDIT_INDEXES:
        index.create(connection, checkfirst=True)


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


MIGRATIONS: tuple[Migration, ...] = (
    _create_shared,
    _create_records,
    _index_audit,
    _create_bin,
    _add_conflicts,
    _create_governance,
)
AUDIT_VERSION = MIGRATIONS.index(_add_conflicts) + 1
"""From which on the audit log is as it is now."""
RECORDS_VERSION = MIGRATIONS.index(_create_records) + 1
"""The version that introduced a server's records."""
GOVERNANCE_VERSION = MIGRATIONS.index(_create_governance) + 1
"""The version that introduced the tables of governance."""
