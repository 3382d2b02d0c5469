"""The batches in which rows come from Spark to the tasks that write them.

Spark 4.1 measures a batch after every row, so that it stays below 64 MB; that takes longer than all else on the way.
Rows of numbers and texts come in batches so small that they need no measuring; who set Spark's limits is obeyed.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.connect import over_connect

MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_SMALL = {MOST_ROWS: "2000", MOST_BYTES: str(2**31 - 1)}
_BOUNDLESS = (T.BinaryType, T.ArrayType, T.MapType, T.StructType, T.VariantType, T.UserDefinedType)


@contextmanager
def in_small_batches(frame: DataFrame, columns: T.StructType) -> Iterator[DataFrame]:
    """The frame, to be run in the block so that its tasks get rows of these columns in small batches.

    The limits are settings: the frame runs in a clone of its session, where nobody else runs anything. Its jobs have
    the session's tag, so that `spark.interruptAll()` finds them.
    """
    spark = frame.sparkSession
    limits_set = any(spark.conf.get(name, None) is not None for name in _SMALL)
    if limits_set or over_connect(spark) or any(isinstance(field.dataType, _BOUNDLESS) for field in columns):
        yield frame
        return
    session: Any = spark._jsparkSession  # noqa: SLF001  (nothing public clones a session, nor runs a plan in it)
    clone = session.cloneSession()
    for name, value in _SMALL.items():
        clone.conf().set(name, value)
    jvm: Any = spark.sparkContext._jvm  # noqa: SLF001
    plan = frame._jdf.queryExecution().analyzed()  # noqa: SLF001
    context, tag = spark.sparkContext, str(session.sessionJobTag())
    context.addJobTag(tag)
    try:
        yield ClassicDataFrame(jvm.org.apache.spark.sql.classic.Dataset.ofRows(clone, plan), spark)
    finally:
        context.removeJobTag(tag)
