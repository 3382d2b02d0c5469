"""Iceberg's types as Spark's, and back; UUIDs and times of day are text, shapes well-known binary, and nanoseconds cut.

Columns whose types Spark lacks can be in what is read: they fail only when they are asked for.
"""

from collections.abc import Iterator
from itertools import count

from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.schema.schema import Schema
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
from bergline.sql.grammar.spark_types import DEFAULT_COLLATION, collation_refusal

_PRIMITIVES: dict[IcebergType, T.DataType] = {
    BOOLEAN: T.BooleanType(),
    INT: T.IntegerType(),
    LONG: T.LongType(),
    FLOAT: T.FloatType(),
    DOUBLE: T.DoubleType(),
    DATE: T.DateType(),
    TIMESTAMP: T.TimestampNTZType(),
    TIMESTAMPTZ: T.TimestampType(),
    STRING: T.StringType(),
    BINARY: T.BinaryType(),
    VARIANT: T.VariantType(),
    # what else Spark's types stand for: new columns of these types are the ones above
    UUID: T.StringType(),
    TIME: T.StringType(),
    TIMESTAMP_NS: T.TimestampNTZType(),
    TIMESTAMPTZ_NS: T.TimestampType(),
}


def spark_schema(schema: Schema) -> T.StructType:
    """A table's columns; UnsupportedError names a column whose type Spark lacks."""
    return T.StructType([T.StructField(f.name, spark_type(f.type, f.name), not f.required) for f in schema.fields])


def read_schema(schema: Schema) -> T.StructType:
    """The columns of a read, all of which may be null, as in Spark's own tables; what it has no type for is `void`."""
    return T.StructType([_read_field(f) for f in schema.fields])


def unreadable(schema: Schema) -> dict[str, str]:
    """The columns that Spark has no type for, and why."""
    found = {}
    for field in schema.fields:
        try:
            spark_type(field.type, field.name)
        except UnsupportedError as error:
            found[field.name] = str(error)
    return found


def is_cut(type_: IcebergType) -> bool:
    """Whether values lose digits when Spark reads them, at any level."""
    return type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS) or any(is_cut(field.type) for field in child_fields(type_))


def iceberg_schema(schema: T.StructType) -> Schema:
    """The columns of a table that takes a frame's rows; all may be null, as in tables that Spark makes of queries."""
    ids = count(1)
    return Schema(
        fields=tuple(
            NestedField(next(ids), f.name, False, UNKNOWN, f.metadata.get("comment"))
            if isinstance(f.dataType, T.NullType)
            else _iceberg_field(f, ids, "")
            for f in schema.fields
        )
    )


def stored_schema(schema: T.StructType) -> Schema:
    """The same for a table that is to be written; UnsupportedError for a collation, which it could not keep."""
    for field in schema.fields:
        if (collation := _collation(field.dataType)) is not None:
            raise collation_refusal(collation, f"column `{field.name}`")
    return iceberg_schema(schema)


def _collation(type_: T.DataType) -> str | None:
    """A collation inside a type that compares otherwise than by bytes."""
    match type_:
        case T.StructType():
            return next(filter(None, (_collation(f.dataType) for f in type_)), None)
        case T.ArrayType():
            return _collation(type_.elementType)
        case T.MapType():
            return _collation(type_.keyType) or _collation(type_.valueType)
    collation = getattr(type_, "collation", DEFAULT_COLLATION)  # from Spark 4.0 on
    return None if collation == DEFAULT_COLLATION else str(collation)


def spark_type(type_: IcebergType, path: str) -> T.DataType:
    """A column's type."""
    return T.NullType() if type_ == UNKNOWN else _spark_type(type_, path)


def _spark_type(type_: IcebergType, path: str) -> T.DataType:
    match type_:
        case DecimalType(precision, scale):
            return T.DecimalType(precision, scale)
        case FixedType() | GeometryType() | GeographyType():
            return T.BinaryType()
        case StructType(fields):
            return T.StructType([_field(f, f"{path}.{f.name}") for f in fields])
        case ListType(_, element, required):
            return T.ArrayType(_spark_type(element, f"{path}.element"), not required)
        case MapType(_, key, _, value, required):
            return T.MapType(_spark_type(key, f"{path}.key"), _spark_type(value, f"{path}.value"), not required)
    if type_ not in _PRIMITIVES:
        raise UnsupportedError(f"expected a type that Spark has, found `{type_}` in column `{path}`")
    return _PRIMITIVES[type_]


def _field(field: NestedField, path: str) -> T.StructField:
    return T.StructField(field.name, _spark_type(field.type, path), not field.required)


def comment_metadata(field: NestedField) -> dict[str, str] | None:
    """The words about a column where Spark has them: in the metadata of a field."""
    return {"comment": field.doc} if field.doc else None


def _read_field(field: NestedField) -> T.StructField:
    comment = comment_metadata(field)
    try:
        return T.StructField(field.name, _nullable(spark_type(field.type, field.name)), metadata=comment)
    except UnsupportedError:
        return T.StructField(field.name, T.NullType(), metadata=comment)


def _nullable(type_: T.DataType) -> T.DataType:
    """The type with nulls at every level."""
    match type_:
        case T.StructType():
            return T.StructType([T.StructField(f.name, _nullable(f.dataType)) for f in type_])
        case T.ArrayType():
            return T.ArrayType(_nullable(type_.elementType))
        case T.MapType():
            return T.MapType(_nullable(type_.keyType), _nullable(type_.valueType))
    return type_


def _iceberg_fields(struct: T.StructType, ids: Iterator[int], path: str) -> tuple[NestedField, ...]:
    return tuple(_iceberg_field(f, ids, path) for f in struct.fields)


def _iceberg_field(field: T.StructField, ids: Iterator[int], path: str) -> NestedField:
    own, comment = next(ids), field.metadata.get("comment")
    return NestedField(own, field.name, False, _iceberg_type(field.dataType, ids, f"{path}{field.name}"), comment)


def _iceberg_type(type_: T.DataType, ids: Iterator[int], path: str) -> IcebergType:
    match type_:
        case T.DecimalType():
            return DecimalType(type_.precision, type_.scale)
        case T.StructType():
            return StructType(_iceberg_fields(type_, ids, f"{path}."))
        case T.ArrayType():
            return ListType(next(ids), _iceberg_type(type_.elementType, ids, f"{path}.element"), False)
        case T.MapType():
            key_id, value_id = next(ids), next(ids)
            key = _iceberg_type(type_.keyType, ids, f"{path}.key")
            return MapType(key_id, key, value_id, _iceberg_type(type_.valueType, ids, f"{path}.value"), False)
        case T.StringType() | T.CharType() | T.VarcharType():
            return STRING
        case T.ByteType() | T.ShortType():
            return INT
    for iceberg, spark in _PRIMITIVES.items():
        if spark == type_:
            return iceberg
    raise UnsupportedError(f"expected a type that Iceberg has, found `{type_.simpleString()}` in column `{path}`")
