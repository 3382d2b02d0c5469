"""A DataFrame as data files: the one Parquet writer, run on Spark's executors."""

import pickle
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
from bergline.parquet.write import DataFileWriter
from bergline.parquet.write_spec import WriteSpec, write_spec
from bergline.table.table import Table


class TaskResult(msgspec.Struct, frozen=True):
    """What a task sends back: its files, or why the rows were refused (then it left no file)."""

    files: list[DataFile]
    refusal: str | None = None


def write_files(frame: DataFrame, table: Table) -> list[DataFile]:
    """Write the rows of a DataFrame whose columns fit the table; only files of successful tasks come back."""
    job = str(uuid.uuid4())
    spec = write_spec(table.metadata)
    try:
        # numbered columns on the way: Spark takes a dot in a name for a struct
        numbered = frame.toDF(*(f"_{i}" for i in range(len(frame.columns))))
        rows = numbered.mapInArrow(_task(table.io, spec, job, frame.columns), "result binary").collect()
    except Exception:
        _remove_files(table, spec, job)
        raise
    results = [cast("TaskResult", pickle.loads(row.result)) for row in rows]  # noqa: S301  (our own tasks wrote it)
    files = [file for result in results for file in result.files]
    refusals = [result.refusal for result in results if result.refusal]
    if refusals:
        table.io.delete([f.file_path for f in files])
        raise InvalidInputError(refusals[0])
    return files


def _task(
    io: FileIO, spec: WriteSpec, job: str, names: list[str]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def write(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        partition, attempt = (context.partitionId(), context.taskAttemptId()) if context else (0, 0)
        named = (batch.rename_columns(names) for batch in batches)
        result = _write_batches(named, io, spec, f"{partition:05d}-{attempt}-{job}")
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


def _remove_files(table: Table, spec: WriteSpec, job: str) -> None:
    """The job failed and nothing names its files: remove those that can be found."""
    try:
        table.io.delete([f for f in table.io.list(spec.data_location) if job in f])
    except BerglineError:
        return
