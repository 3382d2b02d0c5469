"""Writes that let a table take over columns and wider types of their rows: both are one commit, or nothing is."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import InvalidInputError
from bergline.format.evolution.promotion import can_widen
from bergline.format.evolution.schema_changes import UnionByName
from bergline.format.evolution.schema_evolution import apply_schema_change, evolving
from bergline.format.schema.schema import Schema
from bergline.format.types.types import IcebergType, ListType, MapType, NestedField, StructType, child_fields
from bergline.spark.runtime.types import iceberg_schema, stored_schema
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.rows import TableWrite
from bergline.spark.writes.scope import WritingSession
from bergline.spark.writes.target import resolve_write_target
from bergline.sql.names.resolve import Target
from bergline.table.table import Table

ACCEPT_ANY_SCHEMA: Final = "write.spark.accept-any-schema"
MERGE_SCHEMA: Final = "mergeSchema"


@contextmanager
def evolved(target: Target, source: T.StructType) -> Iterator[Target]:
    """The target with the columns of the source that it lacks, and types as wide; the block's commits are one.

    Names that differ from the table's in case alone are the table's.
    """
    table: Table = target.table
    wanted = _spelled(stored_schema(source), table.schema) if source.fields else None
    if wanted is None or _union(table, wanted) == table.schema:
        yield target
        return
    with table.transaction() as changing:
        with changing.update_schema() as schema:
            schema.union_by_name(wanted)
        yield Target(changing, target.selector)


def evolves(table: Table, source: T.StructType) -> bool:
    """Whether a table needs other columns, or wider types, to have these."""
    return bool(source.fields) and _union(table, _spelled(iceberg_schema(source), table.schema)) != table.schema


@contextmanager
def frame_write(
    session: WritingSession, target: Target, frame: DataFrame, options: WriteOptions
) -> Iterator[tuple[Table, TableWrite]]:
    """A write of a frame, and the table as it is then: with the option `mergeSchema`, with the frame's columns."""
    write_target = resolve_write_target(session, target, options.branch)
    merges = merges_schema(target.table, options)
    source = taken_columns(frame.schema, target.table) if merges else T.StructType()
    with evolved(target, source) as changing:
        yield changing.table, TableWrite(session.spark, changing.table, write_target, options)


def merges_schema(table: Table, options: WriteOptions) -> bool:
    """Whether a write may change the table's columns: the option asks for it, and the table must allow it."""
    if not options.merge_schema:
        return False
    if table.properties.get(ACCEPT_ANY_SCHEMA, "false").lower() != "true":
        raise InvalidInputError(
            f"expected the table property `{ACCEPT_ANY_SCHEMA}` to be `true` for the option `{MERGE_SCHEMA}`, "
            f"found it unset in `{table.name}`",
            hints=[
                f"ALTER TABLE {table.name} SET TBLPROPERTIES ('{ACCEPT_ANY_SCHEMA}' = 'true')",
                "or write INSERT WITH SCHEMA EVOLUTION INTO …, which needs no property",
            ],
        )
    return True


def taken_columns(source: T.StructType, table: Table) -> T.StructType:
    """The columns of rows that a table takes over: not those that are stored by a cast to its own type."""
    known = {field.name.casefold(): field.type for field in table.schema.fields}
    found = _spelled(iceberg_schema(source), table.schema)
    version = table.metadata.format_version
    return T.StructType(
        [
            field
            for field, iceberg in zip(source.fields, found.fields, strict=True)
            if _is_taken(known.get(iceberg.name.casefold()), iceberg.type, version)
        ]
    )


def _is_taken(old: IcebergType | None, new: IcebergType, format_version: int) -> bool:
    if old is None:
        return True
    if child_fields(old) and child_fields(new):
        return True
    return old != new and can_widen(old, new, format_version)


def _union(table: Table, wanted: Schema) -> Schema:
    return apply_schema_change(evolving(table.metadata), UnionByName(wanted)).schema


def _spelled(wanted: Schema, known: Schema) -> Schema:
    """A schema in which fields have the names of a table's that differ from them in case alone."""
    return Schema(fields=tuple(_spelled_field(field, known.fields) for field in wanted.fields))


def _spelled_field(field: NestedField, known: tuple[NestedField, ...]) -> NestedField:
    """A field by the table's name for it; the table's own comment on a column stays."""
    for fold in (str, str.casefold):
        same = [other for other in known if fold(other.name) == fold(field.name)]
        if len(same) == 1:
            type_ = _spelled_type(field.type, same[0].type)
            return msgspec.structs.replace(field, name=same[0].name, doc=None, type=type_)
    return field


def _spelled_type(type_: IcebergType, known: IcebergType) -> IcebergType:
    match type_, known:
        case StructType(fields), StructType(others):
            return StructType(tuple(_spelled_field(field, others) for field in fields))
        case ListType(element_id, element, required), ListType():
            return ListType(element_id, _spelled_type(element, known.element), required)
        case MapType(key_id, key, value_id, value, required), MapType():
            return MapType(key_id, key, value_id, _spelled_type(value, known.value), required)
    return type_
