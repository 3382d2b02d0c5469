"""Schema evolution: columns added, dropped, renamed, moved, widened; ids are never used again.

Every function takes a schema and gives a new one without an id of its own; columns are named by their dotted path.
"""

from collections.abc import Callable
from itertools import count
from typing import Literal

import msgspec

from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from bergline.format.schema import Schema, fresh_type
from bergline.format.types import (
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    DecimalType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

Fields = tuple[NestedField, ...]
Place = tuple[Literal["first"]] | tuple[Literal["after", "before"], str]


def add_column(
    schema: Schema,
    path: str,
    type_: IcebergType,
    last_column_id: int,
    *,
    doc: str | None = None,
    required: bool = False,
) -> tuple[Schema, int]:
    """A new column, last of its struct; returns the highest column id too, which no later column may use.

    A required column is refused: rows that are there have no value for it.
    """
    if required:
        raise InvalidInputError(
            f"expected a column that may be null, found the required `{path}`: older rows have none"
        )
    parent, _, name = path.rpartition(".")
    ids = count(last_column_id + 1)
    field = NestedField(next(ids), name, False, fresh_type(type_, ids), doc)

    def add(fields: Fields) -> Fields:
        if any(f.name == name for f in fields):
            raise AlreadyExistsError(f"column `{path}` exists already", kind="column", name=path)
        return (*fields, field)

    return _change_fields(schema, parent, add), next(ids) - 1


def drop_column(schema: Schema, path: str) -> Schema:
    """The schema without a column; identifier columns and the last of a struct are refused."""
    field = schema.find(path)
    inside = {field.id, *(f.id for n, f in schema.names.items() if n.startswith(f"{path}."))}
    if inside & set(schema.identifier_field_ids):
        raise InvalidInputError(f"cannot drop column `{path}`: it identifies rows")

    def drop(fields: Fields) -> Fields:
        if len(fields) == 1:
            raise InvalidInputError(f"cannot drop column `{path}`: it is the only one of its struct")
        return tuple(f for f in fields if f.id != field.id)

    return _change_fields(schema, path.rpartition(".")[0], drop)


def rename_column(schema: Schema, path: str, name: str) -> Schema:
    """The schema with a column under another name; its id, and so its values, stay."""
    parent = path.rpartition(".")[0]
    full = f"{parent}.{name}" if parent else name
    if full in schema.names and full != path:
        raise AlreadyExistsError(f"column `{full}` exists already", kind="column", name=full)
    return _change_field(schema, path, lambda f: msgspec.structs.replace(f, name=name))


def move_column(schema: Schema, path: str, place: Place) -> Schema:
    """The schema with a column first, or after or before another one of its struct."""
    field = schema.find(path)

    def move(fields: Fields) -> Fields:
        others = [f for f in fields if f.id != field.id]
        if place[0] == "first":
            return (field, *others)
        at = next((i for i, f in enumerate(others) if f.name == place[1]), None)
        if at is None:
            known = [f.name for f in others]
            raise NotFoundError(f"no column `{place[1]}` beside `{path}`", kind="column", name=place[1], known=known)
        at += place[0] == "after"
        return (*others[:at], field, *others[at:])

    return _change_fields(schema, path.rpartition(".")[0], move)


def widen_column(schema: Schema, path: str, type_: IcebergType) -> Schema:
    """The schema with a column of a wider type, which holds every value that it had."""
    old = schema.find(path).type
    if not can_widen(old, type_):
        raise InvalidInputError(f"cannot change column `{path}` from `{old}` to `{type_}`: values would not fit")
    return _change_field(schema, path, lambda f: msgspec.structs.replace(f, type=type_))


def make_optional(schema: Schema, path: str) -> Schema:
    """The schema with a column that may be null; identifier columns are refused."""
    if schema.find(path).id in schema.identifier_field_ids:
        raise InvalidInputError(f"cannot make column `{path}` optional: it identifies rows")
    return _change_field(schema, path, lambda f: msgspec.structs.replace(f, required=False))


def set_doc(schema: Schema, path: str, doc: str | None) -> Schema:
    """The schema with other words about a column."""
    return _change_field(schema, path, lambda f: msgspec.structs.replace(f, doc=doc))


def can_widen(old: IcebergType, new: IcebergType) -> bool:
    """Whether every value of one type is a value of the other."""
    match old, new:
        case DecimalType(precision, scale), DecimalType(wider, same):
            return wider >= precision and same == scale
    return old == new or (old, new) in {(INT, LONG), (FLOAT, DOUBLE)}


def _change_field(schema: Schema, path: str, change: Callable[[NestedField], NestedField]) -> Schema:
    field = schema.find(path)
    parent = schema.names_by_id[field.id].rpartition(".")[0]
    return _change_fields(schema, parent, lambda fields: tuple(change(f) if f.id == field.id else f for f in fields))


def _change_fields(schema: Schema, parent: str, change: Callable[[Fields], Fields]) -> Schema:
    """The schema with the fields of one struct changed; no parent means the top level."""
    if not parent:
        fields = change(schema.fields)
    else:
        target = schema.find(parent)
        fields = tuple(_change_inside(f, target.id, parent, change) for f in schema.fields)
    return Schema(fields=fields, identifier_field_ids=schema.identifier_field_ids)


def _change_inside(field: NestedField, target_id: int, path: str, change: Callable[[Fields], Fields]) -> NestedField:
    return msgspec.structs.replace(field, type=_change_type(field.type, field.id == target_id, target_id, path, change))


def _change_type(
    type_: IcebergType, is_target: bool, target_id: int, path: str, change: Callable[[Fields], Fields]
) -> IcebergType:
    match type_:
        case StructType(fields):
            if is_target:
                return StructType(change(fields))
            return StructType(tuple(_change_inside(f, target_id, path, change) for f in fields))
        case ListType(element_id, element, required):
            inner = _change_type(element, is_target or element_id == target_id, target_id, path, change)
            return ListType(element_id, inner, required)
        case MapType(key_id, key, value_id, value, required):
            # a map's keys never change: rows would be told apart differently
            inner = _change_type(value, is_target or value_id == target_id, target_id, path, change)
            return MapType(key_id, key, value_id, inner, required)
    if is_target:
        raise InvalidInputError(f"expected a struct, found `{type_}` in column `{path}`")
    return type_
