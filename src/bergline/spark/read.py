"""A scan plan as a DataFrame, by one of two executors: Spark's own Parquet reader, or the one reader in `parquet`.

Spark's reader matches columns by name and knows nothing of Iceberg, so it is used only where names are enough. What it
does must not depend on the session's settings: they are looked at when a frame is run, not when it is made.
"""

import pickle
from collections.abc import Iterable, Iterator

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.io.schemes import SchemeFileIO
from bergline.parquet.arrow_schema import arrow_schema
from bergline.parquet.read import read_file
from bergline.scan.plan import ScanPlan, columns_to_read
from bergline.spark.filter import spark_filter
from bergline.spark.types import spark_schema
from bergline.table.scan import TableScan

# options of Spark's reader: take paths literally, and infer nothing from them
_OPTIONS = {"recursiveFileLookup": "true", "__globPaths__": "false", "datetimeRebaseMode": "CORRECTED"}
_HIDDEN = ("_", ".")


def read(scan: TableScan, spark: SparkSession) -> DataFrame:
    """A planned scan as a DataFrame."""
    return read_plan(scan.plan(), spark)


def read_plan(plan: ScanPlan, spark: SparkSession) -> DataFrame:
    """The rows of a plan."""
    if not plan.files:
        return spark.createDataFrame(arrow_schema(plan.schema).empty_table(), spark_schema(plan.schema))
    return _read_native(plan, spark) if native_refusal(plan) is None else _read_arrow(plan, spark)


def native_refusal(plan: ScanPlan) -> str | None:
    """Why Spark's own reader could give wrong rows; None if it cannot."""
    if plan.by_id_only is not None:
        return plan.by_id_only
    for planned in plan.files:
        file = planned.file
        if file.file_format != "PARQUET":
            return f"{file.file_path} is a {file.file_format} file"
        if file.file_path.rsplit("/", 1)[-1].startswith(_HIDDEN):
            return f"Spark passes over {file.file_path} because of its name"
    return None


def _read_native(plan: ScanPlan, spark: SparkSession) -> DataFrame:
    paths = [planned.file.file_path for planned in plan.files]
    rows = spark.read.schema(spark_schema(columns_to_read(plan))).options(**_OPTIONS).parquet(*paths)
    # always true, and no filter passes it: Spark would use the statistics in the files, which leave out NaN and take
    # -0.0 and 0.0 for different, and so lose rows
    rows = rows.where(F.spark_partition_id() >= 0)
    if plan.filter == ALWAYS_TRUE:
        return rows
    names = [f"`{f.name.replace('`', '``')}`" for f in plan.schema.fields]
    return rows.where(spark_filter(plan.filter, plan.table_schema)).select(*names)


def _read_arrow(plan: ScanPlan, spark: SparkSession) -> DataFrame:
    shared = msgspec.structs.replace(plan, files=())
    files = [(pickle.dumps(planned),) for planned in plan.files]
    tasks = spark.createDataFrame(files, "file binary").repartition(len(files))

    def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                yield from read_file(SchemeFileIO(), pickle.loads(blob), shared).to_batches()  # noqa: S301

    return tasks.mapInArrow(read_batches, spark_schema(plan.schema))
