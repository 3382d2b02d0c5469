"""Projection of a file's column to the table's: renamed, reordered, promoted, with missing fields filled in."""

from collections.abc import Callable

import pyarrow as pa

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.datafiles.file.constants import constant_array
from bergline.datafiles.file.hidden_nulls import child_offsets
from bergline.datafiles.file.schema import by_field_id
from bergline.datafiles.file.variants import read_variants
from bergline.errors import FormatError
from bergline.format.types.defaults import initial_value
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
    child_fields,
)


def project(array: pa.Array, stored: pa.Field, field: NestedField, path: str) -> pa.Array:
    """Project a file's column; FormatError if its type cannot be promoted to the table's.

    `stored` is the file's column with its ids, `path` the dotted name of the table's column.
    """
    array, file_type = _plain_layout(array), stored.type
    if field.type == UNKNOWN or pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(field.type))
    match field.type:
        case StructType(fields) if pa.types.is_struct(array.type):
            return _project_struct(array, file_type, fields, field.type, path)
        case ListType() if pa.types.is_list(array.type):
            return _project_list(array, file_type, field.type, path)
        case MapType() if pa.types.is_map(array.type):
            return _project_map(array, file_type, field.type, path)
        case _ if field.type == VARIANT and pa.types.is_struct(array.type):
            return read_variants(array, path)
        case _ if _may_have_been(array.type, field.type):
            return _convert(array, arrow_type(field.type))
    raise FormatError(f"expected `{field.type}` in column `{path}`, found `{array.type}`")


def missing(field: NestedField, rows: int, path: str) -> pa.Array:
    """The values of a column that a file lacks."""
    value = initial_value(field)
    if value is None and field.required:
        raise FormatError(f"expected the required column `{path}` (id {field.id}), found none")
    return constant_array(field.type, value, rows)


def _plain_layout(array: pa.Array) -> pa.Array:
    """Undo the encodings and 64-bit offsets that a file's Arrow schema may ask for."""
    types = pa.types
    if isinstance(array, pa.ExtensionArray):
        return _plain_layout(array.storage)
    if types.is_dictionary(array.type):
        return _plain_layout(array.dictionary_decode())
    if types.is_large_list(array.type) or types.is_fixed_size_list(array.type):
        return array.cast(pa.list_(array.type.value_field))
    return array


def _project_struct(
    array: pa.Array, file_type: pa.DataType, fields: tuple[NestedField, ...], type_: StructType, path: str
) -> pa.Array:
    positions = by_field_id(file_type)
    parts = array.flatten()
    children = [
        project(parts[positions[f.id]], file_type[positions[f.id]], f, f"{path}.{f.name}")
        if f.id in positions
        else missing(f, len(array), f"{path}.{f.name}")
        for f in fields
    ]
    target = list(arrow_type(type_))
    if not target:
        return pa.array([None if null else {} for null in array.is_null().to_pylist()], pa.struct([]))
    return pa.StructArray.from_arrays(children, fields=target, mask=array.is_null())


def _project_list(array: pa.Array, file_type: pa.DataType, type_: ListType, path: str) -> pa.Array:
    offsets, first, length = child_offsets(array)
    (element,) = child_fields(type_)
    values = project(array.values.slice(first, length), file_type.value_field, element, f"{path}.element")
    return pa.ListArray.from_arrays(offsets, values, type=arrow_type(type_), mask=array.is_null())


def _project_map(array: pa.Array, file_type: pa.DataType, type_: MapType, path: str) -> pa.Array:
    offsets, first, length = child_offsets(array)
    key, value = child_fields(type_)
    keys = project(array.keys.slice(first, length), file_type.key_field, key, f"{path}.key")
    items = project(array.items.slice(first, length), file_type.item_field, value, f"{path}.value")
    return pa.MapArray.from_arrays(offsets, keys, items, type=arrow_type(type_), mask=array.is_null())


def _convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(target):
        # INT96 has no time zone, and zones other than UTC only affect display
        whole = array.cast(pa.timestamp(target.unit, array.type.tz))
        return whole.cast(pa.int64()).cast(target)
    if pa.types.is_string(target):
        # a file may declare any bytes as text: validate them
        array = array.cast(pa.binary())
    converted = array if array.type == target else array.cast(target)
    if pa.types.is_decimal(target) or pa.types.is_time(target):
        # stored integers may be out of range for their type
        converted.validate(full=True)
    return converted


def _may_have_been(found: pa.DataType, type_: IcebergType) -> bool:
    """Whether a column stored with this type can have been promoted to the table's type."""
    match type_:
        case DecimalType(_, scale):
            return bool(pa.types.is_decimal(found)) and found.scale == scale
        case FixedType(length):
            return bool(found == pa.binary(length))
        case GeometryType() | GeographyType():
            return _is_bytes(found)
    return any(fits(found) for fits in _READABLE.get(type_, ()))


def _is_bytes(found: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(found) or types.is_large_binary(found) or types.is_binary_view(found))


def _is_text(found: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(found) or types.is_large_string(found) or types.is_string_view(found))


def _is_short_integer(found: pa.DataType) -> bool:
    return found in {pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()}


_READABLE: dict[IcebergType, tuple[Callable[[pa.DataType], bool], ...]] = {
    BOOLEAN: (pa.types.is_boolean,),
    INT: (_is_short_integer,),
    LONG: (_is_short_integer, pa.types.is_int64, pa.types.is_uint32),
    FLOAT: (pa.types.is_float32,),
    DOUBLE: (pa.types.is_float32, pa.types.is_float64),
    DATE: (pa.types.is_date32,),
    TIME: (pa.types.is_time,),
    TIMESTAMP: (pa.types.is_timestamp, pa.types.is_date32),
    TIMESTAMPTZ: (pa.types.is_timestamp,),
    TIMESTAMP_NS: (pa.types.is_timestamp, pa.types.is_date32),
    TIMESTAMPTZ_NS: (pa.types.is_timestamp,),
    STRING: (_is_text, _is_bytes),
    UUID: (lambda found: found == pa.binary(16),),
    BINARY: (_is_bytes,),
}
