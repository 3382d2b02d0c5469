"""Schema changes applied in order, each to the result of those before it."""

from collections.abc import Iterator
from typing import assert_never

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.evolution.columns import (
    ColumnPosition,
    add_column,
    drop_column,
    make_optional,
    move_column,
    rename_column,
    require_column,
    set_doc,
    set_identifier_fields,
    set_write_default,
    widen_column,
)
from bergline.format.evolution.promotion import can_widen
from bergline.format.evolution.schema_changes import (
    AddColumn,
    DropColumn,
    MoveColumn,
    RenameColumn,
    SchemaChange,
    SetDefault,
    SetDoc,
    SetIdentifierFields,
    SetRequired,
    SetType,
    UnionByName,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.compatibility import (
    check_for_version,
    check_free_names,
    check_order_fits,
    check_partition_names,
    check_spec_fits,
)
from bergline.format.partition.transforms import Void
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import decode_default
from bergline.format.types.types import IcebergType, ListType, MapType, NestedField, StructType, child_fields


class EvolvingSchema(msgspec.Struct, frozen=True):
    """A schema between changes, and the highest column id so far."""

    base: TableMetadata
    schema: Schema
    last_column_id: int


def evolving(base: TableMetadata) -> EvolvingSchema:
    """The starting point: the current schema."""
    return EvolvingSchema(base, base.schema, base.last_column_id)


def apply_schema_change(work: EvolvingSchema, change: SchemaChange) -> EvolvingSchema:
    """Apply one change."""
    schema, last = work.schema, work.last_column_id
    match change:
        case AddColumn():
            schema, last = _add(schema, change, last)
        case DropColumn(path):
            schema = drop_column(schema, path)
        case RenameColumn(path, name):
            schema = rename_column(schema, path, name)
        case MoveColumn(path, place):
            schema = _move(schema, path, place)
        case SetType(path, type_):
            schema = widen_column(schema, path, type_, work.base.format_version, work.base.partition_specs)
        case SetRequired(path, required, allow):
            schema = require_column(schema, path, allow_incompatible=allow) if required else make_optional(schema, path)
        case SetDoc(path, doc):
            schema = set_doc(schema, path, doc)
        case SetDefault(path, default):
            schema = set_write_default(schema, path, default)
        case SetIdentifierFields(paths):
            schema = set_identifier_fields(schema, paths)
        case UnionByName(other):
            for inner in union_changes(schema, other, work.base.format_version):
                work = apply_schema_change(work, inner)
            return work
        case _:
            assert_never(change)
    return EvolvingSchema(work.base, schema, last)


def check_evolved(work: EvolvingSchema) -> None:
    """Refuse a schema that the table's format version, partition specs or sort order does not allow."""
    base, schema = work.base, work.schema
    check_for_version(schema, base.format_version)
    before = {f.name for f in base.schema.fields}
    check_free_names(Schema(fields=tuple(f for f in schema.fields if f.name not in before)))
    for field in base.spec.fields:
        if field.source_id in base.schema.ids and not isinstance(field.transform, Void):
            _check_kept(field.source_id, work, f"partition field `{field.name}`", "remove that field first")
    for sorted_by in base.sort_order.fields:
        if sorted_by.source_id in base.schema.ids:
            _check_kept(sorted_by.source_id, work, "the sort order", "replace the sort order first")
    for spec in base.partition_specs:
        check_partition_names(spec, schema)
    check_spec_fits(base.spec, schema)
    check_order_fits(base.sort_order, schema)


def _check_kept(column_id: int, work: EvolvingSchema, user: str, hint: str) -> None:
    if column_id not in work.schema.ids:
        name = work.base.schema.names_by_id[column_id]
        raise InvalidInputError(f"cannot drop column `{name}`: {user} needs it", hints=[hint])


def _add(schema: Schema, change: AddColumn, last: int) -> tuple[Schema, int]:
    schema, last = add_column(
        schema,
        change.path,
        change.type,
        last,
        doc=change.doc,
        required=change.required,
        default=change.default,
        allow_incompatible=change.allow_incompatible,
    )
    return (schema if change.place is None else _move(schema, ".".join(change.path), change.place)), last


def _move(schema: Schema, path: str, place: ColumnPosition) -> Schema:
    """Move a column; the other one may be given by its name in the struct or by its full path."""
    if place[0] == "first":
        return move_column(schema, path, place)
    where, other = place
    parent = schema.parents[schema.find(path).id]
    names = {f.name for f in (schema.fields if parent is None else child_fields(parent.type))}
    field = schema.names.get(other) or schema.short_names.get(other)
    if other not in names and field is not None and schema.parents[field.id] == parent:
        other = field.name
    return move_column(schema, path, (where, other))


def union_changes(schema: Schema, other: Schema, format_version: int) -> list[SchemaChange]:
    """The changes, as in Java: innermost first, new columns optional, narrower types ignored."""
    return list(_missing(StructType(other.fields), StructType(schema.fields), (), format_version))


def _missing(
    new: IcebergType, old: IcebergType, inside: tuple[str, ...], format_version: int
) -> Iterator[SchemaChange]:
    known = {f.name: f for f in child_fields(old)}
    for field in child_fields(new):
        if field.name in known and _same_kind(field.type, known[field.name].type):
            yield from _missing(field.type, known[field.name].type, (*inside, field.name), format_version)
    for field in child_fields(new):
        path, existing = ".".join((*inside, field.name)), known.get(field.name)
        if existing is None:
            initial, write = (decode_default(field.type, w) for w in (field.initial_default, field.write_default))
            yield AddColumn((*inside, field.name), field.type, field.doc, default=initial)
            if write != initial:
                yield SetDefault(path, write)
        else:
            yield from _updates(path, field, existing, format_version)


def _updates(path: str, new: NestedField, old: NestedField, format_version: int) -> Iterator[SchemaChange]:
    if old.required and not new.required:
        yield SetRequired(path, required=False)
    if not _same_kind(new.type, old.type) and not can_widen(new.type, old.type, format_version):
        yield SetType(path, new.type)
    if new.doc is not None and new.doc != old.doc:
        yield SetDoc(path, new.doc)
    if new.write_default is not None and new.write_default != old.write_default:
        yield SetDefault(path, decode_default(new.type, new.write_default))


def _same_kind(one: IcebergType, other: IcebergType) -> bool:
    return any(isinstance(one, kind) and isinstance(other, kind) for kind in (StructType, ListType, MapType))
