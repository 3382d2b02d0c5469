"""What in a catalog's database does not fit together: rows that nothing explains, or that point nowhere."""

from collections import defaultdict

import msgspec
import sqlalchemy as sa

from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.governance_layout import GOVERNANCE
from bergline.catalog.sql.layout import NAMESPACES, TABLES
from bergline.catalog.sql.security_layout import SECURITY


class SharedPointer(msgspec.Struct, frozen=True):
    """A metadata file that several names point to: each is another table, or view, to every writer."""

    metadata_location: str
    names: tuple[str, ...]


class ReviewedTables(msgspec.Struct, frozen=True):
    """How many rows a table of governance has for each UUID of a table."""

    kept_in: str
    rows: dict[str, int]


def implicit_namespaces(database: SqlDatabase, catalog_name: str) -> list[str]:
    """Namespaces that exist only because tables or views are in them."""
    own = sa.exists().where(
        NAMESPACES.c.catalog_name == TABLES.c.catalog_name, NAMESPACES.c.namespace == TABLES.c.table_namespace
    )
    query = sa.select(TABLES.c.table_namespace).where(TABLES.c.catalog_name == catalog_name, ~own).distinct()
    with database.reading() as connection:
        return sorted(connection.execute(query).scalars())


def shared_pointers(database: SqlDatabase, catalog_name: str) -> list[SharedPointer]:
    """Metadata files to which more than one name points."""
    location, mine = TABLES.c.metadata_location, TABLES.c.catalog_name == catalog_name
    several = sa.select(location).where(mine).group_by(location).having(sa.func.count() > 1)
    query = sa.select(location, TABLES.c.table_namespace, TABLES.c.table_name).where(mine, location.in_(several))
    found = defaultdict(list)
    with database.reading() as connection:
        for place, namespace, name in connection.execute(query):
            found[place].append(f"{namespace}.{name}")
    return [SharedPointer(place, tuple(sorted(found[place]))) for place in sorted(found)]


def reviewed_tables(database: SqlDatabase, catalog_name: str) -> list[ReviewedTables]:
    """The UUIDs of tables whose snapshots governance has rows about."""
    found = []
    with database.reading() as connection:
        there = set(sa.inspect(connection).get_table_names())
        for table in (*GOVERNANCE.sorted_tables, *SECURITY.sorted_tables):
            if table.name in there and {"table_uuid", "snapshot_id"} <= set(table.c.keys()):
                uuid = table.c.table_uuid
                query = sa.select(uuid, sa.func.count()).where(table.c.catalog_name == catalog_name).group_by(uuid)
                rows = {str(key): int(count) for key, count in connection.execute(query)}
                if rows:
                    found.append(ReviewedTables(str(table.name), rows))
    return found
