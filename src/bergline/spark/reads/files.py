"""Many files handed to Spark's Parquet reader at once."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.runtime.connect import over_connect

_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""Spark's reader by its class: what `parquet` means depends on a setting, and the other one numbers no rows."""
_SEPARATOR = "\n"
_THRESHOLD = "spark.sql.sources.parallelPartitionDiscovery.threshold"
_LISTED_BY_DRIVER = "1000000"
"""A job that looks at local files takes much longer than looking; on object stores the driver alone would be slow."""


def lasting_settings(spark: SparkSession) -> dict[str, str]:
    """What a session must be told for as long as it reads: a Connect server looks up files when frames run."""
    return {_THRESHOLD: _LISTED_BY_DRIVER} if over_connect(spark) else {}


def load_paths(reader: DataFrameReader, paths: Sequence[str], spark: SparkSession) -> DataFrame:
    """The rows of Parquet files; paths are without line breaks."""
    if over_connect(spark):
        return reader.parquet(*paths)
    jvm = spark.sparkContext._jvm  # noqa: SLF001  (PySpark would send each path in a call of its own)
    split = jvm.org.apache.commons.lang3.StringUtils.split  # type: ignore[union-attr]
    array, load = split(_SEPARATOR.join(paths), _SEPARATOR), reader.format(_FORMAT)._jreader.load  # noqa: SLF001
    if paths[0].startswith("file:") and len(paths) > int(str(spark.conf.get(_THRESHOLD))):
        first = ClassicDataFrame(load(split(paths[0], _SEPARATOR)), spark)
        return _listed_by_driver(first, array, spark)
    return ClassicDataFrame(load(array), spark)


def count_files(rows: DataFrame) -> int:
    """How many files Spark found for what `load_paths` gave."""
    return int(_relation(rows).location().allFiles().size())


def _listed_by_driver(first: DataFrame, paths: Any, spark: SparkSession) -> DataFrame:
    """The rows of many files, read as the first of them is; another session looks them up, by a setting of its own.

    What the user has set reaches it by options: the credentials of a file system may be among them.
    """
    session: Any = spark._jsparkSession  # noqa: SLF001  (no option of a read says who looks up its files)
    relation: Any = _relation(first)
    options = relation.options().removed("path")
    lookup = session.newSession()
    lookup.conf().set(_THRESHOLD, _LISTED_BY_DRIVER)
    reader = lookup.read().format(_FORMAT).schema("unused INT")
    files = reader.options(session.conf().getAll()).options(options).load(paths)
    location = _relation(ClassicDataFrame(files, spark)).location()
    every = relation.copy(
        location,
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        options,
        session,
    )
    return ClassicDataFrame(session.baseRelationToDataFrame(every), spark)


def _relation(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed().collectLeaves().head().relation()  # noqa: SLF001
