"""Spark's own Parquet writer, called as it is: rows become files in a directory without a Python task.

Spark's commit protocol for streams logs the files of the task attempts that count, each once, and moves none.
"""

import tempfile
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors.exceptions.captured import UnknownException, convert_exception
from pyspark.sql import DataFrame, SparkSession

from bergline.spark.backends.classic.java_classes import (
    bound_call,
    new_object,
    scala_map,
    scala_object,
    static_member,
)
from bergline.spark.runtime.backend import ParquetFile, ParquetJob

_EXECUTION: Final = "org.apache.spark.sql.execution"
_WRITER: Final = f"{_EXECUTION}.datasources.FileFormatWriter"
_PROTOCOL: Final = f"{_EXECUTION}.streaming.ManifestFileCommitProtocol"
_FORMAT: Final = f"{_EXECUTION}.datasources.parquet.ParquetFileFormat"
_LOGS: Final = (f"{_EXECUTION}.streaming.sinks.FileStreamSinkLog", f"{_EXECUTION}.streaming.FileStreamSinkLog")
"""What Spark calls the list of files that a stream has written, since 4.1 and before."""
# Hadoop would put a file of checksums beside each, and by default has one file system for all, with the first settings
_FILES: Final = {"fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem", "fs.file.impl.disable.cache": "true"}
_ENCRYPTION: Final = "parquet.crypto.factory.class"
"""By which the user's own Parquet files are encrypted: the table would not know."""
_WRITE_FAILED: Final = "TASK_WRITE_FAILED"


def write_parquet(frame: DataFrame, job: ParquetJob, spark: SparkSession) -> list[ParquetFile]:
    """Write a frame; the files of those attempts that Spark took."""
    execution = frame._jdf.queryExecution()  # noqa: SLF001  (nothing public takes a protocol of commits)
    session = execution.sparkSession()
    options = scala_map(spark, [*job.options.items()])
    settings = _hadoop_settings(spark, session, job, options)
    with tempfile.TemporaryDirectory(prefix="bergline-") as directory:
        committer = new_object(spark, _PROTOCOL, "bergline", job.directory)
        committer.setupManifestOptions(_log(spark, session, f"file://{directory}/log"), 0)
        columns = _attributes(spark, job.columns)
        nothing = static_member(spark, "scala.collection.immutable.Nil", "empty")()
        write = bound_call(
            spark,
            _WRITER,
            "write",
            [
                session,
                execution.executedPlan(),
                new_object(spark, _FORMAT),
                committer,
                new_object(spark, f"{_WRITER}$OutputSpec", job.directory, scala_map(spark, []), columns),
                settings,
                nothing,
                static_member(spark, "scala.Option", "empty")(),
                nothing,
                options,
                0,
                getattr(scala_object(spark, _WRITER), "write$default$12")(),
            ],
        )
        name = new_object(spark, "scala.Some", "bergline")
        try:
            scala_object(spark, f"{_EXECUTION}.SQLExecution").withNewExecutionId(execution, name, write)
        except Py4JJavaError as error:
            raise _plain(error) from None
        return _written(Path(directory, "log", "0").read_bytes(), job.directory)


def _hadoop_settings(spark: SparkSession, session: Any, job: ParquetJob, options: Any) -> Any:
    """The Hadoop settings that tasks get. Each task unpacks them one by one, so local files do without the hundreds.

    S3A needs them: they hold its defaults, and it buffers files on local disks, with checksums.
    """
    if not job.directory.startswith("file:"):
        settings = session.sessionState().newHadoopConfWithOptions(options)
        settings.unset(_ENCRYPTION)
        return settings
    settings = new_object(spark, "org.apache.hadoop.conf.Configuration", False)  # without defaults
    for name, value in (*job.options.items(), *_FILES.items()):
        settings.set(name, value)
    return settings


class _LoggedFile(msgspec.Struct):
    """A line of the log."""

    path: str
    size: int


def _written(log: bytes, directory: str) -> list[ParquetFile]:
    _, *lines = log.splitlines()
    start = f"/{directory.rsplit('/', 1)[1]}/"
    files = (msgspec.json.decode(line, type=_LoggedFile) for line in lines)
    return [ParquetFile(unquote(file.path).partition(start)[2], file.size) for file in files]


def _log(spark: SparkSession, session: Any, location: str) -> Any:
    none = static_member(spark, "scala.Option", "empty")()
    for name in _LOGS[:-1]:
        try:
            return new_object(spark, name, 1, session, location, none)
        except Py4JError:  # another Spark
            continue
    return new_object(spark, _LOGS[-1], 1, session, location, none)


def _attributes(spark: SparkSession, columns: str) -> Any:
    schema = static_member(spark, "org.apache.spark.sql.types.DataType", "fromJson")(columns)
    return scala_object(spark, "org.apache.spark.sql.catalyst.types.DataTypeUtils").toAttributes(schema)


def _plain(error: Py4JJavaError) -> Exception:
    """What went wrong with the rows, without what the writer says around it."""
    cause, inner = error.java_exception, None
    while cause is not None:
        if _WRITE_FAILED in str(cause.getMessage()) or inner is None:
            inner = cause.getCause()
        cause = cause.getCause()
    converted: Exception | None = None if inner is None else convert_exception(inner)
    return error if converted is None or isinstance(converted, UnknownException) else converted
