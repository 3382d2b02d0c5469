"""Fills values below null structs: Arrow requires non-null values there in required fields."""

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc


def fill_hidden_nulls(array: pa.Array, field: pa.Field) -> pa.Array:
    """Put zeros below null structs where a field is required; other nulls stay."""
    return _fill(array, field, None)


def child_offsets(array: pa.Array) -> tuple[pa.Array, int, int]:
    """The offsets of lists or maps starting from zero, and the range of child values that they cover."""
    first, last = array.offsets[0].as_py(), array.offsets[-1].as_py()
    return pc.subtract(array.offsets, pa.scalar(first, pa.int32())), first, last - first


def _fill(array: pa.Array, field: pa.Field, hidden: pa.Array | None) -> pa.Array:
    """Fill an array; `hidden` marks the values below a null, None for none."""
    types = pa.types
    if types.is_struct(array.type):
        return _fill_struct(array, field, hidden)
    if types.is_list(array.type) or types.is_map(array.type):
        return _fill_children(array)
    if hidden is None or field.nullable or not array.null_count:
        return array
    if isinstance(array, pa.ExtensionArray):
        return pa.ExtensionArray.from_storage(array.type, _fill(array.storage, field, hidden))
    return pc.if_else(pc.and_(hidden, array.is_null()), _zero(array.type), array)


def _fill_struct(array: pa.Array, field: pa.Field, hidden: pa.Array | None) -> pa.Array:
    null = array.is_null()
    inside = null if hidden is None else pc.or_(null, hidden)
    # not flatten(), which would push the nulls of the struct down
    parts = [array.field(position) for position in range(array.type.num_fields)]
    filled = [_fill(part, f, inside) for part, f in zip(parts, array.type, strict=True)]
    shown = hidden is not None and not field.nullable and array.null_count
    if not parts or (not shown and all(new is old for new, old in zip(filled, parts, strict=True))):
        return array
    mask = pc.and_not(null, hidden) if shown else null
    return pa.StructArray.from_arrays(filled, fields=list(array.type), mask=mask)


def _fill_children(array: pa.Array) -> pa.Array:
    """Fill lists and maps; Arrow ignores the contents of null ones."""
    offsets, first, length = child_offsets(array)
    is_map = pa.types.is_map(array.type)
    fields = [array.type.key_field, array.type.item_field] if is_map else [array.type.value_field]
    parts = [part.slice(first, length) for part in ([array.keys, array.items] if is_map else [array.values])]
    filled = [_fill(part, f, None) for part, f in zip(parts, fields, strict=True)]
    if all(new is old for new, old in zip(filled, parts, strict=True)):
        return array
    build = pa.MapArray.from_arrays if is_map else pa.ListArray.from_arrays
    return build(offsets, *filled, type=array.type, mask=array.is_null())


def _zero(type_: pa.DataType) -> pa.Scalar:
    types = pa.types
    value: Any = 0
    if types.is_string(type_) or types.is_large_string(type_) or types.is_string_view(type_):
        value = ""
    elif types.is_binary(type_) or types.is_large_binary(type_) or types.is_fixed_size_binary(type_):
        value = bytes(type_.byte_width if types.is_fixed_size_binary(type_) else 0)
    elif types.is_decimal(type_):
        value = Decimal(0)
    elif types.is_boolean(type_):
        value = False
    return pa.scalar(value, type_)
