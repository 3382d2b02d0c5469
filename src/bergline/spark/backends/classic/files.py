"""Files that Spark's own Parquet reader looks up, and whether it can open those on S3."""

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.backends.classic.java_classes import static_member

PARQUET_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""Spark's reader by its class: what `parquet` means depends on a setting, and the other one numbers no rows."""
_SEPARATOR = "\n"

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_S3A_SETTINGS = ("fs.s3a.access.key", "fs.s3a.aws.credentials.provider", "fs.s3a.endpoint", "fs.s3a.endpoint.region")
_S3A_PREFIX = "fs.s3a."
_PER_BUCKET = "fs.s3a.bucket."
_DEFAULTS = "core-default.xml"

NO_CONNECTOR = "Spark has no S3A connector (hadoop-aws) to read files on S3"
NO_SETTINGS = "Spark's S3A connector has no settings: no fs.s3a credentials, endpoint or region"


def load_files(reader: DataFrameReader, paths: Sequence[str], spark: SparkSession) -> DataFrame:
    """The rows of Parquet files, each of which Spark looks up; paths are without line breaks."""
    split = static_member(spark, "org.apache.commons.lang3.StringUtils", "split")  # PySpark would send them one by one
    array = split(_SEPARATOR.join(paths), _SEPARATOR)
    return ClassicDataFrame(reader.format(PARQUET_FORMAT)._jreader.load(array), spark)  # noqa: SLF001


def count_files(rows: DataFrame) -> int:
    """How many files Spark found for what `load_files` gave."""
    relation: Any = rows._jdf.queryExecution().analyzed().collectLeaves().head().relation()  # noqa: SLF001
    return int(relation.location().allFiles().size())


def s3a_refusal(spark: SparkSession) -> str | None:
    """Why Spark's own reader cannot open files on S3; None if it can."""
    if not static_member(spark, "org.apache.spark.util.Utils", "classIsLoadable")(_S3A):
        return NO_CONNECTOR
    settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  (what its reader will see)
    if any(_was_set(settings, key) for key in _S3A_SETTINGS) or not settings.getPropsWithPrefix(_PER_BUCKET).isEmpty():
        return None
    return NO_SETTINGS


def s3a_settings(spark: SparkSession, bucket: str, names: Iterable[str]) -> dict[str, str]:
    """S3A's settings for a bucket: its own take precedence over those for all buckets."""
    settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001
    own = {_S3A_PREFIX + k: str(v) for k, v in settings.getPropsWithPrefix(f"{_PER_BUCKET}{bucket}.").items()}
    found = {name: own.get(name) or settings.get(name) for name in names}
    return {name: str(value) for name, value in found.items() if value}


def _was_set(settings: Any, key: str) -> bool:
    """Whether somebody set a value; Hadoop has defaults of its own for some."""
    if not settings.get(key):
        return False
    sources = settings.getPropertySources(key)
    return sources is None or [*sources] != [_DEFAULTS]
