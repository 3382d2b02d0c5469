"""SHOW, with the columns of the official runtime."""

from typing import assert_never

import pyarrow as pa

from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.partition_text import escape
from bergline.sql.describe import describe_namespace, describe_table, show_create_table
from bergline.sql.quoting import dotted
from bergline.sql.resolve import Lakes
from bergline.sql.show_extended import show_table_extended
from bergline.sql.show_names import (
    show_catalogs,
    show_namespaces,
    show_procedures,
    show_tables,
    show_views,
    text_rows,
)
from bergline.sql.show_statements import (
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
from bergline.sql.table_text import shown_properties


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
