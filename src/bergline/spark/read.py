"""A scan plan as a DataFrame, by one of two executors: Spark's own Parquet reader, or the one reader in `parquet`.

Spark's reader matches columns by name and knows nothing of Iceberg, so it is used only where names are enough. What it
does must not depend on the session's settings: they are looked at when a frame is run, not when it is made.
"""

import pickle
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.reserved import RESERVED_IDS
from bergline.format.types import DOUBLE, FLOAT, NestedField, StructType, walk_fields
from bergline.io.fileio import FileIO
from bergline.io.locations import scheme_of
from bergline.parquet.arrow_schema import arrow_schema
from bergline.parquet.delete_files import DeleteFiles
from bergline.parquet.read import read_file
from bergline.scan.plan import ScanPlan, columns_to_read
from bergline.spark.filter import spark_filter
from bergline.spark.types import spark_schema
from bergline.table.scan import TableScan

# options of Spark's reader: take paths literally, infer nothing from them, and never pass over a file
_OPTIONS = {
    "recursiveFileLookup": "true",
    "__globPaths__": "false",
    "datetimeRebaseMode": "CORRECTED",
    "ignoreMissingFiles": "false",
    "ignoreCorruptFiles": "false",
}
_HIDDEN = ("_", ".")
_TASKS_PER_CORE = 4


def read(scan: TableScan, spark: SparkSession) -> DataFrame:
    """A planned scan as a DataFrame."""
    return read_plan(scan.plan(), spark, scan.io)


def read_plan(plan: ScanPlan, spark: SparkSession, io: FileIO) -> DataFrame:
    """The rows of a plan; the executors get the storage."""
    if not plan.files:
        return spark.createDataFrame(arrow_schema(plan.schema).empty_table(), spark_schema(plan.schema))
    return _read_native(plan, spark) if native_refusal(plan) is None else _read_arrow(plan, spark, io)


def native_refusal(plan: ScanPlan) -> str | None:
    """Why Spark's own reader could give wrong rows; None if it cannot."""
    if plan.by_id_only is not None:
        return plan.by_id_only
    if reserved := [f.name for f in plan.schema.fields if f.id in RESERVED_IDS]:
        return f"Spark's reader knows no `{reserved[0]}`"
    for planned in plan.files:
        file = planned.file
        if file.file_format != "PARQUET":
            return f"{file.file_path} is a {file.file_format} file"
        if file.key_metadata is not None:
            return f"{file.file_path} is encrypted"
        if scheme_of(file.file_path) != "file":
            return f"Spark may have no access to {file.file_path}"
        if file.file_path.rsplit("/", 1)[-1].startswith(_HIDDEN):
            return f"Spark passes over {file.file_path} because of its name"
        if planned.deletes:
            return f"{file.file_path} has deleted rows"
    return None


def _read_native(plan: ScanPlan, spark: SparkSession) -> DataFrame:
    paths = [planned.file.file_path for planned in plan.files]
    columns = columns_to_read(plan)
    rows = spark.read.schema(spark_schema(columns)).options(**_OPTIONS).parquet(*paths)
    rows = rows.select(*(_shielded(f) for f in columns.fields))
    if plan.filter == ALWAYS_TRUE:
        return rows
    return rows.where(spark_filter(plan.filter, plan.table_schema)).select(*(_column(f) for f in plan.schema.fields))


def _shielded(field: NestedField) -> Column:
    """A column whose filters Spark does not push into files if it holds floats, by an expression that changes nothing.

    Statistics in files leave out NaN, and dictionaries take -0.0 and 0.0 for different: rows would be lost.
    """
    column = _column(field)
    if field.type in (FLOAT, DOUBLE):
        return F.nanvl(column, column).alias(field.name)
    if isinstance(field.type, StructType) and any(f.type in (FLOAT, DOUBLE) for _, f in walk_fields(field.type.fields)):
        return F.when(column.isNotNull(), column).alias(field.name)
    return column


def _column(field: NestedField) -> Column:
    return F.col(f"`{field.name.replace('`', '``')}`")


def _read_arrow(plan: ScanPlan, spark: SparkSession, io: FileIO) -> DataFrame:
    shared = msgspec.structs.replace(plan, files=())
    files = [(pickle.dumps(planned),) for planned in plan.files]
    tasks = min(len(files), _TASKS_PER_CORE * spark.sparkContext.defaultParallelism)
    target = _without_fixed(pa.struct(list(arrow_schema(plan.schema))))

    def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        deletes = DeleteFiles(io)
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                planned = pickle.loads(blob)  # noqa: S301  (we pickled it)
                for rows in read_file(io, planned, shared, deletes):
                    yield rows.cast(pa.schema(list(target)))

    return (
        spark.createDataFrame(files, "file binary")
        .repartition(tasks)
        .mapInArrow(read_batches, spark_schema(plan.schema))
    )


def _without_fixed(type_: pa.DataType) -> pa.DataType:
    """The same type with plain binary for fixed: Spark has no other."""
    types = pa.types
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if types.is_struct(type_):
        return pa.struct([f.with_type(_without_fixed(f.type)) for f in type_])
    if types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_without_fixed(type_.value_type)))
    if types.is_map(type_):
        key, item = type_.key_field, type_.item_field
        return pa.map_(key.with_type(_without_fixed(key.type)), item.with_type(_without_fixed(item.type)))
    return type_
