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


class RowKind(Enum):
    """What a row is; in the older layout, which has no column for it, every row is a table."""

    TABLE = "TABLE"
    VIEW = "VIEW"
    UNTYPED = ""


def join_namespace(namespace: Namespace) -> str:
    """A namespace as the layout stores it; a level with a dot would read as two."""
    for level in namespace:
        if "." in level:
            raise InvalidInputError(f"expected levels of a namespace without dots, found `{level}`")
    return ".".join(namespace)


def of_kind(kind: RowKind) -> sa.ColumnElement[bool]:
    """Picks rows of one kind; rows without a type are tables."""
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
    """Picks rows of a namespace and of all below it; all rows for the empty one."""
    if not namespace:
        return sa.true()
    name = join_namespace(namespace)
    # not LIKE, which takes small and capital letters for the same in SQLite
    return or_(column == name, sa.func.substr(column, 1, len(name) + 1) == f"{name}.")
