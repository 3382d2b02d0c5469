"""Schema evolution: add, drop, rename, move and widen columns; ids are never reused.

Every function takes a schema and returns a new one without a schema id; columns are named by their dotted path, in
which `element` and `value` may be omitted before the fields of structs.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, Literal

import msgspec

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.format.evolution.promotion import can_widen, check_partitions_stay, promotions, widen_default
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.reserved import MAX_COLUMN_ID
from bergline.format.schema.schema import Schema, fresh_type
from bergline.format.types.defaults import encode_default
from bergline.format.types.types import (
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
    walk_fields,
)

Fields = tuple[NestedField, ...]
ColumnPosition = tuple[Literal["first"]] | tuple[Literal["after", "before"], str]
_CHANGED: dict[tuple[type, type], str] = {
    (StructType, StructType): "CANNOT_UPDATE_FIELD.STRUCT_TYPE",
    (ListType, ListType): "CANNOT_UPDATE_FIELD.ARRAY_TYPE",
    (MapType, MapType): "CANNOT_UPDATE_FIELD.MAP_TYPE",
}
"""Spark's conditions for types that are changed inside."""


def add_column(
    schema: Schema,
    parts: Sequence[str],
    type_: IcebergType,
    last_column_id: int,
    *,
    doc: str | None = None,
    required: bool = False,
    default: Any = None,
    allow_incompatible: bool = False,
) -> tuple[Schema, int]:
    """Add a column at the end of its struct; also returns the highest column id, which no later column may use.

    The last part of its path is its name, and those before it are the struct's: a name may have a dot in it.
    `default` is the plain value for existing rows and for new rows without one. A required column needs it, because
    existing rows would have no value.
    """
    path = ".".join(parts)
    if required and default is None and not allow_incompatible:
        raise InvalidInputError(
            f"expected a default or a column that may be null, found the required `{path}`: older rows have none"
        )
    if not all(parts):
        raise InvalidInputError(f"expected a name for the new column, found `{path}`")
    name = parts[-1]
    ids = count(last_column_id + 1)
    field_id, fresh = next(ids), fresh_type(type_, ids)
    wire = {} if isinstance(fresh, StructType) and default == {} else encode_default(fresh, default)
    field = NestedField(field_id, name, required, fresh, doc, wire, wire)

    def add(fields: Fields) -> Fields:
        if any(f.name == name for f in fields):
            raise AlreadyExistsError(f"column `{path}` exists already", kind="column", name=path)
        return (*fields, field)

    last = next(ids) - 1
    if last > MAX_COLUMN_ID:
        raise InvalidInputError(f"expected column ids up to {MAX_COLUMN_ID}, found none left for `{path}`")
    return _change_fields(schema, _struct_of(schema, ".".join(parts[:-1])), add), last


def drop_column(schema: Schema, path: str) -> Schema:
    """Drop a column; refused for identifier columns and the last column of a struct."""
    field, parent = _find(schema, path)
    inside = {f.id for _, f in walk_fields((field,))}
    if inside & set(schema.identifier_field_ids):
        raise InvalidInputError(f"cannot drop column `{path}`: it identifies rows")
    _check_in_struct("drop", field, parent, path)

    def drop(fields: Fields) -> Fields:
        if len(fields) == 1:
            raise InvalidInputError(f"cannot drop column `{path}`: it is the only one of its struct")
        return tuple(f for f in fields if f.id != field.id)

    return _change_fields(schema, parent, drop)


def rename_column(schema: Schema, path: str, name: str) -> Schema:
    """Rename a column; its id, and so its values, stay."""
    field, parent = _find(schema, path)
    _check_in_struct("rename", field, parent, path)
    if not name:
        raise InvalidInputError(f"expected a name for column `{path}`, found none")
    if any(f.name == name and f.id != field.id for f in _siblings(schema, parent)):
        raise AlreadyExistsError(f"column `{name}` exists already beside `{path}`", kind="column", name=name)
    return _change(schema, field, lambda f: msgspec.structs.replace(f, name=name))


def move_column(schema: Schema, path: str, place: ColumnPosition) -> Schema:
    """Move a column first, or after or before another column of its struct."""
    field, parent = _find(schema, path)
    _check_in_struct("move", field, parent, path)

    def move(fields: Fields) -> Fields:
        others = [f for f in fields if f.id != field.id]
        if place[0] == "first":
            return (field, *others)
        if place[1] == field.name:
            raise InvalidInputError(f"expected another column to move `{path}` {place[0]}, found `{place[1]}` itself")
        at = next((i for i, f in enumerate(others) if f.name == place[1]), None)
        if at is None:
            known = [f.name for f in others]
            message = f"no column `{place[1]}` beside `{path}`"
            raise NotFoundError(message, kind="column", name=place[1], known=known, condition="FIELD_NOT_FOUND")
        at += place[0] == "after"
        return (*others[:at], field, *others[at:])

    return _change_fields(schema, parent, move)


def widen_column(
    schema: Schema,
    path: str,
    type_: IcebergType,
    format_version: int = 2,
    specs: Iterable[PartitionSpec] = (),
) -> Schema:
    """Promote a column to a wider type.

    `specs` are the table's partition specs: a change that would move rows to other partitions is refused.
    """
    field, _ = _find(schema, path)
    old = field.type
    if not can_widen(old, type_, format_version):
        raise InvalidInputError(
            f"cannot change column `{path}` from `{old}` to `{type_}`: types only widen",
            hints=[promotions(format_version)],
            condition=_CHANGED.get((type(old), type(type_)), "NOT_SUPPORTED_CHANGE_COLUMN"),
        )
    check_partitions_stay(field.id, old, type_, specs)
    if old == type_:
        return _without_id(schema)
    initial, write = (widen_default(old, type_, wire) for wire in (field.initial_default, field.write_default))
    return _change(
        schema,
        field,
        lambda f: msgspec.structs.replace(f, type=type_, initial_default=initial, write_default=write),
    )


def make_optional(schema: Schema, path: str) -> Schema:
    """Make a column optional; refused for identifier columns and the structs around them."""
    return _change(schema, _find(schema, path)[0], lambda f: msgspec.structs.replace(f, required=False))


def require_column(schema: Schema, path: str, *, allow_incompatible: bool = False) -> Schema:
    """Make a column required; refused unless the caller knows that no value is null."""
    field, _ = _find(schema, path)
    if not field.required and not allow_incompatible:
        raise InvalidInputError(f"cannot make column `{path}` required: existing rows may have no value")
    return _change(schema, field, lambda f: msgspec.structs.replace(f, required=True))


def set_doc(schema: Schema, path: str, doc: str | None) -> Schema:
    """Set the comment of a column."""
    field, parent = _find(schema, path)
    _check_in_struct("describe", field, parent, path)
    return _change(schema, field, lambda f: msgspec.structs.replace(f, doc=doc))


def set_write_default(schema: Schema, path: str, default: Any) -> Schema:
    """Set the default for new rows; existing rows keep theirs."""
    field, parent = _find(schema, path)
    _check_in_struct("give a default to", field, parent, path)
    wire = encode_default(field.type, default)
    return _change(schema, field, lambda f: msgspec.structs.replace(f, write_default=wire))


def set_identifier_fields(schema: Schema, paths: Iterable[str]) -> Schema:
    """Set the identifier fields."""
    ids = tuple(sorted({_find(schema, path)[0].id for path in paths}))
    return Schema(fields=schema.fields, identifier_field_ids=ids)


def _find(schema: Schema, path: str) -> tuple[NestedField, NestedField | None]:
    """A column and its parent, None at the top level."""
    field = schema.find(path)
    return field, schema.parents[field.id]


def _struct_of(schema: Schema, path: str) -> NestedField | None:
    """The column whose struct a new field goes to; a list stands for its element, a map for its value."""
    if not path:
        return None
    field = schema.find(path)
    if isinstance(field.type, ListType | MapType):
        field = child_fields(field.type)[-1]
    if not isinstance(field.type, StructType):
        message = f"expected a struct, found `{field.type}` in column `{path}`"
        raise InvalidInputError(message, condition="INVALID_FIELD_NAME")
    return field


def _siblings(schema: Schema, parent: NestedField | None) -> Fields:
    return schema.fields if parent is None else child_fields(parent.type)


def _check_in_struct(what: str, field: NestedField, parent: NestedField | None, path: str) -> None:
    if parent is not None and not isinstance(parent.type, StructType):
        raise InvalidInputError(f"cannot {what} `{path}`: it is the {field.name} of a `{parent.type}`")


def _change(schema: Schema, field: NestedField, change: Callable[[NestedField], NestedField]) -> Schema:
    fields = tuple(change_field(f, field.id, change) for f in schema.fields)
    return Schema(fields=fields, identifier_field_ids=schema.identifier_field_ids)


def _change_fields(schema: Schema, parent: NestedField | None, change: Callable[[Fields], Fields]) -> Schema:
    if parent is None:
        return Schema(fields=change(schema.fields), identifier_field_ids=schema.identifier_field_ids)
    inner = StructType(change(child_fields(parent.type)))
    return _change(schema, parent, lambda f: msgspec.structs.replace(f, type=inner))


def _without_id(schema: Schema) -> Schema:
    return Schema(fields=schema.fields, identifier_field_ids=schema.identifier_field_ids)


ColumnEdit = Callable[[NestedField], NestedField]


def change_field(field: NestedField, target_id: int, change: ColumnEdit) -> NestedField:
    """Apply a change to the nested field with this id; returns the same object if nothing changes."""
    if field.id == target_id:
        changed = change(field)
        return field if changed == field else changed
    type_ = _change_type(field.type, target_id, change)
    return field if type_ is field.type else msgspec.structs.replace(field, type=type_)


def _change_type(type_: IcebergType, target_id: int, change: ColumnEdit) -> IcebergType:
    inside = child_fields(type_)
    changed = tuple(change_field(f, target_id, change) for f in inside)
    if all(new is old for new, old in zip(changed, inside, strict=True)):
        return type_
    match type_:
        case ListType(element_id, _, _):
            return ListType(element_id, changed[0].type, changed[0].required)
        case MapType(key_id, key, value_id, _, _):
            if any(f.id == target_id for _, f in walk_fields(inside[:1])):
                raise InvalidInputError(f"expected a change outside the keys of maps, found one inside `{type_}`")
            return MapType(key_id, key, value_id, changed[1].type, changed[1].required)
    return StructType(changed)
