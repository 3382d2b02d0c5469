"""Files for Spark's own Parquet reader: many handed over at once, and whether it can open those on S3."""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

from bergline.spark.backends.classic.known_files import known_index
from bergline.spark.runtime.backend import LISTED_BY_DRIVER, LISTING_THRESHOLD

_FORMAT = "org.apache.spark.sql.execution.datasources.parquet.ParquetFileFormat"
"""Spark's reader by its class: what `parquet` means depends on a setting, and the other one numbers no rows."""
_SEPARATOR, _PATH = "\n", "path"
MOST_LOOKED_UP = 32
"""So many files Spark looks up by itself, and says at once if one is not there."""

_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_S3A_SETTINGS = ("fs.s3a.access.key", "fs.s3a.aws.credentials.provider", "fs.s3a.endpoint", "fs.s3a.endpoint.region")
_PER_BUCKET = "fs.s3a.bucket."
_DEFAULTS = "core-default.xml"

NO_CONNECTOR = "Spark has no S3A connector (hadoop-aws) to read files on S3"
NO_SETTINGS = "Spark's S3A connector has no settings: no fs.s3a credentials, endpoint or region"


def load_files(reader: DataFrameReader, paths: Sequence[str], sizes: Sequence[int], spark: SparkSession) -> DataFrame:
    """The rows of Parquet files of known sizes; paths are without line breaks."""
    jvm = spark.sparkContext._jvm  # noqa: SLF001  (PySpark would send each path in a call of its own)
    split = jvm.org.apache.commons.lang3.StringUtils.split  # type: ignore[union-attr]
    load = reader.format(_FORMAT)._jreader.load  # noqa: SLF001
    if len(paths) > MOST_LOOKED_UP and min(sizes) > 0:
        index = known_index(paths, sizes, _FORMAT, spark)
        if index is not None:
            return _relocated(ClassicDataFrame(load(split(paths[0], _SEPARATOR)), spark), index, spark)
    array = split(_SEPARATOR.join(paths), _SEPARATOR)
    if paths[0].startswith("file:") and len(paths) > int(str(spark.conf.get(LISTING_THRESHOLD))):
        first = ClassicDataFrame(load(split(paths[0], _SEPARATOR)), spark)
        return _listed_by_driver(first, array, spark)
    return ClassicDataFrame(load(array), spark)


def count_files(rows: DataFrame) -> int:
    """How many files Spark found for what `load_files` gave."""
    return int(_relation(rows).location().allFiles().size())


def s3a_refusal(spark: SparkSession) -> str | None:
    """Why Spark's own reader cannot open files on S3; None if it can."""
    context = spark.sparkContext
    classes: Any = context._jvm.org.apache.spark.util.Utils  # type: ignore[union-attr]  # noqa: SLF001
    if not classes.classIsLoadable(_S3A):
        return NO_CONNECTOR
    settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  (what its reader will see)
    if any(_was_set(settings, key) for key in _S3A_SETTINGS) or not settings.getPropsWithPrefix(_PER_BUCKET).isEmpty():
        return None
    return NO_SETTINGS


def _listed_by_driver(first: DataFrame, paths: Any, spark: SparkSession) -> DataFrame:
    """The rows of many files, read as the first of them is; another session looks them up, by a setting of its own.

    What the user has set reaches it by options: the credentials of a file system may be among them.
    """
    session: Any = spark._jsparkSession  # noqa: SLF001  (no option of a read says who looks up its files)
    relation: Any = _relation(first)
    options = relation.options().removed(_PATH)
    lookup = session.newSession()
    lookup.conf().set(LISTING_THRESHOLD, LISTED_BY_DRIVER)
    reader = lookup.read().format(_FORMAT).schema("unused INT")
    files = reader.options(session.conf().getAll()).options(options).load(paths)
    return _relocated(first, _relation(ClassicDataFrame(files, spark)).location(), spark)


def _relocated(first: DataFrame, location: Any, spark: SparkSession) -> DataFrame:
    """The rows of the files in an index, read as the first of them is."""
    session: Any = spark._jsparkSession  # noqa: SLF001
    relation: Any = _relation(first)
    every = relation.copy(
        location,
        relation.partitionSchema(),
        relation.dataSchema(),
        relation.bucketSpec(),
        relation.fileFormat(),
        relation.options().removed(_PATH),
        session,
    )
    return ClassicDataFrame(session.baseRelationToDataFrame(every), spark)


def _relation(rows: DataFrame) -> Any:
    return rows._jdf.queryExecution().analyzed().collectLeaves().head().relation()  # noqa: SLF001


def _was_set(settings: Any, key: str) -> bool:
    """Whether somebody set a value; Hadoop has defaults of its own for some."""
    if not settings.get(key):
        return False
    sources = settings.getPropertySources(key)
    return sources is None or [*sources] != [_DEFAULTS]
