"""What a schema needs to hold all columns of another one, found by name."""

from collections.abc import Iterator

from bergline.format.defaults import decode_default
from bergline.format.promotion import can_widen
from bergline.format.schema import Schema
from bergline.format.schema_changes import AddColumn, SchemaChange, SetDefault, SetDoc, SetRequired, SetType
from bergline.format.types import IcebergType, ListType, MapType, NestedField, StructType, child_fields


def union_changes(schema: Schema, other: Schema, format_version: int) -> list[SchemaChange]:
    """The changes, as Java makes them: the innermost first, new columns may be null, narrower types are no change."""
    return list(_missing(StructType(other.fields), StructType(schema.fields), "", format_version))


def _missing(new: IcebergType, old: IcebergType, prefix: str, format_version: int) -> Iterator[SchemaChange]:
    known = {f.name: f for f in child_fields(old)}
    for field in child_fields(new):
        if field.name in known and _same_kind(field.type, known[field.name].type):
            yield from _missing(field.type, known[field.name].type, f"{prefix}{field.name}.", format_version)
    for field in child_fields(new):
        path, existing = f"{prefix}{field.name}", known.get(field.name)
        if existing is None:
            initial, write = (decode_default(field.type, w) for w in (field.initial_default, field.write_default))
            yield AddColumn(path, field.type, field.doc, default=initial)
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
