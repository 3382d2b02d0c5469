"""A scan plan as a DataFrame: each group of its files by one of two executors, which must give the same rows."""

from functools import reduce

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.format.schema import Schema
from bergline.io.fileio import FileIO
from bergline.parquet.arrow_schema import arrow_schema
from bergline.scan.plan import ScanPlan
from bergline.spark.arrow_rows import in_spark
from bergline.spark.read_arrow import read_arrow
from bergline.spark.read_errors import remember_scan
from bergline.spark.read_groups import ReadGroup, native_refusal, read_groups
from bergline.spark.read_native import read_native
from bergline.spark.read_stores import s3a_refusal
from bergline.spark.read_types import read_schema, unreadable
from bergline.table.scan import TableScan

__all__ = ["native_refusal", "read", "read_plan"]


def read(scan: TableScan, spark: SparkSession) -> DataFrame:
    """A planned scan as a DataFrame."""
    remember_scan(scan)
    return read_plan(scan.plan(), spark, scan.io)


def read_plan(plan: ScanPlan, spark: SparkSession, io: FileIO) -> DataFrame:
    """The rows of a plan; the executors get the storage."""
    lacking = unreadable(plan.schema)
    if lacking:
        kept = tuple(f for f in plan.schema.fields if f.name not in lacking)
        rows = _read(msgspec.structs.replace(plan, schema=Schema(fields=kept)), spark, io)
        # Spark drops the columns that nobody asks for, and what they would have said
        return rows.select(
            *(
                F.raise_error(F.lit(lacking[f.name])).alias(f.name)
                if f.name in lacking
                else F.col(f"`{f.name.replace('`', '``')}`")
                for f in plan.schema.fields
            )
        )
    return _read(plan, spark, io)


def _read(plan: ScanPlan, spark: SparkSession, io: FileIO) -> DataFrame:
    frames = [_read_group(group, plan, spark, io) for group in read_groups(plan, s3a_refusal(spark))]
    if not frames:
        columns = [in_spark(pa.nulls(0, field.type)) for field in arrow_schema(plan.schema)]
        rows = pa.table(columns, names=[f.name for f in plan.schema.fields])
        return spark.createDataFrame(rows, read_schema(plan.schema))
    return reduce(DataFrame.unionAll, frames)


def _read_group(group: ReadGroup, plan: ScanPlan, spark: SparkSession, io: FileIO) -> DataFrame:
    if group.executor == "native":
        return read_native(plan, group, spark, io)
    return read_arrow(plan, group.files, spark, io)
