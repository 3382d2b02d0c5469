"""Which storage Spark's own reader can reach: local files always, S3 through its S3A connector where there is one."""

from typing import Any

from pyspark.sql import SparkSession

_CONNECTOR = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_SETTINGS = ("fs.s3a.access.key", "fs.s3a.aws.credentials.provider", "fs.s3a.endpoint", "fs.s3a.endpoint.region")
_PER_BUCKET = "fs.s3a.bucket."
_DEFAULTS = "core-default.xml"

NO_CONNECTOR = "Spark has no S3A connector (hadoop-aws) to read files on S3"
NO_SETTINGS = "Spark's S3A connector has no settings: no fs.s3a credentials, endpoint or region"
NO_SESSION = "no session says whether Spark can read files on S3"


def s3a_refusal(spark: SparkSession | None) -> str | None:
    """Why Spark's own reader cannot open files on S3; None if it can."""
    if not isinstance(spark, SparkSession):
        return NO_SESSION
    context = spark.sparkContext
    classes: Any = context._jvm.org.apache.spark.util.Utils  # type: ignore[union-attr]  # noqa: SLF001
    if not classes.classIsLoadable(_CONNECTOR):
        return NO_CONNECTOR
    settings = spark._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001  (what its reader will see)
    if any(_was_set(settings, key) for key in _SETTINGS) or not settings.getPropsWithPrefix(_PER_BUCKET).isEmpty():
        return None
    return NO_SETTINGS


def _was_set(settings: Any, key: str) -> bool:
    """Whether somebody set a value; Hadoop has defaults of its own for some."""
    if not settings.get(key):
        return False
    sources = settings.getPropertySources(key)
    return sources is None or [*sources] != [_DEFAULTS]
