"""SHOW, with the columns of the official runtime."""

import re
from typing import assert_never

import pyarrow as pa

from bergline.catalog.identifiers import Namespace
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.partition_text import escape
from bergline.lake import Lake
from bergline.sql.describe import describe_namespace, describe_table, show_create_table
from bergline.sql.quoting import dotted
from bergline.sql.resolve import Lakes
from bergline.sql.show_statements import (
    DescribeNamespace,
    DescribeTable,
    Show,
    ShowColumns,
    ShowCreateTable,
    ShowCurrentNamespace,
    ShowNamespaces,
    ShowPartitions,
    ShowProperties,
    ShowTables,
)
from bergline.sql.table_text import shown_properties


def run_show(statement: Show, lakes: Lakes) -> pa.Table | None:
    """What the statement shows; None if it is about something that is not ours."""
    match statement:
        case ShowCurrentNamespace():
            return _current_namespace(lakes)
        case ShowNamespaces():
            return _namespaces(statement, lakes)
        case ShowTables():
            return _tables(statement, lakes)
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


def matching(names: list[str], pattern: str | None) -> list[str]:
    """The names that a pattern matches: `*` stands for anything, `|` parts alternatives, case does not count."""
    if pattern is None:
        return names
    parts = [".*".join(re.escape(piece) for piece in part.strip().split("*")) for part in pattern.split("|")]
    wanted = re.compile("|".join(parts), re.IGNORECASE | re.DOTALL)
    return [name for name in names if wanted.fullmatch(name)]


def child_namespaces(lake: Lake, below: Namespace) -> list[Namespace]:
    """The namespaces directly in another one, () for the first level."""
    found = lake.catalog.list_namespaces(below)
    return sorted({n[: len(below) + 1] for n in found if len(n) > len(below)})


def _current_namespace(lakes: Lakes) -> pa.Table | None:
    if lakes.current.lake is None:
        return None
    return _text(("catalog", "namespace"), [(lakes.default_name, dotted(lakes.current.namespace))])


def _namespaces(statement: ShowNamespaces, lakes: Lakes) -> pa.Table | None:
    """Those of the lake in use; before any USE, the default lake's and the engine's, which can all be named."""
    if statement.below is None:
        names = [dotted(n) for n in child_namespaces(lakes.default, ())]
        if lakes.current.lake is None:
            names += [name for name in lakes.surroundings.namespaces() if name not in names]
    else:
        placed = lakes.place_namespace(statement.below)
        if placed is None:
            return None
        lake, below = placed
        if below:
            lake.namespace_properties(below)
        names = [dotted(n) for n in child_namespaces(lake, below)]
    return _text(("namespace",), [(name,) for name in matching(names, statement.like)])


def _tables(statement: ShowTables, lakes: Lakes) -> pa.Table | None:
    if statement.namespace is None:
        if not lakes.current.namespace:
            return None
        lake, namespace = lakes.default, lakes.current.namespace
    else:
        placed = lakes.place_namespace(statement.namespace)
        if placed is None:
            return None
        lake, namespace = placed
    names = sorted(t.name for t in lake.catalog.list_tables(namespace)) if namespace else []
    shown = matching(names, statement.like)
    return pa.table(
        {
            "namespace": pa.array([dotted(namespace)] * len(shown), pa.string()),
            "tableName": pa.array(shown, pa.string()),
            "isTemporary": pa.array([False] * len(shown), pa.bool_()),
        },
        schema=pa.schema(
            [
                pa.field("namespace", pa.string(), nullable=False),
                pa.field("tableName", pa.string(), nullable=False),
                pa.field("isTemporary", pa.bool_(), nullable=False),
            ]
        ),
    )


def _columns(statement: ShowColumns, lakes: Lakes) -> pa.Table | None:
    table = lakes.resolve_table(statement.table)
    return None if table is None else _text(("col_name",), [(f.name,) for f in table.schema.fields])


def _properties(statement: ShowProperties, lakes: Lakes) -> pa.Table | None:
    table = lakes.resolve_table(statement.table)
    if table is None:
        return None
    shown = shown_properties(table.metadata)
    if statement.key is None:
        return _text(("key", "value"), list(shown.items()))
    absent = f"Table {_full_name(statement.table, lakes)} does not have property: {statement.key}"
    return _text(("key", "value"), [(statement.key, shown.get(statement.key, absent))])


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
    return _text(("partition",), [(path,) for path in shown])


def _full_name(name: tuple[str, ...], lakes: Lakes) -> str:
    placed = lakes.place(name)
    return ".".join(name) if placed is None else dotted((lakes.name_of(placed[0]), *placed[1]))


def _text(names: tuple[str, ...], rows: list[tuple[str, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    fields = [pa.field(name, pa.string(), nullable=False) for name in names]
    return pa.table([pa.array(column, pa.string()) for column in columns], schema=pa.schema(fields))
