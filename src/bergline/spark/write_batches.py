"""The batches in which rows come from Spark to the tasks that write them.

Spark 4.1 measures a batch after every row, so that it stays below 64 MB; that takes longer than all else on the way.
Rows of numbers and texts come in batches so small that they need no measuring; who set Spark's limits is obeyed.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.spark.patched_classes import session_id

MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_SMALL = {MOST_ROWS: "2000", MOST_BYTES: str(2**31 - 1)}
_BOUNDLESS = (T.BinaryType, T.ArrayType, T.MapType, T.StructType, T.VariantType, T.UserDefinedType)

_lock = threading.Lock()
_in_use: dict[str, int] = {}
"""How many writes of a session go on with the settings."""


@contextmanager
def small_batches(spark: SparkSession, columns: T.StructType) -> Iterator[None]:
    """Spark's settings while rows of these columns are sent; several writes of a session may be under way."""
    key = session_id(spark)
    if any(isinstance(field.dataType, _BOUNDLESS) for field in columns) or not _enter(spark, key):
        yield
        return
    try:
        yield
    finally:
        _leave(spark, key)


def _enter(spark: SparkSession, key: str) -> bool:
    """Make the settings, unless the user has made them."""
    with _lock:
        if not _in_use.get(key):
            if any(spark.conf.get(name, None) is not None for name in _SMALL):
                return False
            for name, value in _SMALL.items():
                spark.conf.set(name, value)
        _in_use[key] = _in_use.get(key, 0) + 1
        return True


def _leave(spark: SparkSession, key: str) -> None:
    with _lock:
        _in_use[key] -= 1
        if not _in_use[key]:
            del _in_use[key]
            for name in _SMALL:
                spark.conf.unset(name)
