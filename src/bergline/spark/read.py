"""A scan plan as a DataFrame: Spark's own Parquet reader, matching columns by field id."""

from pyspark.sql import DataFrame, SparkSession

from bergline.errors import UnsupportedError
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.parquet.arrow_schema import arrow_schema
from bergline.scan.plan import ScanPlan, columns_to_read
from bergline.spark.filter import spark_filter
from bergline.spark.types import spark_schema
from bergline.table.scan import TableScan

# options of Spark's reader: take paths literally, and infer nothing from them
_OPTIONS = {"recursiveFileLookup": "true", "__globPaths__": "false", "datetimeRebaseMode": "CORRECTED"}


def read(scan: TableScan, spark: SparkSession) -> DataFrame:
    """A planned scan as a DataFrame."""
    return read_plan(scan.plan(), spark)


def read_plan(plan: ScanPlan, spark: SparkSession) -> DataFrame:
    """The rows of a plan; UnsupportedError says why Spark's reader cannot give them."""
    reason = native_refusal(plan)
    if reason is not None:
        raise UnsupportedError(f"cannot read on Spark yet: {reason}", hints=["read with `scan.to_arrow()`"])
    if not plan.files:
        return spark.createDataFrame(arrow_schema(plan.schema).empty_table(), spark_schema(plan.schema))
    paths = [planned.file.file_path for planned in plan.files]
    rows = spark.read.schema(spark_schema(columns_to_read(plan))).options(**_OPTIONS).parquet(*paths)
    if plan.filter == ALWAYS_TRUE:
        return rows
    names = [f"`{f.name.replace('`', '``')}`" for f in plan.schema.fields]
    return rows.where(spark_filter(plan.filter, plan.table_schema)).select(*names)


def native_refusal(plan: ScanPlan) -> str | None:
    """Why Spark's own reader cannot read the plan right; None if it can."""
    for planned in plan.files:
        if planned.file.file_format != "PARQUET":
            return f"{planned.file.file_path} is a {planned.file.file_format} file"
    return None
