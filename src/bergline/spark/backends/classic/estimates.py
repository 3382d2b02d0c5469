"""How large a frame is that tasks of ours fill, told to Spark's optimizer.

Of its own it knows the size of the work that is dealt out, some hundred bytes, and would broadcast any table in joins.
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
    """The same work as a leaf of plans, for which Spark reckons with the rows that are made of it.

    The leaf ends in a shuffle that adaptive execution does not see: it would go by the size of the shuffle.
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
