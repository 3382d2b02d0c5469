"""DESCRIBE and SHOW CREATE TABLE, with the rows of the official runtime."""

from typing import Any

import pyarrow as pa

from bergline.datafiles.file.arrow_schema import schema_from_arrow
from bergline.datafiles.read.changelog import changelog_schema
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.partition.transforms import Identity, Void
from bergline.format.schema.reserved import (
    DELETED,
    FILE,
    LAST_UPDATED_SEQUENCE_NUMBER,
    POS,
    ROW_ID,
    SPEC_ID,
    partition_column,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import StructType
from bergline.quoting import dotted, quoted_text
from bergline.sql.grammar.spark_types import column_text, default_size, type_text
from bergline.sql.grammar.table_text import default_text, partition_terms, shown_properties
from bergline.sql.names.resolve import Lakes, Target, ViewTarget
from bergline.sql.names.selector import CHANGES
from bergline.sql.statements.namespaces import NAMESPACE_WORDS
from bergline.sql.statements.statement import LakeStatement, StatementKind
from bergline.sql.statements.views import create_view_text, view_rows
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, TokenKind
from bergline.table.scans.partition_union import partition_union
from bergline.table.table import Table

_COLUMNS = pa.schema(
    [
        pa.field("col_name", pa.string(), nullable=False),
        pa.field("data_type", pa.string(), nullable=False),
        pa.field("comment", pa.string()),
    ]
)
_ENGINE = ("engine-name", "engine-version")
_NO_METRICS = {"operation", *_ENGINE}
_HISTORY = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("operation", pa.string()),
        pa.field("readVersion", pa.int64()),
        pa.field("refs", pa.list_(pa.string())),
        pa.field("operationMetrics", pa.map_(pa.string(), pa.string())),
        pa.field("engineInfo", pa.string()),
    ]
)
_ROW_LINEAGE = 3
_EMPTY = ("", "", "")
_SHOWN_FIRST = ("comment", "location", "owner")
Row = tuple[str, str, str | None]


_OTHER_DESCRIPTIONS = ("FUNCTION", "QUERY", "CATALOG", "PROCEDURE", "DETAIL")
_QUERIES = ("SELECT", "WITH", "FROM", "VALUES")
_TABLE = "a table name"


class DescribeTable(LakeStatement, frozen=True):
    """DESCRIBE TABLE, or of one column."""

    table: Name
    extended: bool = False
    column: str | None = None


class DescribeNamespace(LakeStatement, frozen=True):
    """DESCRIBE NAMESPACE."""

    namespace: Name
    extended: bool = False


class DescribeHistory(LakeStatement, frozen=True):
    """DESCRIBE HISTORY, or its newest rows."""

    table: Name
    limit: int | None = None


class ShowCreateTable(LakeStatement, frozen=True):
    """SHOW CREATE TABLE."""

    table: Name


def parse_describe(cursor: Cursor) -> DescribeTable | DescribeNamespace | DescribeHistory | None:
    """Parse what follows DESCRIBE, for tables and namespaces; None for anything else."""
    if cursor.token.is_word(*_QUERIES):
        return None
    names_more = cursor.following.kind in {TokenKind.WORD, TokenKind.QUOTED}
    if names_more and cursor.token.is_word(*_OTHER_DESCRIPTIONS):
        return None
    if names_more and cursor.accept("HISTORY"):
        history = cursor.expect_subject(_TABLE)
        limit = cursor.expect_whole_number() if cursor.accept("LIMIT") else None
        cursor.expect_end(*(() if limit is not None else ("`LIMIT`",)))
        return DescribeHistory(history, limit)
    if names_more and any(cursor.accept(word) for word in NAMESPACE_WORDS):
        extended = cursor.accept("EXTENDED")
        namespace = cursor.expect_subject("a namespace's name")
        cursor.expect_end()
        return DescribeNamespace(namespace, extended)
    if names_more:
        cursor.accept("TABLE")
    extended = False
    if cursor.following.kind in {TokenKind.WORD, TokenKind.QUOTED}:
        extended = cursor.accept("EXTENDED") or cursor.accept("FORMATTED")
    table = cursor.expect_subject(_TABLE)
    if cursor.is_at("PARTITION") and cursor.following.is_symbol("("):
        raise UnsupportedError(
            "cannot describe one partition of a lake's table",
            hints=[f"`{'.'.join(table)}.partitions` has rows, files and sizes of each; SHOW PARTITIONS lists them"],
        )
    column = ".".join(cursor.expect_dotted_name("a column's name")) if cursor.is_at_name else None
    cursor.expect_end(*(() if column else ("a column's name",)))
    return DescribeTable(table, extended, column)


def parse_show_create_table(cursor: Cursor) -> ShowCreateTable:
    """Parse what follows SHOW CREATE TABLE."""
    table = cursor.expect_subject(_TABLE)
    cursor.expect_end()
    return ShowCreateTable(table)


def describe(statement: DescribeTable | DescribeNamespace | DescribeHistory, lakes: Lakes) -> pa.Table | None:
    """What is known of a table, a column, a namespace, or what was done to a table."""
    match statement:
        case DescribeNamespace():
            return describe_namespace(statement, lakes)
        case DescribeHistory():
            return describe_history(statement, lakes)
    return describe_table(statement, lakes)


def describe_history(statement: DescribeHistory, lakes: Lakes) -> pa.Table | None:
    """The snapshots of a table, or those of a branch or tag, newest first; each can be read by its version."""
    target = lakes.resolve(statement.table)
    if target is None:
        return None
    table, name = target.table, target.selector.branch or target.selector.ref
    if target.selector.metadata_table is not None:
        raise InvalidInputError(f"expected a table to describe the history of, found `{'.'.join(statement.table)}`")
    if name is None:
        snapshots = sorted(table.metadata.snapshots, key=lambda s: (s.sequence_number, s.timestamp_ms), reverse=True)
    else:
        snapshots = list(table.metadata.ancestors(table.metadata.ref(name).snapshot_id))
    named: dict[int, list[str]] = {}
    for ref, points_to in table.metadata.refs.items():
        named.setdefault(points_to.snapshot_id, []).append(ref)
    rows = [
        {
            "version": s.snapshot_id,
            "timestamp": s.timestamp_ms * 1000,
            "operation": s.operation,
            "readVersion": s.parent_snapshot_id,
            "refs": sorted(named.get(s.snapshot_id, ())),
            "operationMetrics": [(k, v) for k, v in s.summary.items() if k not in _NO_METRICS],
            "engineInfo": " ".join(s.summary[k] for k in _ENGINE if k in s.summary) or None,
        }
        for s in snapshots[: statement.limit]
    ]
    return pa.Table.from_pylist(rows, schema=_HISTORY)


def describe_table(statement: DescribeTable, lakes: Lakes) -> pa.Table | None:
    """A table's or view's columns, a table's partitions, and with EXTENDED all its details; or one column."""
    target = lakes.resolve_relation(statement.table)
    if target is None:
        return None
    schema = target.view.schema if isinstance(target, ViewTarget) else _schema(target)
    if statement.column is not None:
        return _describe_column(schema, statement.column)
    if isinstance(target, ViewTarget):
        return _table(view_rows(target, extended=statement.extended), _COLUMNS)
    rows: list[Row] = [(f.name, type_text(f.type), f.doc) for f in schema.fields]
    if target.selector.metadata_table is None:
        rows += _partitioning(target.table)
        if statement.extended:
            rows += [*_metadata_columns(target.table), *_details(target.table, _full_name(statement.table, lakes))]
    return _table(rows, _COLUMNS)


def describe_namespace(statement: DescribeNamespace, lakes: Lakes) -> pa.Table | None:
    """A namespace's name, comment, location and owner, and with EXTENDED its other properties."""
    placed = lakes.place_namespace(statement.namespace)
    if placed is None:
        return None
    lake, namespace = placed
    if not namespace:
        raise InvalidInputError(f"expected a namespace, found the lake `{'.'.join(statement.namespace)}`")
    properties = lake.namespace_properties(namespace)
    rows = [("Catalog Name", lakes.name_of(lake)), ("Namespace Name", dotted(namespace))]
    rows += [(key.capitalize(), properties[key]) for key in _SHOWN_FIRST if key in properties]
    if statement.extended:
        others = sorted((k, v) for k, v in properties.items() if k not in _SHOWN_FIRST)
        rows.append(("Properties", f"({', '.join(f'({k},{v})' for k, v in others)})" if others else ""))
    schema = pa.schema([pa.field("info_name", pa.string(), nullable=False), pa.field("info_value", pa.string())])
    return _table(rows, schema)


def show_create_table(statement: ShowCreateTable, lakes: Lakes) -> pa.Table | None:
    """The statement that would create the table or view."""
    schema = pa.schema([pa.field("createtab_stmt", pa.string(), nullable=False)])
    table = lakes.resolve_table_or_view(statement.table)
    if table is None:
        return None
    if isinstance(table, ViewTarget):
        return _table([(create_view_text(table),)], schema)
    columns = ",\n  ".join(column_text(f, default=default_text) for f in table.schema.fields)
    lines = [f"CREATE TABLE {dotted(_full_name(statement.table, lakes))} (\n  {columns})", "USING iceberg"]
    if terms := partition_terms(table.metadata):
        lines.append(f"PARTITIONED BY ({', '.join(terms)})")
    if comment := table.properties.get("comment"):
        lines.append(f"COMMENT {quoted_text(comment)}")
    lines.append(f"LOCATION {quoted_text(table.location)}")
    properties = ",\n  ".join(
        f"{quoted_text(k)} = {quoted_text(v)}" for k, v in shown_properties(table.metadata).items()
    )
    lines.append(f"TBLPROPERTIES (\n  {properties})\n")
    return _table([("\n".join(lines),)], schema)


def _schema(target: Target) -> Schema:
    """The columns of a table, or of its metadata table."""
    name = target.selector.metadata_table
    if name == CHANGES:
        return changelog_schema(target.table.schema)
    return target.table.schema if name is None else schema_from_arrow(target.table.inspect(name).schema)


def _describe_column(schema: Schema, name: str) -> pa.Table:
    field = schema.find(name)
    if field not in schema.fields:
        raise InvalidInputError(f"expected a column to describe, found `{name}` inside another one")
    rows = [("col_name", field.name), ("data_type", type_text(field.type)), ("comment", field.doc or "NULL")]
    names = ("info_name", "info_value")
    return _table(rows, pa.schema([pa.field(n, pa.string(), nullable=False) for n in names]))


def _partitioning(table: Table) -> list[Row]:
    fields = [f for f in table.spec.fields if not isinstance(f.transform, Void)]
    if not fields:
        return []
    sources = [table.schema.ids[f.source_id] for f in fields]
    if all(isinstance(f.transform, Identity) for f in fields):
        shown: list[Row] = [(s.name, type_text(s.type), s.doc) for s in sources]
        return [("# Partition Information", "", ""), ("# col_name", "data_type", "comment"), *shown]
    parts: list[Row] = [(f"Part {n}", term, "") for n, term in enumerate(partition_terms(table.metadata))]
    return [_EMPTY, ("# Partitioning", "", ""), *parts]


def _metadata_columns(table: Table) -> list[Row]:
    columns = [SPEC_ID, partition_column(partition_union(table.metadata)), FILE, POS, DELETED]
    if table.metadata.format_version >= _ROW_LINEAGE:
        columns += [ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER]
    shown: list[Row] = [(f.name, type_text(f.type), "") for f in columns]
    return [_EMPTY, ("# Metadata Columns", "", ""), *shown]


def table_details(table: Table) -> list[tuple[str, str]]:
    """The details of a table besides its name and columns."""
    properties = table.properties
    pairs = ",".join(f"{k}={v}" for k, v in shown_properties(table.metadata).items())
    rows = [("Type", "MANAGED")]
    if "comment" in properties:
        rows.append(("Comment", properties["comment"]))
    rows += [("Location", table.location), ("Provider", "iceberg")]
    if "owner" in properties:
        rows.append(("Owner", properties["owner"]))
    return [*rows, ("Table_type", "EXTERNAL"), ("Table Properties", f"[{pairs}]")]


def _details(table: Table, name: Name) -> list[Row]:
    details: list[Row] = [(key, value, "") for key, value in [("Name", dotted(name)), *table_details(table)]]
    return [_EMPTY, ("# Detailed Table Information", "", ""), *details, ("Statistics", _statistics(table), None)]


def _statistics(table: Table) -> str:
    """How many rows there are by the snapshot's summary, and about how many bytes they take in Spark."""
    snapshot = table.current_snapshot
    rows = 0 if snapshot is None else int(snapshot.summary.get("total-records", "0"))
    return f"{rows * default_size(StructType(table.schema.fields))} bytes, {rows} rows"


def _full_name(name: Name, lakes: Lakes) -> Name:
    placed = lakes.place_existing(name)
    if placed is None:
        raise NotFoundError(f"no table `{'.'.join(name)}`", kind="table", name=".".join(name))
    return lakes.name_of(placed[0]), *placed[1]


def _table(rows: list[Row] | list[tuple[str, str]] | list[tuple[str]], schema: pa.Schema) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema=schema)


DESCRIBE: tuple[StatementKind[Any], ...] = (
    StatementKind(
        (DescribeTable, DescribeNamespace, DescribeHistory),
        {"DESCRIBE": parse_describe, "DESC": parse_describe},
        describe,
    ),
    StatementKind((ShowCreateTable,), {"SHOW CREATE TABLE": parse_show_create_table}, show_create_table),
)
