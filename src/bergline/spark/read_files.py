"""Many files handed to Spark's Parquet reader at once."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.connect import over_connect

_LOCK = threading.Lock()
_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""Spark's reader by its class: what `parquet` means depends on a setting, and the other one numbers no rows."""
_SEPARATOR = "\n"
_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTED_BY_DRIVER = {"file:": "1000000", "s3a:": "32"}
"""A job that looks at local files takes much longer than looking; on object stores the driver alone would be slow."""


def lasting_settings(spark: SparkSession) -> dict[str, str]:
    """What a session must be told for as long as it reads: a Connect server looks up files when frames run."""
    return {_THRESHOLD: _LISTED_BY_DRIVER["file:"]} if over_connect(spark) else {}


def load_paths(reader: DataFrameReader, paths: Sequence[str], spark: SparkSession) -> DataFrame:
    """The rows of Parquet files; paths are without line breaks."""
    if over_connect(spark):
        return reader.parquet(*paths)
    jvm = spark.sparkContext._jvm  # noqa: SLF001  (PySpark would send each path in a call of its own)
    array = jvm.org.apache.commons.lang3.StringUtils.split(_SEPARATOR.join(paths), _SEPARATOR)  # type: ignore[union-attr]
    with _listed_from(paths[0], spark):
        return ClassicDataFrame(reader.format(_FORMAT)._jreader.load(array), spark)  # noqa: SLF001


def count_files(rows: DataFrame) -> int:
    """How many files Spark found for what `load_paths` gave."""
    relation = rows._jdf.queryExecution().analyzed().collectLeaves().head().relation()  # noqa: SLF001
    return int(relation.location().allFiles().size())


@contextmanager
def _listed_from(path: str, spark: SparkSession) -> Iterator[None]:
    """The setting counts only while files are looked up, and for speed alone."""
    with _LOCK:  # or one thread would put back what another has set
        before = spark.conf.get(_THRESHOLD)
        spark.conf.set(_THRESHOLD, next(n for scheme, n in _LISTED_BY_DRIVER.items() if path.startswith(scheme)))
        try:
            yield
        finally:
            spark.conf.set(_THRESHOLD, str(before))
