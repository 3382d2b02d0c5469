"""Estimates, for Spark's optimizer, of how large a frame is that our tasks fill.

By itself it knows only the size of the work that tasks are given, some hundred bytes, and would broadcast any table.
"""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.backends.classic.catalyst import scala_items

_ROW_OVERHEAD = 8
"""What Spark adds to the size of each row."""
_LONG = 8


def with_estimate(work: DataFrame, rows: int, schema: T.StructType, spark: SparkSession) -> DataFrame:
    """The same work as a leaf of plans, with the statistics of the rows that tasks make of it.

    The leaf hides its shuffle from adaptive execution, which would go by the size of that shuffle.
    """
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001  (nothing public gives a frame statistics)
    session, java = spark._jsparkSession, work._jdf  # noqa: SLF001
    dealt = java.queryExecution().sparkPlan().execute()
    leaf = session.internalCreateDataFrame(dealt, java.schema(), False).queryExecution().analyzed()
    fields = [leaf.productElement(place) for place in range(leaf.productArity())]
    _, _, *others = scala_items(leaf.otherCopyArgs())  # after session and statistics; how many depends on the version
    row = jvm.org.apache.spark.sql.types.DataType.fromJson(schema.json())
    size = max(1, rows) * (int(row.defaultSize()) + _ROW_OVERHEAD)
    known = jvm.org.apache.spark.sql.execution.LogicalRDD(
        *fields, session, jvm.scala.Some(_statistics(size, spark)), *others
    )
    return ClassicDataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(session, known), spark)


def _statistics(size: int, spark: SparkSession) -> Any:
    """Spark's statistics of so many bytes, taken from a range that has them: Python has no numbers of Scala's."""
    return spark.range(-(-size // _LONG)).toDF("n")._jdf.queryExecution().analyzed().stats()  # noqa: SLF001
