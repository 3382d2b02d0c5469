"""Carries out CREATE, REPLACE and DROP TABLE."""

import contextlib
from collections.abc import Iterable, Iterator
from itertools import count

import pyarrow as pa

from bergline.catalog.identifiers import TableName
from bergline.errors import InvalidInputError, NotFoundError, UnsupportedError
from bergline.format.metadata.properties import asked_format_version
from bergline.format.metadata.table_metadata import DEFAULT_FORMAT_VERSION
from bergline.format.schema.schema import Schema, fresh_type
from bergline.format.types.defaults import encode_default
from bergline.format.types.types import NestedField
from bergline.lake.lake import Lake
from bergline.sql.names.resolve import Lakes, new_table_name
from bergline.sql.parse.literals import default_value
from bergline.sql.statements.statements import Name
from bergline.sql.statements.table_statements import ColumnDefinition, CreateTable, DropTable
from bergline.table.evolution.column_arguments import plain_default
from bergline.table.scans.version import BranchRead
from bergline.table.table import Table

NO_ROWS = pa.table({})


def create_table(statement: CreateTable, lakes: Lakes, *, time_zone: str) -> pa.Table | None:
    """A new or replaced table without rows; None if it is not ours."""
    placed = place_new_table(statement, lakes)
    if placed is None:
        return None
    lake, name = placed
    ids = count(1)
    version = asked_format_version(statement.properties, DEFAULT_FORMAT_VERSION)
    schema = Schema(fields=tuple(_field(column, ids, time_zone, version) for column in statement.columns))
    if statement.replaces:
        check_exists(statement, lake, name)
        with staged(statement, lakes, placed, schema):
            pass
        return NO_ROWS
    _check_distinct_names(schema)
    lake.create_table(
        name,
        schema,
        partition_by=statement.partition_by,
        properties=_properties(statement, lakes),
        location=statement.location,
        if_not_exists=statement.if_not_exists,
    )
    return NO_ROWS


def place_new_table(statement: CreateTable, lakes: Lakes) -> tuple[Lake, TableName] | None:
    """Where a table is to be made; None if it is not ours. Without USING it follows its namespace."""
    placed = lakes.place(statement.table)
    if placed is None and statement.provider == "iceberg" and not _is_elsewhere(statement.table, lakes):
        placed = lakes.default, statement.table
    if placed is None:
        return None
    lake, name = placed[0], _table_name(placed[1])
    return lake, new_table_name(lake, (*name.namespace, name.name))


def check_exists(statement: CreateTable, lake: Lake, name: TableName) -> bool:
    """Whether the table is there; NotFoundError for REPLACE of none."""
    exists = lake.table_exists(name)
    if not exists and not statement.creates:
        lake.load_table(name)
    return exists


@contextlib.contextmanager
def staged(
    statement: CreateTable,
    lakes: Lakes,
    placed: tuple[Lake, TableName],
    schema: Schema,
    reads: Iterable[BranchRead] = (),
) -> Iterator[Table]:
    """The table that a block fills, and that is there when the block ends; `reads` are what its rows came from."""
    lake, name = placed
    _check_distinct_names(schema)
    with lake.stage_table(
        name,
        schema,
        partition_by=statement.partition_by,
        properties=_properties(statement, lakes),
        location=statement.location,
        replace=statement.replaces,
        reads=reads,
    ) as table:
        yield table


def drop_table(statement: DropTable, lakes: Lakes) -> pa.Table | None:
    """DROP TABLE; its files stay, unless it is purged."""
    placed = lakes.place(statement.table)
    if placed is None:
        return None
    lake, name = placed[0], _table_name(placed[1])
    try:
        if statement.purge:
            lake.purge_table(name)
        else:
            lake.drop_table(name)
    except NotFoundError as error:
        if not statement.if_exists or error.kind not in {"table", "namespace"}:
            raise
    return NO_ROWS


def _properties(statement: CreateTable, lakes: Lakes) -> dict[str, str]:
    owner = {"owner": lakes.surroundings.user} if lakes.surroundings.user else {}
    return owner | statement.properties


def _field(column: ColumnDefinition, ids: Iterator[int], time_zone: str, format_version: int) -> NestedField:
    (name,) = column.path
    field_id, type_ = next(ids), fresh_type(column.type, ids)
    default = default_value(column.default, column.type, time_zone, format_version=format_version)
    plain = plain_default(column.type, default, name)
    wire = encode_default(column.type, plain)
    return NestedField(field_id, name, column.required, type_, column.doc, write_default=wire)


def _check_distinct_names(schema: Schema) -> None:
    """SQL does not tell upper from lower case in column names, so a table made by SQL must not need it."""
    seen: dict[str, str] = {}
    for name in schema.names:
        if seen.setdefault(name.casefold(), name) != name:
            raise InvalidInputError(
                f"expected column names that differ in more than case, found `{seen[name.casefold()]}` and `{name}`"
            )


def _is_elsewhere(table: Name, lakes: Lakes) -> bool:
    return len(table) != 2 and lakes.surroundings.has_catalog(table[0])  # noqa: PLR2004


def _table_name(name: Name) -> TableName:
    if len(name) < 2:  # noqa: PLR2004
        raise UnsupportedError(
            f"expected a table name like `db.orders`, found `{'.'.join(name)}`",
            hints=["USE db makes `db` the namespace"],
        )
    return TableName(name[:-1], name[-1])
