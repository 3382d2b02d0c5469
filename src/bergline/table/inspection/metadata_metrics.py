"""`readable_metrics`: what files say of each of a table's columns, as values that people can read."""

import polars as pl
import pyarrow as pa

from bergline.format.schema import Schema
from bergline.format.types import VARIANT, IcebergType, NestedField, child_fields
from bergline.parquet.arrow_schema import arrow_type
from bergline.scan.file_metrics import column_metrics, values_of
from bergline.table.inspection.metadata_arrow import column_array, struct_array, value_array


def metrics_type(schema: Schema) -> pa.StructType:
    """A struct of metrics for each column, nested ones by their dotted names."""
    return pa.struct([pa.field(name, _column_type(field.type)) for name, field in _columns(schema)])


def metrics_array(files: pl.DataFrame, schema: Schema) -> pa.Array:
    """The metrics of files, a row each."""
    columns = [_column_array(files, field) for _, field in _columns(schema)]
    return struct_array(columns, metrics_type(schema), files.height)


def _columns(schema: Schema) -> list[tuple[str, NestedField]]:
    """The columns that hold values themselves, in the order of Java's strings."""
    leaves = ((n, f) for n, f in schema.names.items() if not child_fields(f.type) and f.type != VARIANT)
    return sorted(leaves, key=lambda column: column[0].encode("utf-16-be"))


def _column_type(type_: IcebergType) -> pa.StructType:
    counts = ("column_size", "value_count", "null_value_count", "nan_value_count")
    bound = arrow_type(type_)
    return pa.struct([*((name, pa.int64()) for name in counts), ("lower_bound", bound), ("upper_bound", bound)])


def _column_array(files: pl.DataFrame, field: NestedField) -> pa.Array:
    found = column_metrics(files, field.id, field.type)
    counts = (values_of(files["column_sizes"], field.id), found.value_count, found.null_count, found.nan_count)
    arrays = [
        *(column_array(count, pa.int64()) for count in counts),
        value_array(found.lower, field.type),
        value_array(found.upper, field.type),
    ]
    return struct_array(arrays, _column_type(field.type), files.height)
