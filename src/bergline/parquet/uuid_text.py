"""UUIDs that come as text, as Spark has them, in the form that Arrow has."""

import uuid

import pyarrow as pa
import pyarrow.compute as pc

from bergline.errors import InvalidInputError

_NIL = str(uuid.UUID(int=0))
_FORM = r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def uuids_from_text(
    array: pa.Array, target: pa.DataType, column: str, hidden: pa.BooleanArray | None = None
) -> pa.Array:
    """The array with bytes where the target has UUIDs and it has text; InvalidInputError for text that is none.

    `hidden` says where something around the array is null: any text may stand there.
    """
    if isinstance(target, pa.UuidType) and _is_text(array.type):
        return _parsed(array if hidden is None else pc.if_else(hidden, pa.scalar(_NIL, array.type), array), column)
    if not _has_text(array.type, target):
        return array
    absent = array.is_null()
    if pa.types.is_struct(target):
        below = absent if hidden is None else pc.or_(absent, hidden)
        children = [
            uuids_from_text(array.field(place), field.type, f"{column}.{field.name}", below)
            for place, field in enumerate(target)
        ]
        fields = [pa.field(f.name, child.type) for f, child in zip(array.type, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=absent)
    whole = array.take(pa.array(range(len(array)), pa.int64()))  # a slice has its nulls elsewhere than its offsets
    if hidden is not None:
        lists = pa.ListArray.from_arrays(whole.offsets, pa.nulls(whole.offsets[-1].as_py()), mask=absent)
        hidden = hidden.take(pc.list_parent_indices(lists))
    if pa.types.is_map(target):
        keys = uuids_from_text(whole.keys, target.key_type, f"{column}.key", hidden)
        items = uuids_from_text(whole.items, target.item_type, f"{column}.value", hidden)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, mask=absent)
    values = uuids_from_text(whole.values, target.value_type, f"{column}.element", hidden)
    return pa.ListArray.from_arrays(whole.offsets, values, mask=absent)


def _parsed(array: pa.Array, column: str) -> pa.Array:
    wrong = array.filter(pc.invert(pc.fill_null(pc.match_substring_regex(array, _FORM), True)))
    if len(wrong):
        raise InvalidInputError(f"expected `uuid`, found {wrong[0].as_py()!r} in column `{column}`")
    stored = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
    return pa.array(stored, pa.binary(16))


def _has_text(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether text stands where the target has UUIDs; types of another shape are refused later."""
    if isinstance(target, pa.UuidType):
        return _is_text(source)
    if source.num_fields != target.num_fields or not pa.types.is_nested(source) or not pa.types.is_nested(target):
        return False
    kinds = (pa.types.is_struct, pa.types.is_map, pa.types.is_list)
    if not any(is_kind(source) and is_kind(target) for is_kind in kinds):
        return False
    return any(_has_text(source.field(place).type, target.field(place).type) for place in range(target.num_fields))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))
