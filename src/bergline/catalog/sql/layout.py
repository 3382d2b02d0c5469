"""The tables that Java's JDBC catalog, PyIceberg's SQL catalog and bergline share, and the statements on them."""

from collections.abc import Callable
from enum import Enum
from typing import Any, assert_never

import sqlalchemy as sa
from sqlalchemy import Column, MetaData, String, Table, or_

from bergline.catalog.identifiers import Namespace
from bergline.errors import InvalidInputError

SHARED = MetaData()

TABLES = Table(
    "iceberg_tables",
    SHARED,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
NAMESPACES = Table(
    "iceberg_namespace_properties",
    SHARED,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000), nullable=False),
)
NAMESPACE_INDEXES = {
    "bergline_tables_namespace": 'iceberg_tables (catalog_name, table_namespace COLLATE "C")',
    "bergline_namespaces_name": 'iceberg_namespace_properties (catalog_name, namespace COLLATE "C")',
}
"""Indexes of our own in PostgreSQL, in the order of bytes whatever the language of the database."""
VIEW_INDEX = (
    "bergline_views",
    "iceberg_tables (catalog_name, table_namespace, table_name) WHERE iceberg_type = 'VIEW'",
)
"""An index of our own: views are found among very many tables."""
_INDEXED_CHARACTERS = 500  # so many of any language fit into an index of PostgreSQL
LOCATION_INDEX = "bergline_tables_location"
"""An index of our own on metadata locations, made where servers keep the directories of tables apart."""
MAX_LOCATION_LENGTH = 1000
MAX_VALUE_LENGTH = 1000
EXISTS_KEY = "exists"
BEHIND_THE_DOT = chr(ord(".") + 1)
_NOT_THE_OWNER = "42501"
_END = "CAST(:end AS TEXT)"


class RowKind(Enum):
    """The type of a row; in the older layout, without a type column, every row is a table."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    ON_BRANCH = "STAGE"
    """A table that was created on a branch of the lake: in no list of tables before it is published."""
    UNTYPED = ""


def join_namespace(namespace: Namespace) -> str:
    """A namespace as stored; levels with dots are refused."""
    for level in namespace:
        if "." in level:
            raise InvalidInputError(
                f"expected levels of a namespace without dots, found `{level}`",
                hints=["catalogs in SQL keep levels joined by dots, a layout that they share with Java and PyIceberg"],
            )
    return ".".join(namespace)


def of_kind(kind: RowKind) -> sa.ColumnElement[bool]:
    """A condition for rows of one kind; rows without a type are tables."""
    match kind:
        case RowKind.TABLE:
            return or_(TABLES.c.iceberg_type == kind.value, TABLES.c.iceberg_type.is_(None))
        case RowKind.ON_BRANCH:
            return TABLES.c.iceberg_type == sa.literal(kind.value)
        case RowKind.VIEW:  # in words, not as a parameter, so that the index of views is used
            return TABLES.c.iceberg_type == sa.literal_column(f"'{kind.value}'")
        case RowKind.UNTYPED:
            return sa.true()
        case _:
            assert_never(kind)


def by_name(kind: RowKind) -> sa.ColumnElement[bool]:
    """A condition for a row that is found by its name: tables of branches are found as all tables are."""
    if kind in {RowKind.TABLE, RowKind.ON_BRANCH}:
        return or_(TABLES.c.iceberg_type != RowKind.VIEW.value, TABLES.c.iceberg_type.is_(None))
    return of_kind(kind)


def index_shared_table(connection: sa.Connection, name: str, what: str) -> None:
    """Create an index of our own, unless it is there; where the shared tables are not ours, we do without."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text("SELECT set_config('statement_timeout', '0', true)"))
    try:
        with connection.begin_nested():
            connection.execute(sa.text(f"CREATE INDEX IF NOT EXISTS {name} ON {what}"))
    except sa.exc.ProgrammingError as error:
        if getattr(error.orig, "sqlstate", None) != _NOT_THE_OWNER:
            raise


def starts_with(column: sa.ColumnElement[Any], prefix: str) -> sa.ColumnElement[bool]:
    """A condition for texts with a prefix, as a range: `column` sorts by bytes (`SqlDatabase.by_bytes`)."""
    return sa.and_(column >= prefix, column < f"{prefix[:-1]}{chr(ord(prefix[-1]) + 1)}")


def index_locations(connection: sa.Connection, collation: str) -> None:
    """Create the index on metadata locations."""
    start = f"(substr(metadata_location, 1, {_INDEXED_CHARACTERS}){collation})"
    index_shared_table(connection, LOCATION_INDEX, f"{TABLES.name} (catalog_name, {start})")


def metadata_below(
    by_bytes: Callable[[sa.ColumnElement[Any]], sa.ColumnElement[Any]], prefix: str
) -> sa.ColumnElement[bool]:
    """A condition for rows whose metadata location has a prefix; uses the index on them."""
    whole, indexed = TABLES.c.metadata_location, prefix[:_INDEXED_CHARACTERS]
    numbers: list[sa.ColumnElement[int]] = [sa.literal_column(f"{n}") for n in (1, _INDEXED_CHARACTERS)]  # as indexed
    found = starts_with(by_bytes(sa.func.substr(whole, *numbers)), indexed)
    return found if indexed == prefix else sa.and_(found, starts_with(by_bytes(whole), prefix))


def next_namespaces(*, descending: bool = False, collation: str = "", is_nested: bool = False) -> sa.TextClause:
    """Up to `most` namespaces of any rows after `start`, or before it, in the order of an index, or up to `end`.

    Each is looked up in the index, starting from the previous one, so that names are not read.
    """
    extreme, beyond = ("max", "<") if descending else ("min", ">")
    return sa.text(
        f"""
        WITH RECURSIVE found(name) AS (
            SELECT CAST(:start AS TEXT){collation}
            UNION ALL
            SELECT {_extreme_namespace(extreme, f"{beyond} found.name", collation, _END if is_nested else "")}
            FROM found WHERE found.name IS NOT NULL
        )
        SELECT name FROM found WHERE name IS NOT NULL LIMIT :most OFFSET 1
        """  # noqa: S608  (names of our own)
    )


def next_children(*, find: str, is_nested: bool, collation: str = "") -> sa.TextClause:
    """Up to `most` namespaces directly below one, in byte order, each found by one or two steps in an index.

    They are between `start` and, if nested, `end`; their first `skipped` characters name the parent. A row is a child
    and whether it has rows of its own; one that only its descendants show comes in their place. `find` is the
    database's function for the position of a text in another, `behind` the least character.
    """
    dot = f"{find}(substr(name, :skipped + 1), '.')"
    child = f"CASE WHEN {dot} = 0 THEN name ELSE substr(name, 1, :skipped + {dot} - 1) END"
    bound = f"CASE WHEN {dot} = 0 THEN name || CAST(:behind AS TEXT) ELSE ({child}) || '{BEHIND_THE_DOT}' END"
    end = _END if is_nested else ""
    return sa.text(
        f"""
        WITH RECURSIVE walk(name) AS (
            SELECT {_extreme_namespace("min", ">= CAST(:start AS TEXT)", collation, end)}
            UNION ALL
            SELECT {_extreme_namespace("min", f">= ({bound})", collation, end)} FROM walk WHERE name IS NOT NULL
        )
        SELECT child, is_own FROM (
            SELECT {child} AS child, {dot} = 0 AS is_own FROM walk WHERE name IS NOT NULL
        ) AS children
        WHERE is_own OR {_extreme_namespace("min", ">= child", collation)} <> child
        LIMIT :most
        """  # noqa: S608  (names of our own)
    )


def _extreme_namespace(extreme: str, condition: str, collation: str, end: str = "") -> str:
    """The first or last namespace of any rows that meets a condition, as a subquery."""
    sides = [
        f"SELECT {extreme}({column}{collation}) AS one FROM {table.name} "  # noqa: S608  (names of our own)
        f"WHERE catalog_name = :catalog AND {column}{collation} {condition}"
        + (f" AND {column}{collation} < {end}" if end else "")
        for table, column in ((TABLES, "table_namespace"), (NAMESPACES, "namespace"))
    ]
    return f"(SELECT {extreme}(one) FROM ({' UNION ALL '.join(sides)}) AS either)"  # noqa: S608
