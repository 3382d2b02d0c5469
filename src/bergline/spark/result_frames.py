"""The frames that statements of ours answer with."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.arrow_rows import arrow_frame
from bergline.spark.connect import over_connect


def result_frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """The rows that a statement gave."""
    return arrow_frame(spark, rows) if rows.num_columns else no_result(spark)


def no_result(spark: SparkSession) -> DataFrame:
    """No columns and no rows, without a Spark job to find that out."""
    if over_connect(spark):
        return spark.range(0).select()
    return ClassicDataFrame(spark._jsparkSession.emptyDataFrame(), spark)  # noqa: SLF001
