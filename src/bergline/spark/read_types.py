"""The types that columns have when Spark reads them: UUIDs are text, and what Spark lacks fails only when asked for."""

import msgspec
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.schema import Schema
from bergline.format.types import STRING, UNKNOWN, UUID, IcebergType, ListType, MapType, NestedField, StructType
from bergline.spark.types import spark_schema


def read_schema(schema: Schema) -> T.StructType:
    """The columns of a read; those that Spark has no type for are `void`."""
    return T.StructType([_field(f) for f in schema.fields])


def unreadable(schema: Schema) -> dict[str, str]:
    """The columns that Spark has no type for, and why."""
    found = {}
    for field in schema.fields:
        if field.type != UNKNOWN:
            try:
                spark_schema(Schema(fields=(_as_read(field),)))
            except UnsupportedError as error:
                found[field.name] = str(error)
    return found


def _field(field: NestedField) -> T.StructField:
    try:
        return spark_schema(Schema(fields=(_as_read(field),)))[0]
    except UnsupportedError:
        return T.StructField(field.name, T.NullType(), True)


def _as_read(field: NestedField) -> NestedField:
    return msgspec.structs.replace(field, type=_type_as_read(field.type))


def _type_as_read(type_: IcebergType) -> IcebergType:
    match type_:
        case StructType(fields):
            return StructType(tuple(_as_read(f) for f in fields))
        case ListType(element_id, element, required):
            return ListType(element_id, _type_as_read(element), required)
        case MapType(key_id, key, value_id, value, required):
            return MapType(key_id, _type_as_read(key), value_id, _type_as_read(value), required)
    return STRING if type_ == UUID else type_
