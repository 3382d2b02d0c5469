"""SHOW, with the columns of the official runtime."""

from collections.abc import Iterator
from typing import assert_never

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.partition.paths import escape
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, IcebergType, ListType, MapType, NestedField, StructType
from bergline.quoting import dotted
from bergline.sql.names.resolve import Lakes
from bergline.sql.parse.spark_types import type_text
from bergline.sql.run.describe import describe_namespace, describe_table, show_create_table, table_details
from bergline.sql.run.show_names import (
    matching,
    show_catalogs,
    show_namespaces,
    show_procedures,
    show_tables,
    show_views,
    shown_namespace,
    text_rows,
)
from bergline.sql.statements.show_statements import (
    DescribeNamespace,
    DescribeTable,
    Show,
    ShowCatalogs,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowPartitions,
    ShowProcedures,
    ShowProperties,
    ShowTableExtended,
    ShowTables,
    ShowViews,
)
from bergline.sql.text.table_text import shown_properties
from bergline.table.table import Table


def run_show(statement: Show, lakes: Lakes) -> pa.Table | None:
    """What the statement shows; None if it is about something that is not ours."""
    match statement:
        case ShowCurrentNamespace():
            return _current_namespace(lakes)
        case ShowNamespaces():
            return show_namespaces(statement, lakes)
        case ShowTables():
            return show_tables(statement, lakes)
        case ShowTableExtended():
            return show_table_extended(statement, lakes)
        case ShowViews():
            return show_views(statement, lakes)
        case ShowCatalogs():
            return show_catalogs(statement, lakes)
        case ShowProcedures():
            return show_procedures(statement, lakes)
        case ShowColumns():
            return _columns(statement, lakes)
        case ShowCreateTable():
            return show_create_table(statement, lakes)
        case ShowProperties():
            return _properties(statement, lakes)
        case ShowPartitions():
            return _partitions(statement, lakes)
        case DescribeTable():
            return describe_table(statement, lakes)
        case DescribeNamespace():
            return describe_namespace(statement, lakes)
    assert_never(statement)


def _current_namespace(lakes: Lakes) -> pa.Table | None:
    if lakes.current.lake is None:
        return None
    return text_rows(("catalog", "namespace"), [(lakes.default_name, dotted(lakes.current.namespace))])


def _columns(statement: ShowColumns, lakes: Lakes) -> pa.Table | None:
    table = lakes.resolve_table(statement.table)
    return None if table is None else text_rows(("col_name",), [(f.name,) for f in table.schema.fields])


def _properties(statement: ShowProperties, lakes: Lakes) -> pa.Table | None:
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    shown = shown_properties(table.metadata)
    if statement.key is None:
        return text_rows(("key", "value"), list(shown.items()))
    absent = f"Table {_full_name(statement.table, lakes)} does not have property: {statement.key}"
    return text_rows(("key", "value"), [(statement.key, shown.get(statement.key, absent))])


def _partitions(statement: ShowPartitions, lakes: Lakes) -> pa.Table | None:
    """The partitions that have files, as `name=value/…`."""
    target = lakes.resolve(statement.table)
    if target is None:
        return None
    table, selector = target.table, target.selector
    if selector.metadata_table is not None:
        raise InvalidInputError(f"expected a table, found `{'.'.join(statement.table)}`")
    if table.spec.is_unpartitioned:
        raise InvalidInputError(f"expected a partitioned table, found `{table.name}`, which is not")
    known = {f.name for spec in table.metadata.partition_specs for f in spec.fields}
    for name in statement.values:
        if name not in known:
            raise NotFoundError(
                f"no partition field `{name}` of `{table.name}`", kind="partition field", name=name, known=known
            )
    ref = selector.branch or selector.ref
    scan = table.scan(ref=ref, snapshot_id=selector.snapshot_id, as_of_ms=selector.as_of_ms)
    specs = {spec.spec_id: spec for spec in table.metadata.partition_specs}
    partitions = {(planned.file.spec_id, tuple(planned.file.partition)) for planned in scan.plan().files}
    paths = sorted({specs[spec_id].partition_path(table.schema, values) for spec_id, values in partitions})
    wanted = [f"{escape(name)}={escape(value or 'null')}" for name, value in statement.values.items()]
    shown = [path for path in paths if all(part in path.split("/") for part in wanted)]
    return text_rows(("partition",), [(path,) for path in shown])


def _full_name(name: tuple[str, ...], lakes: Lakes) -> str:
    placed = lakes.place(name)
    return ".".join(name) if placed is None else dotted((lakes.name_of(placed[0]), *placed[1]))


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


_NAMES: dict[IcebergType, str] = {INT: "integer", LONG: "long"}


def schema_tree(schema: Schema) -> str:
    """The tree, which ends in a line break."""
    return "".join(f"{line}\n" for line in ["root", *_fields(schema.fields, " |")])


def _fields(fields: tuple[NestedField, ...], indent: str) -> Iterator[str]:
    for field in fields:
        yield f"{indent}-- {field.name}: {_name(field.type)} (nullable = {_word(not field.required)})"
        yield from _inside(field.type, f"{indent}    |")


def _inside(type_: IcebergType, indent: str) -> Iterator[str]:
    match type_:
        case StructType(fields):
            yield from _fields(fields, indent)
        case ListType(_, element, required):
            yield f"{indent}-- element: {_name(element)} (containsNull = {_word(not required)})"
            yield from _inside(element, f"{indent}    |")
        case MapType(_, key, _, value, required):
            yield f"{indent}-- key: {_name(key)}"
            yield from _inside(key, f"{indent}    |")
            yield f"{indent}-- value: {_name(value)} (valueContainsNull = {_word(not required)})"
            yield from _inside(value, f"{indent}    |")


def _name(type_: IcebergType) -> str:
    match type_:
        case StructType():
            return "struct"
        case ListType():
            return "array"
        case MapType():
            return "map"
    return _NAMES.get(type_) or type_text(type_)


def _word(value: bool) -> str:
    return str(value).lower()
