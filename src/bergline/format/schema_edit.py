"""One field of a schema changed, at any depth; keys of maps never change: rows would be told apart differently."""

from collections.abc import Callable

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.types import IcebergType, ListType, MapType, NestedField, StructType, child_fields, walk_fields

Change = Callable[[NestedField], NestedField]


def change_field(field: NestedField, target_id: int, change: Change) -> NestedField:
    """The field with the one of an id in it changed; itself where that one is elsewhere, or stays as it is."""
    if field.id == target_id:
        changed = change(field)
        return field if changed == field else changed
    type_ = _change_type(field.type, target_id, change)
    return field if type_ is field.type else msgspec.structs.replace(field, type=type_)


def _change_type(type_: IcebergType, target_id: int, change: Change) -> IcebergType:
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
