"""Arrow rows as a DataFrame, with the types and nullability that Iceberg's columns have in Spark."""

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from bergline.datafiles.file.arrow_schema import is_variant, schema_from_arrow
from bergline.format.encoding.iso import render_time
from bergline.spark.runtime.types import spark_schema

_MICROS_PER_SECOND = 1_000_000


def arrow_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows in Spark, which has no UUIDs: they become text."""
    fields, columns = [], []
    for field, column in zip(rows.schema, rows.columns, strict=True):
        array = in_spark(column.combine_chunks() if rows.num_rows else pa.nulls(0, column.type))
        fields.append(pa.field(field.name, array.type, nullable=field.nullable))
        columns.append(array)
    table = pa.Table.from_arrays(columns, schema=pa.schema(fields))
    return spark.createDataFrame(table, spark_schema(schema_from_arrow(table.schema)))


def in_spark(array: pa.Array) -> pa.Array:
    """The same values in types that Spark has: UUIDs and times of day as text, fixed as binary, no nanoseconds."""
    type_ = array.type
    if isinstance(type_, pa.UuidType):
        return pa.array([None if value is None else str(value) for value in array.to_pylist()], pa.string())
    if pa.types.is_fixed_size_binary(type_):
        return array.cast(pa.binary())
    if pa.types.is_time64(type_):
        return _times_as_text(array)
    if _has_nanoseconds(type_):
        return _cut_to_microseconds(array)
    if not _differs(type_):
        return array
    absent = array.is_null()
    if is_variant(type_):
        fields = [type_.field("value"), type_.field("metadata")]
        return pa.StructArray.from_arrays([array.field(f.name) for f in fields], fields=fields, mask=absent)
    if pa.types.is_struct(type_):
        arrays = [in_spark(child) for child in array.flatten()]
        fields = [pa.field(f.name, a.type, nullable=f.nullable) for f, a in zip(type_, arrays, strict=True)]
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=absent)
    whole = array.take(pa.array(range(len(array)), pa.int64()))  # a slice has its nulls elsewhere than its offsets
    if pa.types.is_map(type_):
        keys, items = in_spark(whole.keys), in_spark(whole.items)
        item = pa.field("value", items.type, nullable=type_.item_field.nullable)
        return pa.MapArray.from_arrays(whole.offsets, keys, items, type=pa.map_(keys.type, item), mask=absent)
    values = in_spark(whole.values)
    element = pa.field("element", values.type, nullable=type_.value_field.nullable)
    return pa.ListArray.from_arrays(whole.offsets, values, type=pa.list_(element), mask=absent)


def _times_as_text(array: pa.Array) -> pa.Array:
    micros = array.cast(pa.time64("us")).cast(pa.int64()).to_pylist()
    texts = [None if value is None else render_time(value, per_second=_MICROS_PER_SECOND) for value in micros]
    return pa.array(texts, pa.string())


def _cut_to_microseconds(array: pa.Array) -> pa.Array:
    """The whole microseconds before each time, also before 1970."""
    plain = array.cast(pa.int64()).cast(pa.timestamp("ns"))
    micros = pc.floor_temporal(plain, unit="microsecond").cast(pa.timestamp("us"))
    return micros.cast(pa.int64()).cast(pa.timestamp("us", tz=array.type.tz))


def _has_nanoseconds(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_)) and type_.unit == "ns"


def _differs(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.UuidType) or pa.types.is_fixed_size_binary(type_) or pa.types.is_time64(type_):
        return True
    if _has_nanoseconds(type_) or is_variant(type_):
        return True
    return any(_differs(type_.field(i).type) for i in range(type_.num_fields))
