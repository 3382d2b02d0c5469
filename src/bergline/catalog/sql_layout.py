"""The tables that Java's JDBC catalog, PyIceberg's SQL catalog and bergline share, and the statements on them."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, MetaData, String, Table, and_, or_

from bergline.catalog.identifiers import Namespace, TableName

_METADATA = MetaData()

TABLES = Table(
    "iceberg_tables",
    _METADATA,
    Column("catalog_name", String(255), primary_key=True),
    Column("table_namespace", String(255), primary_key=True),
    Column("table_name", String(255), primary_key=True),
    Column("metadata_location", String(1000)),
    Column("previous_metadata_location", String(1000)),
    Column("iceberg_type", String(5)),
)
NAMESPACES = Table(
    "iceberg_namespace_properties",
    _METADATA,
    Column("catalog_name", String(255), primary_key=True),
    Column("namespace", String(255), primary_key=True),
    Column("property_key", String(255), primary_key=True),
    Column("property_value", String(1000), nullable=False),
)
MAX_LOCATION_LENGTH = 1000
EXISTS_KEY = "exists"


def create_layout(connection: sa.Connection) -> None:
    """Create the tables that are missing."""
    _METADATA.create_all(connection)


def has_type_column(connection: sa.Connection) -> bool:
    """Whether the layout is the newer one, with a column that tells tables from views."""
    return any(c["name"] == "iceberg_type" for c in sa.inspect(connection).get_columns(TABLES.name))


def join_namespace(namespace: Namespace) -> str:
    """A namespace as the layout stores it."""
    return ".".join(namespace)


def table_row(catalog: str, table: TableName, *, typed: bool) -> sa.ColumnElement[bool]:
    """Picks the row of one table, never that of a view."""
    row = and_(
        TABLES.c.catalog_name == catalog,
        TABLES.c.table_namespace == join_namespace(table.namespace),
        TABLES.c.table_name == table.name,
    )
    return and_(row, is_table()) if typed else row


def is_table() -> sa.ColumnElement[bool]:
    """Rows of tables; older rows have no type."""
    return or_(TABLES.c.iceberg_type == "TABLE", TABLES.c.iceberg_type.is_(None))


def namespace_or_below(column: sa.ColumnElement[Any], namespace: Namespace) -> sa.ColumnElement[bool]:
    """Rows of a namespace and of all below it."""
    name = join_namespace(namespace)
    escaped = name.replace("!", "!!").replace("_", "!_").replace("%", "!%")
    return or_(column == name, column.like(f"{escaped}.%", escape="!"))
