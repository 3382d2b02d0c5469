"""A DataFrame as data files: the one Parquet writer, run on Spark's executors.

A task's files are known only by what it sends back, and Spark takes that from one attempt of each task: what attempts
that failed, were repeated or lost a race have written is never committed.
"""

import pickle
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from typing import cast

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame

from bergline.errors import BerglineError, InvalidInputError
from bergline.format.manifest import DataFile
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.parquet.write import DataFileWriter
from bergline.parquet.write_spec import WriteSpec, write_spec
from bergline.spark.write_distribution import arrange_rows
from bergline.spark.write_options import WriteOptions
from bergline.spark.write_progress import described_jobs, log_written
from bergline.table.table import Table


class TaskResult(msgspec.Struct, frozen=True):
    """What a task sends back: its files, or why the rows were refused (then it left no file)."""

    files: list[DataFile]
    refusal: str | None = None
    was_repeated: bool = False
    """Whether an earlier attempt failed, which may have left files."""


def write_files(frame: DataFrame, table: Table, options: WriteOptions | None = None) -> list[DataFile]:
    """Write the rows of a DataFrame whose columns fit the table; only files of successful tasks come back.

    If it fails, its files are removed as far as they can be found.
    """
    job, started, what = str(uuid.uuid4()), time.monotonic(), f"bergline: write to {table.name}"
    metadata = (options or WriteOptions()).applied_to(table.metadata)
    arranged = arrange_rows(frame, metadata)
    spec = msgspec.structs.replace(write_spec(metadata), sort_order_id=arranged.sort_order_id)
    # numbered columns on the way: Spark takes a dot in a name for a struct
    numbered = arranged.frame.toDF(*(f"_{i}" for i in range(len(frame.columns))))
    try:
        with described_jobs(frame.sparkSession, what):
            rows = numbered.mapInArrow(_task(table.io, spec, job, frame.columns), "result binary").collect()
    except BaseException:
        _remove_files(table, spec, job, keep=())
        raise
    results = [cast("TaskResult", pickle.loads(row.result)) for row in rows]  # noqa: S301  (our own tasks wrote it)
    files = [file for result in results for file in result.files]
    if refusals := [result.refusal for result in results if result.refusal]:
        table.io.delete([f.file_path for f in files])
        raise InvalidInputError(refusals[0])
    if any(result.was_repeated for result in results):
        _remove_files(table, spec, job, keep=files)
    log_written(what, files, time.monotonic() - started)
    return files


def _task(
    io: FileIO, spec: WriteSpec, job: str, names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        named = (batch.rename_columns(names) for batch in batches)
        result = _write_batches(named, io, spec, f"{partition:05d}-{attempt}-{job}")
        if context and context.attemptNumber() > 0:
            result = msgspec.structs.replace(result, was_repeated=True)
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})

    return write


def _write_batches(batches: Iterable[pa.RecordBatch], io: FileIO, spec: WriteSpec, prefix: str) -> TaskResult:
    refusal = None
    files: list[DataFile] = []
    try:
        with DataFileWriter(io, spec, prefix) as writer:
            for batch in batches:
                writer.write(batch)
            files = writer.finish()
    except InvalidInputError as error:
        refusal = str(error)
    for _ in batches:  # a refusal must still take in the rest, or Spark sees a broken pipe
        pass
    return TaskResult(files, refusal)


def _remove_files(table: Table, spec: WriteSpec, job: str, *, keep: Iterable[DataFile]) -> None:
    """Remove the job's files that nobody will name, those that can be found; the rest are orphans."""
    kept = {normalized(f.file_path) for f in keep}
    try:
        found = [f for f in table.io.list(spec.data_location) if job in f and normalized(f) not in kept]
        table.io.delete(found)
    except BerglineError:
        return
