"""Migrations of a catalog database: the version found, and the steps to the current one.

The tables shared with Java and PyIceberg are never changed: a database that they created is used as it is, and gets
our own tables beside theirs, and our own indexes, with the first change.
"""

from typing import TYPE_CHECKING

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.layout import NAMESPACES, TABLES
from bergline.catalog.sql.layout_version import LAYOUT_VERSION
from bergline.errors import UnsupportedError
from bergline.lazy_module import LazyModule

if TYPE_CHECKING:
    from bergline.catalog.sql import migration_steps
else:  # most databases are up to date
    migration_steps = LazyModule("bergline.catalog.sql.migration_steps")


_OWN = sa.MetaData()
LAYOUT = sa.Table(
    "bergline_layout",
    _OWN,
    sa.Column("version", sa.Integer, primary_key=True, autoincrement=False),
)
"""One row per migration."""


class FoundLayout(msgspec.Struct, frozen=True):
    """The layout found: our version (0 if none), the shared tables, and whether their rows have a type."""

    version: int
    is_there: bool
    typed: bool

    @property
    def is_current(self) -> bool:
        """Whether no migration is due."""
        return self.is_there and self.version == LAYOUT_VERSION


_NOTHING = FoundLayout(0, is_there=False, typed=False)


def find_layout(connection: sa.Connection) -> FoundLayout:
    """Inspect a database without changing anything."""
    inspector = sa.inspect(connection)
    version = 0
    if inspector.has_table(LAYOUT.name):
        version = connection.execute(sa.select(sa.func.max(LAYOUT.c.version))).scalar_one() or 0
    has_tables = inspector.has_table(TABLES.name)
    typed = has_tables and any(c["name"] == "iceberg_type" for c in inspector.get_columns(TABLES.name))
    return FoundLayout(version, has_tables and inspector.has_table(NAMESPACES.name), typed)


def check_known(found: FoundLayout, database: str) -> None:
    """Refuse a layout of a newer bergline."""
    if found.version > LAYOUT_VERSION:
        raise UnsupportedError(
            f"expected a catalog of layout version {LAYOUT_VERSION} or older, "
            f"found version {found.version} in {database}",
            hints=["a newer bergline changed it: upgrade bergline to work with it"],
        )


def migrate(connection: sa.Connection, database: str) -> bool:
    """Run the next migration in the connection's transaction, all of them on a new database; False if none is left.

    The caller has locked out every other process that may migrate.
    """
    found = find_layout(connection)
    check_known(found, database)
    if found.is_current:
        return False
    _OWN.create_all(connection)
    if not found.is_there:
        migration_steps.create_shared(connection)
    last = LAYOUT_VERSION if found == _NOTHING else min(found.version + 1, LAYOUT_VERSION)
    for version in range(found.version, last):
        migration_steps.MIGRATIONS[version](connection)
        connection.execute(sa.insert(LAYOUT).values(version=version + 1))
    return last < LAYOUT_VERSION
