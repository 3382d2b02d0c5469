"""SHOW COLUMNS, TBLPROPERTIES, PARTITIONS and TABLE EXTENDED, with the columns of the official runtime."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.partition.paths import escape
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, IcebergType, ListType, MapType, NestedField, StructType
from bergline.quoting import dotted
from bergline.sql.grammar.properties import parse_property_key
from bergline.sql.grammar.spark_types import type_text
from bergline.sql.grammar.table_text import shown_properties
from bergline.sql.names.resolve import Lakes, ViewTarget
from bergline.sql.statements.describe import table_details
from bergline.sql.statements.show_names import matching, parse_namespace, shown_namespace, text_rows
from bergline.sql.statements.statement import LakeStatement, StatementKind
from bergline.sql.statements.views import shown_view_properties, view_property
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.tokens import Name, TokenKind
from bergline.table.table import Table

_TABLE = "a table name"


class ShowColumns(LakeStatement, frozen=True):
    """SHOW COLUMNS."""

    table: Name


class ShowProperties(LakeStatement, frozen=True):
    """SHOW TBLPROPERTIES, all or one."""

    table: Name
    key: str | None = None


class ShowPartitions(LakeStatement, frozen=True):
    """SHOW PARTITIONS; `values` are required values as text, by the name of the partition field."""

    table: Name
    values: dict[str, str | None] = msgspec.field(default_factory=dict)


class ShowTableExtended(LakeStatement, frozen=True):
    """SHOW TABLE EXTENDED: tables whose names match, each with all its details."""

    namespace: Name | None
    like: str


def parse_show_columns(cursor: Cursor) -> ShowColumns:
    """Parse what follows SHOW COLUMNS."""
    cursor.expect_one_of("IN", "FROM")
    table = cursor.expect_dotted_name(_TABLE)
    is_in = cursor.accept("IN") or cursor.accept("FROM")
    namespace = cursor.expect_dotted_name("a namespace's name") if is_in else ()
    cursor.subject = (*namespace, *table)
    cursor.expect_end()
    return ShowColumns(cursor.subject)


def parse_show_properties(cursor: Cursor) -> ShowProperties:
    """Parse what follows SHOW TBLPROPERTIES."""
    table = cursor.expect_subject(_TABLE)
    statement = ShowProperties(table, parse_property_key(cursor) if cursor.token.is_symbol("(") else None)
    cursor.expect_end()
    return statement


def parse_show_partitions(cursor: Cursor) -> ShowPartitions:
    """Parse what follows SHOW PARTITIONS."""
    table = cursor.expect_subject(_TABLE)
    statement = ShowPartitions(table, _values(cursor) if cursor.accept("PARTITION") else {})
    cursor.expect_end()
    return statement


def parse_show_table_extended(cursor: Cursor) -> ShowTableExtended:
    """Parse what follows SHOW TABLE EXTENDED."""
    namespace = parse_namespace(cursor)
    cursor.expect("LIKE")
    statement = ShowTableExtended(namespace, cursor.expect_text("a pattern in quotes"))
    if cursor.token.is_word("PARTITION"):
        raise UnsupportedError(
            "cannot show one partition of a lake table",
            hints=["SHOW PARTITIONS lists them, `t.partitions` describes them"],
        )
    cursor.expect_end()
    return statement


def _values(cursor: Cursor) -> dict[str, str | None]:
    """`(region = 'eu', ts_day = '2026-01-31')`: values as they are shown."""
    cursor.expect_symbol("(")
    values: dict[str, str | None] = {}
    while True:
        name = cursor.expect_name("the name of a partition field")
        cursor.expect_symbol("=")
        if cursor.accept("NULL"):
            values[name] = None
        elif cursor.token.kind in {TokenKind.STRING, TokenKind.NUMBER} or cursor.token.is_word("TRUE", "FALSE"):
            token = cursor.advance()
            values[name] = token.value if token.kind is TokenKind.STRING else token.text.lower()
        else:
            cursor.fail("a value: text, a number, `TRUE`, `FALSE`, `NULL`")
        if cursor.accept_symbol(")"):
            return values
        cursor.expect_symbol(",")


def show_columns(statement: ShowColumns, lakes: Lakes) -> pa.Table | None:
    """The names of a table's or view's columns."""
    table = lakes.resolve_table_or_view(statement.table)
    if table is None:
        return None
    schema = table.view.schema if isinstance(table, ViewTarget) else table.schema
    return text_rows(("col_name",), [(f.name,) for f in schema.fields])


def show_properties(statement: ShowProperties, lakes: Lakes) -> pa.Table | None:
    """A table's or view's properties, or one of them."""
    table = lakes.resolve_table_or_view(statement.table)
    if table is None:
        return None
    if isinstance(table, ViewTarget):
        key = statement.key
        pairs = shown_view_properties(table).items() if key is None else [(key, view_property(table, key))]
        return text_rows(("key", "value"), list(pairs))
    shown = shown_properties(table.metadata)
    if statement.key is None:
        return text_rows(("key", "value"), list(shown.items()))
    absent = f"Table {_full_name(statement.table, lakes)} does not have property: {statement.key}"
    return text_rows(("key", "value"), [(statement.key, shown.get(statement.key, absent))])


def show_partitions(statement: ShowPartitions, lakes: Lakes) -> pa.Table | None:
    """The partitions that have files, as `name=value/…`."""
    target = lakes.resolve(statement.table)
    if target is None:
        return None
    table, selector = target.table, target.selector
    if selector.metadata_table is not None:
        raise InvalidInputError(f"expected a table, found `{'.'.join(statement.table)}`")
    if table.spec.is_unpartitioned:
        message = f"expected a partitioned table, found `{table.name}`, which is not"
        raise InvalidInputError(message, condition="INVALID_PARTITION_OPERATION.PARTITION_MANAGEMENT_IS_UNSUPPORTED")
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


def _full_name(name: Name, lakes: Lakes) -> str:
    placed = lakes.place_existing(name)
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


SHOW_TABLE: tuple[StatementKind[Any], ...] = (
    StatementKind((ShowColumns,), {"SHOW COLUMNS": parse_show_columns}, show_columns),
    StatementKind((ShowProperties,), {"SHOW TBLPROPERTIES": parse_show_properties}, show_properties),
    StatementKind((ShowPartitions,), {"SHOW PARTITIONS": parse_show_partitions}, show_partitions),
    StatementKind((ShowTableExtended,), {"SHOW TABLE EXTENDED": parse_show_table_extended}, show_table_extended),
)
