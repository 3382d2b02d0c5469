"""Marks on the rows that have metadata files, by which those are found of whose files nothing is kept.

A mark repeats of what the footprint is kept. Whoever moves a pointer without knowing of marks, as Java and PyIceberg
do, leaves a row whose mark says something else, and an index has such rows alone. A footprint is deleted only if no row
has its metadata file, so what is marked is kept.
"""

from collections.abc import Collection
from typing import Final

import sqlalchemy as sa

from bergline.catalog.sql.contention_layout import FOOTPRINTS
from bergline.catalog.sql.database import SqlDatabase
from bergline.catalog.sql.layout import (
    MARK,
    TABLES,
    change_shared_table,
    index_locations,
    index_shared_table,
    indexed_location,
    with_derived,
)
from bergline.catalog.sql.records_layout import BIN

RULES_VERSION: Final = 1
"""Counted up when a footprint comes to mean something else, with a migration that makes new indexes of marks."""
MARKED_TABLES = with_derived(TABLES, sa.Column(MARK, sa.Text))
MARKED_BIN = with_derived(BIN, sa.Column(MARK, sa.Text))
_INDEXED = {TABLES.name: "catalog_name, table_namespace, table_name", BIN.name: "catalog_name, id"}
_INDEX_NAMES = {TABLES.name: "bergline_tables_unmarked", BIN.name: "bergline_bin_unmarked"}


def current_mark() -> sa.ColumnElement[str]:
    """The mark of a row whose footprint is kept."""
    return sa.literal_column(_current())


def is_unmarked() -> sa.ColumnElement[bool]:
    """A condition for rows whose footprint is not kept, in words, so that their index is used."""
    return sa.literal_column(_is_marked(), sa.Integer) == sa.literal_column("0")


def add_marks(connection: sa.Connection, collation: str) -> None:
    """Add the marks, and indexes by mark and by metadata location; a shared table of another role is left alone."""
    for table in (TABLES, BIN):
        if not has_marks(connection, table):
            change_shared_table(connection, f"ALTER TABLE {table.name} ADD COLUMN {MARK} TEXT")
        if has_marks(connection, table):
            first = f"({_is_marked()}), " if connection.dialect.name == "sqlite" else ""  # or SQLite prefers others
            what = f"{table.name} ({first}{_INDEXED[table.name]}) WHERE {_is_marked()} = 0"
            index_shared_table(connection, _INDEX_NAMES[table.name], what)
        index_locations(connection, table, collation)


def has_marks(connection: sa.Connection, table: sa.Table = TABLES) -> bool:
    """Whether the rows of a table have marks."""
    return any(column["name"] == MARK for column in sa.inspect(connection).get_columns(table.name))


def lock_footprints(connection: sa.Connection, catalog_name: str, which: sa.ColumnElement[bool]) -> set[str]:
    """Lock footprints and return their metadata locations; before any row that has such a file, as who marks does."""
    query = sa.select(FOOTPRINTS.c.metadata_location).where(FOOTPRINTS.c.catalog_name == catalog_name, which)
    return set(connection.execute(query.with_for_update()).scalars())


def forget_unused(database: SqlDatabase, connection: sa.Connection, catalog_name: str, locked: Collection[str]) -> None:
    """Delete the locked footprints whose metadata file no row has.

    Who marks a row at the same time either came first, and is seen, or writes the footprint anew.
    """
    if not locked:
        return
    kept, location = FOOTPRINTS.c, FOOTPRINTS.c.metadata_location
    used = [
        sa.exists().where(
            table.c.catalog_name == catalog_name,
            database.by_bytes(indexed_location(table.c.metadata_location)) == indexed_location(location),
            table.c.metadata_location == location,
        )
        for table in (TABLES, BIN)
    ]
    connection.execute(
        sa.delete(FOOTPRINTS).where(kept.catalog_name == catalog_name, location.in_(locked), ~sa.or_(*used))
    )


def _current() -> str:
    return f"'{RULES_VERSION} ' || catalog_name || ' ' || metadata_location"


def _is_marked() -> str:
    """As a number, and not by `IS DISTINCT FROM`, of which PostgreSQL expects nearly all rows."""
    return f"CASE WHEN {MARK} = {_current()} THEN 1 ELSE 0 END"
