"""Iceberg schemas as Arrow schemas with field ids, and back."""

from itertools import count

import pyarrow as pa

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    MAX_NESTING,
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
)

FIELD_ID = b"PARQUET:field_id"
_MARK = b"variant"
_ARROW = "_arrow"
_PRIMITIVES: dict[IcebergType, pa.DataType] = {
    BOOLEAN: pa.bool_(),
    INT: pa.int32(),
    LONG: pa.int64(),
    FLOAT: pa.float32(),
    DOUBLE: pa.float64(),
    DATE: pa.date32(),
    TIME: pa.time64("us"),
    TIMESTAMP: pa.timestamp("us"),
    TIMESTAMPTZ: pa.timestamp("us", tz="UTC"),
    STRING: pa.string(),
    UUID: pa.uuid(),
    BINARY: pa.binary(),
    TIMESTAMP_NS: pa.timestamp("ns"),
    TIMESTAMPTZ_NS: pa.timestamp("ns", tz="UTC"),
    UNKNOWN: pa.null(),
    VARIANT: pa.struct(
        [pa.field("metadata", pa.binary(), False, {_MARK: b"true"}), pa.field("value", pa.binary(), False)]
    ),
}


def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a table's rows, with field ids at every level; kept with the schema."""
    kept = schema.__dict__
    if _ARROW not in kept:
        kept[_ARROW] = pa.schema([arrow_field(f) for f in schema.fields])
    return kept[_ARROW]


def arrow_field(field: NestedField) -> pa.Field:
    """One column with its field id."""
    metadata = {FIELD_ID: str(field.id).encode()}
    return pa.field(field.name, arrow_type(field.type), nullable=not field.required, metadata=metadata)


def arrow_type(type_: IcebergType) -> pa.DataType:
    """The Arrow type of a column type: geometries as WKB, variants as metadata and value."""
    match type_:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case FixedType(length):
            return pa.binary(length)
        case GeometryType() | GeographyType():
            return pa.binary()
        case StructType(fields):
            return pa.struct([arrow_field(f) for f in fields])
        case ListType(element_id, element, required):
            return pa.list_(arrow_field(NestedField(element_id, "element", required, element)))
        case MapType(key_id, key, value_id, value, required):
            return pa.map_(
                arrow_field(NestedField(key_id, "key", True, key)),
                arrow_field(NestedField(value_id, "value", required, value)),
            )
    return _PRIMITIVES[type_]


def schema_from_arrow(schema: pa.Schema) -> Schema:
    """The Iceberg schema of Arrow columns, with fresh ids; nanoseconds, nulls and variants need format version 3."""
    ids = count(1)
    return Schema(fields=tuple(_field_from_arrow(f, ids, f.name) for f in schema), schema_id=0)


def type_from_arrow(type_: pa.DataType, column: str) -> IcebergType:
    """The Iceberg type of a column's Arrow type, with fresh ids inside."""
    return _type_from_arrow(type_, count(1), column, MAX_NESTING)


def is_variant(type_: pa.DataType) -> bool:
    """Whether a struct is a variant: as in Spark, its metadata is marked."""
    if not pa.types.is_struct(type_):
        return False
    marked = {f.name for f in type_ if f.name == "value" or (f.metadata or {}).get(_MARK) == b"true"}
    return marked == {"metadata", "value"}


def file_field_id(field: pa.Field) -> int | None:
    """The field id of a column in a Parquet file."""
    text = (field.metadata or {}).get(FIELD_ID)
    return None if text is None else int(text)


def _field_from_arrow(field: pa.Field, ids: "count[int]", path: str, levels: int = MAX_NESTING) -> NestedField:
    return NestedField(next(ids), field.name, not field.nullable, _type_from_arrow(field.type, ids, path, levels))


def _type_from_arrow(type_: pa.DataType, ids: "count[int]", path: str, levels: int) -> IcebergType:
    types = pa.types
    if types.is_dictionary(type_):
        return _type_from_arrow(type_.value_type, ids, path, levels)
    if types.is_nested(type_) and not levels:
        raise InvalidInputError(
            f"expected at most {MAX_NESTING} levels of nested types, found more in column `{path.partition('.')[0]}`"
        )
    if types.is_timestamp(type_):
        if type_.unit == "ns":
            return TIMESTAMPTZ_NS if type_.tz else TIMESTAMP_NS
        return TIMESTAMPTZ if type_.tz else TIMESTAMP
    if types.is_decimal128(type_):
        return DecimalType(type_.precision, type_.scale)
    if is_variant(type_):
        return VARIANT
    if types.is_struct(type_):
        return StructType(tuple(_field_from_arrow(f, ids, f"{path}.{f.name}", levels - 1) for f in type_))
    if types.is_list(type_) or types.is_large_list(type_):
        element = type_.value_field
        element_id = next(ids)
        inside = _type_from_arrow(element.type, ids, f"{path}.element", levels - 1)
        return ListType(element_id, inside, not element.nullable)
    if types.is_map(type_):
        key_id, value_id = next(ids), next(ids)
        key = _type_from_arrow(type_.key_type, ids, f"{path}.key", levels - 1)
        value = _type_from_arrow(type_.item_type, ids, f"{path}.value", levels - 1)
        return MapType(key_id, key, value_id, value, not type_.item_field.nullable)
    for matches, found in _FROM_ARROW:
        if matches(type_):
            return FixedType(type_.byte_width) if found is None else found
    raise UnsupportedError(f"expected a type that Iceberg has, found `{type_}` in column `{path}`")


_FROM_ARROW = (
    (pa.types.is_boolean, BOOLEAN),
    (lambda t: t in {pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16()}, INT),
    (lambda t: t in {pa.int64(), pa.uint32()}, LONG),
    (pa.types.is_float32, FLOAT),
    (pa.types.is_float64, DOUBLE),
    (pa.types.is_date, DATE),
    (pa.types.is_time, TIME),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t), STRING),
    (lambda t: isinstance(t, pa.UuidType), UUID),
    (pa.types.is_fixed_size_binary, None),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t), BINARY),
    (pa.types.is_null, UNKNOWN),
)
