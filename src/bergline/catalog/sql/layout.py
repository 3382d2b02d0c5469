"""The tables that Java's JDBC catalog, PyIceberg's SQL catalog and bergline share, and the statements on them."""

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
MAX_LOCATION_LENGTH = 1000
MAX_VALUE_LENGTH = 1000
EXISTS_KEY = "exists"
_BEHIND_THE_DOT = chr(ord(".") + 1)


class RowKind(Enum):
    """The type of a row; in the older layout, without a type column, every row is a table."""

    TABLE = "TABLE"
    VIEW = "VIEW"
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
        case RowKind.VIEW:
            return sa.and_(TABLES.c.iceberg_type == kind.value)
        case RowKind.UNTYPED:
            return sa.true()
        case _:
            assert_never(kind)


def namespace_or_below(column: sa.ColumnElement[Any], namespace: Namespace) -> sa.ColumnElement[bool]:
    """A condition for rows of a namespace and all below it; all rows for the empty one."""
    if not namespace:
        return sa.true()
    return or_(column == join_namespace(namespace), namespace_below(column, namespace, in_byte_order=False))


def namespace_below(
    column: sa.ColumnElement[Any], namespace: Namespace, *, in_byte_order: bool
) -> sa.ColumnElement[bool]:
    """A condition for rows below a namespace; uses the index if the database sorts text by bytes."""
    name = join_namespace(namespace)
    # not LIKE, which is case-insensitive in SQLite
    starts_so = sa.func.substr(column, 1, len(name) + 1) == f"{name}."
    if not in_byte_order:
        return starts_so
    return sa.and_(column >= f"{name}.", column < f"{name}{_BEHIND_THE_DOT}", starts_so)


def next_namespaces(*, descending: bool = False) -> sa.TextClause:
    """Up to `most` namespaces of any rows after `start`, or before it, in the database's order.

    Each is looked up in the primary key index, starting from the previous one, so that names are not read.
    """
    extreme, beyond = ("max", "<") if descending else ("min", ">")
    return sa.text(
        f"""
        WITH RECURSIVE found(name) AS (
            SELECT CAST(:start AS TEXT)
            UNION ALL
            SELECT (
                SELECT {extreme}(one) FROM (
                    SELECT {extreme}(table_namespace) AS one FROM {TABLES.name}
                    WHERE catalog_name = :catalog AND table_namespace {beyond} found.name
                    UNION ALL
                    SELECT {extreme}(namespace) AS one FROM {NAMESPACES.name}
                    WHERE catalog_name = :catalog AND namespace {beyond} found.name
                ) AS either
            )
            FROM found WHERE found.name IS NOT NULL
        )
        SELECT name FROM found WHERE name IS NOT NULL LIMIT :most OFFSET 1
        """  # noqa: S608  (names of our own)
    )
