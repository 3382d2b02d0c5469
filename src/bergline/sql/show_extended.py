"""SHOW TABLE EXTENDED: each table with all about it, as one text."""

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError
from bergline.sql.describe import table_details
from bergline.sql.quoting import dotted
from bergline.sql.resolve import Lakes
from bergline.sql.schema_tree import schema_tree
from bergline.sql.show_names import matching, shown_namespace
from bergline.sql.show_statements import ShowTableExtended
from bergline.table.table import Table

_COLUMNS = pa.schema(
    [
        pa.field("namespace", pa.string(), nullable=False),
        pa.field("tableName", pa.string(), nullable=False),
        pa.field("isTemporary", pa.bool_(), nullable=False),
        pa.field("information", pa.string(), nullable=False),
    ]
)


def show_table_extended(statement: ShowTableExtended, lakes: Lakes) -> pa.Table | None:
    """The tables of a namespace whose names match."""
    placed = shown_namespace(statement.namespace, lakes)
    if placed is None:
        return None
    lake, namespace = placed
    if not namespace:
        raise InvalidInputError(f"expected a namespace, found the lake `{dotted(statement.namespace or ())}`")
    names = sorted(t.name for t in lake.catalog.list_tables(namespace))
    rows = [
        {
            "namespace": dotted(namespace),
            "tableName": name,
            "isTemporary": False,
            "information": _information(lake.load_table(TableName(namespace, name)), lakes.name_of(lake)),
        }
        for name in matching(names, statement.like)
    ]
    return pa.Table.from_pylist(rows, schema=_COLUMNS)


def _information(table: Table, lake: str) -> str:
    name = table.name
    lines = [("Catalog", lake), ("Namespace", dotted(name.namespace)), ("Table", name.name), *table_details(table)]
    return "\n".join(f"{key}: {value}" for key, value in lines) + f"\nSchema: {schema_tree(table.schema)}\n"
