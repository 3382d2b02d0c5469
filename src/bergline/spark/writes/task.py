"""The part of a write that runs on executors, which have little more than pyarrow: it imports nothing that plans."""

import pickle
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext

from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.format.manifest.manifest import DataFile
from bergline.io.fileio import FileIO

_GATHERED_ROWS = 50_000
_GATHERED_BYTES = 16 * 1024 * 1024


class TaskAttempt(msgspec.Struct, frozen=True):
    """Which attempt of a task something was done by."""

    name: str = "00000-0"
    """The task's partition and a number that no other attempt has: files of the attempt begin with it."""
    stage_id: int | None = None
    is_first: bool = True
    """Whether it is the first one in this attempt of its stage: a stage that runs again counts from the beginning."""


def this_attempt() -> TaskAttempt:
    """The attempt that this process is running."""
    context = TaskContext.get()
    if context is None:
        return TaskAttempt()
    name = f"{context.partitionId():05d}-{context.taskAttemptId()}"
    return TaskAttempt(name, context.stageId(), context.attemptNumber() == 0)


class TaskResult(msgspec.Struct, frozen=True):
    """What a task returns: its files, or why the rows were refused (then it left no file)."""

    files: list[DataFile]
    attempt: TaskAttempt
    refusal: BerglineError | None = None


class WriteTask:
    """Writes the rows of a task, whose columns are given their `names`, and yields the result as one row of bytes.

    With a `partition`, all rows belong to it.
    """

    def __init__(
        self, io: FileIO, spec: WriteSpec, job: str, names: list[str], partition: tuple[Any, ...] | None = None
    ) -> None:
        self._io = io
        self._spec = spec
        self._job = job
        self._names = names
        self._partition = partition

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write; the files of an attempt have names that no other attempt uses."""
        named = (batch.rename_columns(self._names) for batch in batches)
        result = self._write(named, this_attempt())
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})

    def _write(self, batches: Iterable[pa.RecordBatch], attempt: TaskAttempt) -> TaskResult:
        refusal = None
        files: list[DataFile] = []
        try:
            prefix = f"{attempt.name}-{self._job}"
            with DataFileWriter(self._io, self._spec, prefix, partition=self._partition) as writer:
                for rows in gathered(batches, self._spec.row_group_bytes):
                    writer.write(rows)
                files = writer.finish()
        except (InvalidInputError, UnsupportedError) as error:
            refusal = error
        for _ in batches:  # the rest must still be consumed, or Spark sees a broken pipe
            pass
        return TaskResult(files, attempt, refusal)


def gathered(batches: Iterable[pa.RecordBatch], most_bytes: int) -> Iterator[pa.Table]:
    """The same rows in tables that are large enough to be worth the cost of a call."""
    most_bytes = min(most_bytes, _GATHERED_BYTES)
    waiting: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.get_total_buffer_size()  # nbytes crashes on Spark's empty lists inside of empty lists
        if rows >= _GATHERED_ROWS or size >= most_bytes:
            yield _combined(waiting)
            waiting, rows, size = [], 0, 0
    if waiting:
        yield _combined(waiting)


def _combined(batches: list[pa.RecordBatch]) -> pa.Table:
    """One chunk a column; lists are built again, which gives offsets to those inside others that Spark sent without."""
    table = pa.Table.from_batches(batches)
    for position, field in enumerate(table.schema):
        if pa.types.is_nested(field.type):
            chunks = [chunk.filter(pa.repeat(pa.scalar(True), len(chunk))) for chunk in table.column(position).chunks]
            table = table.set_column(position, field, pa.chunked_array(chunks, field.type))
    return table.combine_chunks()
