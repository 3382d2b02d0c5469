"""Fitting a caller's rows to a table's schema; columns that do not fit are refused by name."""

import uuid
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from bergline.arguments import counted
from bergline.datafiles.file.arrow_schema import arrow_field, arrow_schema, is_variant
from bergline.datafiles.file.constants import constant_array
from bergline.datafiles.file.hidden_nulls import fill_hidden_nulls
from bergline.datafiles.write.input_rows import ArrowRows, as_arrow
from bergline.errors import InvalidInputError, near_names
from bergline.format.encoding.iso import parse_time
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import GeographyType, GeometryType, NestedField, StructType, child_fields, walk_fields
from bergline.format.types.wkb import box_of


def fit_to_schema(rows: ArrowRows, schema: Schema) -> pa.Table:
    """The rows with the table's columns in order and type; missing columns get their default or null."""
    table = as_arrow(rows, schema)
    _check_names(table, schema)
    columns = []
    for field in schema.fields:
        if field.name in table.column_names:
            columns.append(_fit_column(table.column(field.name), field))
        else:
            value = write_value(field)
            if value is None and field.required:
                raise InvalidInputError(f"expected the required column `{field.name}`, found {_names(table)}")
            columns.append(constant_array(field.type, value, table.num_rows))
    target = arrow_schema(schema)
    return pa.Table.from_arrays([_filled(c, f) for c, f in zip(columns, target, strict=True)], schema=target)


def _filled(column: pa.ChunkedArray | pa.Array, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if isinstance(column, pa.Array):
        return fill_hidden_nulls(column, field)
    return pa.chunked_array([fill_hidden_nulls(chunk, field) for chunk in column.chunks], column.type)


def _check_names(table: pa.Table, schema: Schema) -> None:
    known = {f.name for f in schema.fields}
    for name in table.column_names:
        if name not in known:
            near = near_names(name, known)
            raise InvalidInputError(
                f"expected columns {', '.join(f'`{f.name}`' for f in schema.fields)}, found `{name}`",
                hints=[f"did you mean {', '.join(f'`{n}`' for n in near)}?"] if near else [],
            )
    if len(set(table.column_names)) != len(table.column_names):
        raise InvalidInputError(f"expected each column once, found {_names(table)}")


def _fit_column(column: pa.ChunkedArray, field: NestedField) -> pa.ChunkedArray:
    target = arrow_field(field).type
    if pa.types.is_null(column.type):
        column = pa.chunked_array([constant_array(field.type, None, len(column))])
    if column.type != target or _has_variant(target):
        if column.num_chunks:
            chunks = [stored_form(_arrange(chunk, field), target, field.name) for chunk in column.chunks]
            column = pa.chunked_array(chunks)
        if not _may_cast(column.type, target):
            raise InvalidInputError(f"expected `{field.type}`, found `{column.type}` in column `{field.name}`")
        _check_required(column, field, field.name)
        try:
            column = pc.cast(_filled(column, pa.field(field.name, column.type)), target, safe=True)
        except pa.ArrowException as error:
            raise InvalidInputError(
                f"expected values that fit `{field.type}`, found others in column `{field.name}`: {error}"
            ) from error
    _check_required(column, field, field.name)
    try:
        column.validate(full=True)
    except pa.ArrowException as error:
        is_text = "UTF8" in str(error)
        raise InvalidInputError(
            f"expected text in UTF-8, found other bytes in column `{field.name}`: {error}"
            if is_text
            else f"expected values of `{field.type}`, found damaged ones in column `{field.name}`: {error}",
            hints=["store bytes in a BINARY column, or repair text by Spark's make_valid_utf8"] if is_text else [],
        ) from error
    _check_shapes(column, field, field.name)
    return column


def _arrange(array: pa.Array, field: NestedField) -> pa.Array:
    """Reorder the fields of structs and add missing ones with their defaults; other names stay."""
    if not isinstance(field.type, StructType) or not pa.types.is_struct(array.type):
        return array
    # not flatten(), which would make required fields below a null struct null
    parts = {f.name: array.field(position) for position, f in enumerate(array.type)}
    if not parts.keys() <= {f.name for f in field.type.fields}:
        return array
    children = {
        f.name: _arrange(parts[f.name], f) if f.name in parts else _default(f, len(array), f"{field.name}.{f.name}")
        for f in field.type.fields
    }
    required = {f.name for f in field.type.fields if f.required}
    fields = [pa.field(name, child.type, name not in required) for name, child in children.items()]
    return pa.StructArray.from_arrays(list(children.values()), fields=fields, mask=array.is_null())


def _default(field: NestedField, rows: int, path: str) -> pa.Array:
    value = write_value(field)
    if value is None and field.required:
        raise InvalidInputError(f"expected the required column `{path}`, found none")
    return constant_array(field.type, value, rows)


def _may_cast(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether a cast keeps the meaning; safe=True then refuses values that would change."""
    types = pa.types
    if types.is_null(source) or source == target:
        return True
    if isinstance(source, pa.UuidType) or isinstance(target, pa.UuidType):
        return isinstance(target, pa.UuidType) and _may_cast(source, pa.binary(16))
    if types.is_dictionary(source):
        return _may_cast(source.value_type, target)
    if types.is_timestamp(source) and types.is_timestamp(target):
        return (source.tz is None) == (target.tz is None)
    if types.is_struct(source) and types.is_struct(target):
        same = [f.name for f in source] == [f.name for f in target]
        return same and all(_may_cast(s.type, t.type) for s, t in zip(source, target, strict=True))
    if _is_any_list(source) and _is_any_list(target):
        return _may_cast(source.value_type, target.value_type)
    if types.is_map(source) and types.is_map(target):
        return _may_cast(source.key_type, target.key_type) and _may_cast(source.item_type, target.item_type)
    if types.is_float32(source) and types.is_float64(target):
        return True
    if types.is_fixed_size_binary(target):
        return bool(types.is_binary(source) or types.is_large_binary(source))
    return any(is_kind(source) and is_kind(target) for is_kind in _KINDS)


def _is_any_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_))


def _check_required(array: pa.ChunkedArray | pa.Array, field: NestedField, path: str) -> None:
    if field.required and array.null_count:
        found = counted(array.null_count, "null")
        message = f"expected values in the required column `{path}`, found {found}"
        raise InvalidInputError(message, condition="NOT_NULL_ASSERT_VIOLATION")
    children = child_fields(field.type)
    if not any(c.required or child_fields(c.type) for c in children):
        return
    for part, child in _inner_arrays(array, children):
        _check_required(part, child, f"{path}.{child.name}")


def _check_shapes(array: pa.ChunkedArray | pa.Array, field: NestedField, path: str) -> None:
    """Refuse geometries and geographies that are not well-known binary."""
    if isinstance(field.type, GeometryType | GeographyType):
        for shape in array.to_pylist():
            if shape is not None:
                try:
                    box_of(shape)
                except InvalidInputError as error:
                    raise InvalidInputError(f"{error} in column `{path}`") from error
    elif any(isinstance(f.type, GeometryType | GeographyType) for _, f in walk_fields(child_fields(field.type))):
        for part, child in _inner_arrays(array, child_fields(field.type)):
            _check_shapes(part, child, f"{path}.{child.name}")


def _inner_arrays(
    array: pa.ChunkedArray | pa.Array, children: tuple[NestedField, ...]
) -> Iterator[tuple[pa.Array, NestedField]]:
    """The arrays inside structs, lists and maps that are not null."""
    for chunk in array.chunks if isinstance(array, pa.ChunkedArray) else [array]:
        present = chunk.filter(chunk.is_valid())  # drop_null does not support UUIDs inside structs
        if pa.types.is_struct(chunk.type):
            parts = present.flatten()
        elif pa.types.is_map(chunk.type):
            first, last = present.offsets[0].as_py(), present.offsets[-1].as_py()
            parts = [part.slice(first, last - first) for part in (present.keys, present.items)]
        else:
            parts = [present.flatten()]
        yield from zip(parts, children, strict=True)


def _names(table: pa.Table) -> str:
    return ", ".join(f"`{n}`" for n in table.column_names) or "no columns"


_VERSION_BITS, _VARIANT_VERSION = 0x0F, 1
_NIL, _MIDNIGHT = str(uuid.UUID(int=0)), "00:00:00"
_MICROS_PER_SECOND = 1_000_000
_FORM = r"^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def stored_form(array: pa.Array, target: pa.DataType, column: str, hidden: pa.BooleanArray | None = None) -> pa.Array:
    """Convert text to UUIDs and times of day, bytes to fixed, and variants to our layout; InvalidInputError for others.

    `hidden` marks values below a null, where anything is allowed.
    """
    if isinstance(target, pa.UuidType) and _is_text(array.type):
        return _uuids(_shown(array, hidden, _NIL), column)
    if pa.types.is_time64(target) and _is_text(array.type):
        return _times(_shown(array, hidden, _MIDNIGHT), column)
    if pa.types.is_fixed_size_binary(target) and _is_bytes(array.type):
        return _fixed(_shown(array, hidden, bytes(target.byte_width)), target, column)
    if not _has_other_form(array.type, target):
        return array
    absent = array.is_null()
    if is_variant(target):
        return _variants(array, target, column, absent if hidden is None else pc.or_(absent, hidden))
    if pa.types.is_struct(target):
        below = absent if hidden is None else pc.or_(absent, hidden)
        children = [
            stored_form(array.field(place), field.type, f"{column}.{field.name}", below)
            for place, field in enumerate(target)
        ]
        fields = [pa.field(f.name, child.type) for f, child in zip(array.type, children, strict=True)]
        return pa.StructArray.from_arrays(children, fields=fields, mask=absent)
    whole = array.take(
        pa.array(range(len(array)), pa.int64())
    )  # the validity of a slice has a different offset than its offsets
    if hidden is not None:
        lists = pa.ListArray.from_arrays(whole.offsets, pa.nulls(whole.offsets[-1].as_py()), mask=absent)
        hidden = hidden.take(pc.list_parent_indices(lists))
    if pa.types.is_map(target):
        keys = stored_form(whole.keys, target.key_type, f"{column}.key", hidden)
        items = stored_form(whole.items, target.item_type, f"{column}.value", hidden)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, mask=absent)
    values = stored_form(whole.values, target.value_type, f"{column}.element", hidden)
    return pa.ListArray.from_arrays(whole.offsets, values, mask=absent)


def _variants(array: pa.Array, target: pa.DataType, column: str, absent: pa.BooleanArray) -> pa.Array:
    """Variants with their fields in the table's order."""
    places = {field.name: place for place, field in enumerate(array.type)}
    if places.keys() != {"metadata", "value"} or not all(_is_bytes(field.type) for field in array.type):
        raise InvalidInputError(
            f"expected `variant` as a struct of the binary fields `metadata` and `value`, found `{array.type}` "
            f"in column `{column}`"
        )
    parts = [pc.cast(array.field(places[field.name]), pa.binary()) for field in target]
    first_bytes = [pc.binary_slice(part.filter(pc.invert(absent)), 0, 1).unique().to_pylist() for part in parts]
    versions, values = first_bytes
    if not all(first and first[0] & _VERSION_BITS == _VARIANT_VERSION for first in versions) or not all(values):
        raise InvalidInputError(
            f"expected variants of encoding version {_VARIANT_VERSION}, found other bytes in column `{column}`"
        )
    filled = [pc.if_else(absent, pa.scalar(b"", pa.binary()), part) for part in parts]
    return pa.StructArray.from_arrays(filled, fields=list(target), mask=array.is_null())


def _shown(array: pa.Array, hidden: pa.BooleanArray | None, other: str | bytes) -> pa.Array:
    """The values, with a placeholder where they are hidden below a null."""
    return array if hidden is None else pc.if_else(hidden, pa.scalar(other, array.type), array)


def _times(array: pa.Array, column: str) -> pa.Array:
    try:
        micros = [
            None if text is None else parse_time(text, per_second=_MICROS_PER_SECOND) for text in array.to_pylist()
        ]
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} in column `{column}` of type `time`") from error
    return pa.array(micros, pa.int64()).cast(pa.time64("us"))


def _fixed(array: pa.Array, target: pa.DataType, column: str) -> pa.Array:
    wrong = array.filter(pc.not_equal(pc.binary_length(array), target.byte_width))
    if len(wrong):
        found = wrong[0].as_py()
        raise InvalidInputError(
            f"expected {target.byte_width} bytes, found {len(found)} ({found[:20].hex()}) in column `{column}`"
        )
    return pc.cast(array, target)


def _uuids(array: pa.Array, column: str) -> pa.Array:
    wrong = array.filter(pc.invert(pc.fill_null(pc.match_substring_regex(array, _FORM), True)))
    if len(wrong):
        raise InvalidInputError(f"expected `uuid`, found {wrong[0].as_py()!r} in column `{column}`")
    stored = [None if text is None else uuid.UUID(text).bytes for text in array.to_pylist()]
    return pa.array(stored, pa.binary(16))


def _has_other_form(source: pa.DataType, target: pa.DataType) -> bool:
    """Whether something is converted, at any level; types of another shape are refused later."""
    if isinstance(target, pa.UuidType) or pa.types.is_time64(target):
        return _is_text(source)
    if pa.types.is_fixed_size_binary(target):
        return _is_bytes(source)
    if is_variant(target):
        return bool(pa.types.is_struct(source))
    if source.num_fields != target.num_fields or not pa.types.is_nested(source) or not pa.types.is_nested(target):
        return False
    kinds = (pa.types.is_struct, pa.types.is_map, pa.types.is_list)
    if not any(is_kind(source) and is_kind(target) for is_kind in kinds):
        return False
    pairs = ((source.field(place).type, target.field(place).type) for place in range(target.num_fields))
    return any(_has_other_form(*pair) for pair in pairs)


def _has_variant(type_: pa.DataType) -> bool:
    return is_variant(type_) or any(_has_variant(type_.field(place).type) for place in range(type_.num_fields))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _is_bytes(type_: pa.DataType) -> bool:
    return bool(pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_binary_view(type_))


_KINDS: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_integer,
    pa.types.is_decimal,
    pa.types.is_date,
    pa.types.is_time,
    _is_text,
    _is_bytes,
)
