"""The types that columns have when Spark reads them: what Spark lacks fails only when it is asked for."""

from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.errors import UnsupportedError
from bergline.format.schema.schema import Schema
from bergline.format.types.types import UNKNOWN, NestedField
from bergline.spark.runtime.types import spark_schema


def read_schema(schema: Schema) -> T.StructType:
    """The columns of a read; those that Spark has no type for are `void`."""
    return T.StructType([_field(f) for f in schema.fields])


def unreadable(schema: Schema) -> dict[str, str]:
    """The columns that Spark has no type for, and why."""
    found = {}
    for field in schema.fields:
        if field.type != UNKNOWN:
            try:
                spark_schema(Schema(fields=(field,)))
            except UnsupportedError as error:
                found[field.name] = str(error)
    return found


def _field(field: NestedField) -> T.StructField:
    try:
        return spark_schema(Schema(fields=(field,)))[0]
    except UnsupportedError:
        return T.StructField(field.name, T.NullType(), True)
