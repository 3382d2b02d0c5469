"""Iceberg's types as Spark's."""

from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.schema import Schema
from bergline.format.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

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
}


def spark_schema(schema: Schema) -> T.StructType:
    """A table's columns; UnsupportedError names a column whose type Spark lacks."""
    return T.StructType([_field(f, f.name) for f in schema.fields])


def spark_type(type_: IcebergType, path: str) -> T.DataType:
    """A column's type."""
    match type_:
        case DecimalType(precision, scale):
            return T.DecimalType(precision, scale)
        case FixedType():
            return T.BinaryType()
        case StructType(fields):
            return T.StructType([_field(f, f"{path}.{f.name}") for f in fields])
        case ListType(_, element, required):
            return T.ArrayType(spark_type(element, f"{path}.element"), not required)
        case MapType(_, key, _, value, required):
            return T.MapType(spark_type(key, f"{path}.key"), spark_type(value, f"{path}.value"), not required)
    if type_ not in _PRIMITIVES:
        raise UnsupportedError(f"expected a type that Spark has, found `{type_}` in column `{path}`")
    return _PRIMITIVES[type_]


def _field(field: NestedField, path: str) -> T.StructField:
    return T.StructField(field.name, spark_type(field.type, path), not field.required)
