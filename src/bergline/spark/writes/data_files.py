"""A DataFrame as data files: the one Parquet writer, run on Spark's executors.

A task's files are known only by what it sends back, and Spark takes that from one attempt of each task: what attempts
that failed, were repeated or lost a race have written is never committed. Few rows, by what Spark knows of a frame
before it runs, are written in this process, without a Python worker.
"""

import itertools
import logging
import pickle
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.datafiles.write.write_spec import WriteSpec, write_spec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import BerglineError
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.writes.distribution import arrange_local_rows, arrange_rows
from bergline.spark.writes.options import WriteOptions
from bergline.spark.writes.spark_writer import why_not, write_with_spark
from bergline.spark.writes.task import TaskAttempt, TaskResult, WriteTask
from bergline.table.table import Table

_AFTER_A_FAILURE_S = (0.0, 0.2, 0.5, 1.0)
_LISTED_IN_DOUBT = 10_000
"""So many files are listed in a second or two on any store."""
MOST_LOCAL_ROWS = 10_000
"""Longer lists of rows are left to Spark's tasks."""


def write_files(frame: DataFrame, table: Table, options: WriteOptions | None = None) -> list[DataFile]:
    """Write the rows of a DataFrame whose columns fit the table; only files of successful tasks are returned.

    If it fails, its files are removed as far as they can be found.
    """
    started, what = time.monotonic(), f"bergline: write to {table.name}"
    metadata = (options or WriteOptions()).applied_to(table.metadata)
    if has_local_rows(frame):
        with described_jobs(frame.sparkSession, what):
            files = _write_local_rows(frame, table.io, metadata)
        log_written(what, files, time.monotonic() - started)
        return files
    spec = write_spec(metadata)
    arranged = arrange_rows(frame, metadata)
    spec = msgspec.structs.replace(spec, sort_order_id=arranged.sort_order_id)
    files = write_arranged(arranged.frame, table.io, spec, what)
    log_written(what, files, time.monotonic() - started)
    return files


def write_arranged(
    frame: DataFrame, io: FileIO, spec: WriteSpec, what: str, *, partition: tuple[Any, ...] | None = None
) -> list[DataFile]:
    """Write rows as they are spread over tasks and ordered in them; an error leaves no file that can be found.

    Spark's own writer writes them where it can.
    """
    job = str(uuid.uuid4())
    with removed_on_failure(io, spec.data_location, job):
        if partition is None and why_not(frame, spec, io) is None:
            with described_jobs(frame.sparkSession, what):
                return write_with_spark(frame, spec, job, io)
        return _write_by_tasks(frame, io, spec, what, job=job, partition=partition)


def _write_by_tasks(
    frame: DataFrame, io: FileIO, spec: WriteSpec, what: str, *, job: str, partition: tuple[Any, ...] | None
) -> list[DataFile]:
    backend = backend_of(frame)
    prepare_executors(backend, spec.data_location)
    task = WriteTask(io, spec, job, frame.columns, partition)
    written = backend.map_in_arrow(frame, task.run, "result binary")
    with described_jobs(frame.sparkSession, what), in_small_batches(written, frame.schema) as running:
        rows = running.collect()
    results = [cast("TaskResult", pickle.loads(row.result)) for row in rows]  # noqa: S301  (our own tasks wrote it)
    files = [file for result in results for file in result.files]
    refusal = next((result.refusal for result in results if result.refusal), None)
    if refusal is not None:
        io.delete([f.file_path for f in files])
    attempts, kept = [result.attempt for result in results], [] if refusal else [f.file_path for f in files]
    remove_other_attempts(backend, io, spec.data_location, job, attempts, keep=kept)
    if refusal is not None:
        raise refusal
    return files


def has_local_rows(frame: DataFrame) -> bool:
    """Whether a frame has few rows for certain, as those of VALUES, `range` and `limit` have."""
    return backend_of(frame).is_at_hand(frame, MOST_LOCAL_ROWS)


def _write_local_rows(frame: DataFrame, io: FileIO, metadata: TableMetadata) -> list[DataFile]:
    arranged = arrange_local_rows(frame, metadata)
    spec = msgspec.structs.replace(write_spec(metadata), sort_order_id=arranged.sort_order_id)
    # `toArrow` casts what Spark gives, and fails where a struct of required fields is null
    batches = arranged.frame._collect_as_arrow()  # type: ignore[operator]  # noqa: SLF001
    with DataFileWriter(io, spec, f"00000-0-{uuid.uuid4()}") as writer:
        if batches:
            writer.write(pa.Table.from_batches(batches))
        return writer.finish()


@contextmanager
def removed_on_failure(io: FileIO, location: str, job: str) -> Iterator[None]:
    """Remove the files of a job, whose names hold its id, if the block fails."""
    try:
        yield
    except BaseException:
        for wait_s in _AFTER_A_FAILURE_S:  # tasks that run beside the one that failed end a little later
            time.sleep(wait_s)
            _remove_files(io, location, job, keep=())
        raise


def remove_other_attempts(
    backend: SparkBackend,
    io: FileIO,
    location: str,
    job: str,
    attempts: Iterable[TaskAttempt],
    *,
    keep: Iterable[str],
) -> None:
    """Remove what attempts of tasks wrote beside those that Spark took results of.

    A task or its whole stage may have failed and run again, and two attempts of a task may run side by side. The
    directory is listed unless it is certain that none did; where nobody can tell, as far as that is quick. No result of
    another attempt will be taken any more, so nothing can need its files; what it writes after this is an orphan.
    """
    known = list(attempts)
    ran_once = {backend.ran_once(stage) for stage in {attempt.stage_id for attempt in known} if stage is not None}
    all_first = all(attempt.is_first for attempt in known)
    if not all_first or not all(ran_once):
        in_doubt = all_first and None in ran_once
        _remove_files(io, location, job, keep=keep, most=_LISTED_IN_DOUBT if in_doubt else None)


def _remove_files(io: FileIO, location: str, job: str, *, keep: Iterable[str], most: int | None = None) -> None:
    """Remove the job's files that nobody will name, those that can be found; the rest are orphans."""
    kept = {normalized(path) for path in keep}
    try:
        there = [file.location for file in itertools.islice(io.list_files(location), most)]
        io.delete([path for path in there if job in path and normalized(path) not in kept])
    except BerglineError:
        return


MOST_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
MOST_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
_SMALL = {MOST_ROWS: "2000", MOST_BYTES: str(2**31 - 1)}
_BOUNDLESS = (T.BinaryType, T.ArrayType, T.MapType, T.StructType, T.VariantType, T.UserDefinedType)


@contextmanager
def in_small_batches(frame: DataFrame, columns: T.StructType) -> Iterator[DataFrame]:
    """The frame, to be run in the block so that its tasks get rows of these columns in small batches.

    The limits are settings, which are set for this frame alone where the session allows that.
    """
    spark = frame.sparkSession
    limits_set = any(spark.conf.get(name, None) is not None for name in _SMALL)
    if limits_set or any(isinstance(field.dataType, _BOUNDLESS) for field in columns):
        yield frame
        return
    with backend_of(frame).with_settings(frame, _SMALL) as running:
        yield running


_LOG = logging.getLogger("bergline.spark")


def described_jobs(spark: SparkSession, what: str) -> AbstractContextManager[None]:
    """Name the jobs of the block, on Spark's pages and wherever its progress is shown."""
    return backend_of(spark).described_jobs(what)


def log_written(what: str, files: Sequence[DataFile], seconds: float) -> None:
    """Log one line: rows, files, size and time."""
    rows, size = sum(f.record_count for f in files), sum(f.file_size_in_bytes for f in files)
    _LOG.info("%s: %s rows in %s files, %.1f MB, %.1f s", what, f"{rows:,}", f"{len(files):,}", size / 1e6, seconds)
