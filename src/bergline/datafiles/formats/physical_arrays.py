"""Arrays as a decoder returns them, converted to the physical types that a file declares.

Decoders know fewer types than files: an Avro decimal is bytes, a map is a list of pairs, a time in ORC is a long.
"""

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.hidden_nulls import child_offsets
from bergline.errors import FormatError

_DECIMAL_BYTES = 16
_SIGN = b"\x80"


def to_physical(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """An array of a physical type; fields of structs are matched by name, and those without bytes are null."""
    types = pa.types
    if array.type.equals(type_):
        return array
    if types.is_large_list(array.type):
        array = array.cast(pa.list_(array.type.value_field))
    if types.is_struct(type_):
        return _struct(array, type_)
    if types.is_list(type_):
        offsets, first, length = child_offsets(array)
        values = to_physical(array.values.slice(first, length), type_.value_type)
        return pa.ListArray.from_arrays(offsets, values, type=type_, mask=array.is_null())
    if types.is_map(type_):
        return _map(array, type_)
    return _leaf(array, type_)


def _struct(array: pa.Array, type_: pa.DataType) -> pa.Array:
    known = {field.name: part for field, part in zip(array.type, array.flatten(), strict=True)}
    parts = [
        to_physical(known[field.name], field.type) if field.name in known else pa.nulls(len(array), field.type)
        for field in type_
    ]
    return pa.StructArray.from_arrays(parts, fields=list(type_), mask=array.is_null())


def _map(array: pa.Array, type_: pa.DataType) -> pa.Array:
    offsets, first, length = child_offsets(array)
    if pa.types.is_map(array.type):
        keys, items = array.keys.slice(first, length), array.items.slice(first, length)
    else:
        keys, items = array.values.slice(first, length).flatten()
    if keys.null_count:
        raise FormatError("expected keys in every map, found null")
    return pa.MapArray.from_arrays(
        offsets,
        to_physical(keys, type_.key_type),
        to_physical(items, type_.item_type),
        type=type_,
        mask=array.is_null(),
    )


def _leaf(array: pa.Array, type_: pa.DataType) -> pa.Array:
    types = pa.types
    if types.is_fixed_size_binary(type_):
        return array.cast(pa.binary()).cast(type_)
    if types.is_decimal(type_) and not types.is_decimal(array.type):
        return _decimals(array.cast(pa.binary()), type_)
    if types.is_date32(type_) or types.is_time32(type_):
        return array.cast(pa.int32()).cast(type_)
    if types.is_timestamp(type_) and types.is_timestamp(array.type) and type_.unit == "us":
        # ORC has nanoseconds, of which Iceberg's timestamps have no more than the microseconds before them
        array = pc.floor_temporal(array, unit="microsecond")
    return array.cast(type_)


def _decimals(array: pa.Array, type_: pa.DataType) -> pa.Array:
    """Decimals of big-endian two's complement numbers with any number of bytes."""
    lengths = pc.binary_length(array)
    longest = pc.max(lengths).as_py() or 0
    if longest > _DECIMAL_BYTES or pc.min(lengths).as_py() == 0:
        raise FormatError(f"expected decimals of 1 to {_DECIMAL_BYTES} bytes, found others")
    parts = pa.nulls(len(array), pa.binary())
    for length in pc.unique(lengths.drop_null()).to_pylist():
        missing = _DECIMAL_BYTES - length
        is_negative = pc.greater_equal(array, pa.scalar(_SIGN, pa.binary()))
        sign = pc.if_else(is_negative, pa.scalar(b"\xff" * missing), pa.scalar(bytes(missing)))
        whole = pc.binary_join_element_wise(sign, array, pa.scalar(b""))
        parts = pc.if_else(pc.equal(lengths, length), whole, parts)
    # a decimal128 is its 16 bytes, the lowest first
    stored = pc.binary_reverse(parts).fill_null(bytes(_DECIMAL_BYTES)).cast(pa.binary(_DECIMAL_BYTES))
    validity = pc.is_valid(array).buffers()[1] if array.null_count else None
    data = stored.buffers()[1].slice(stored.offset * _DECIMAL_BYTES, len(stored) * _DECIMAL_BYTES)
    found = pa.Array.from_buffers(type_, len(array), [validity, data])
    found.validate(full=True)
    return found
