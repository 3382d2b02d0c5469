"""The part of a row engine that runs on executors, which have little more than pyarrow; imports nothing that plans."""

import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
import pyarrow as pa

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.errors import (
    AuthenticationError,
    BerglineError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from bergline.io.fileio import FileIO
from bergline.spark.writes.task import TaskAttempt, this_attempt
from bergline.table.engine.row_engine import FileChanges
from bergline.table.engine.z_order import ZOrder, z_values

_CERTAIN = (
    AuthenticationError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
"""Errors that another attempt would meet too; after all others Spark runs the task again."""


CarryOut = Callable[[Any, str, DeleteFiles], FileChanges]
"""Reads and writes files for a part of a plan: the part, a prefix for the names of new files, and known deletes."""


class RowTaskResult(msgspec.Struct, frozen=True):
    """What a task sends back of each part: names and counts, or the error (then the part left no file)."""

    changes: FileChanges
    number: int
    """Which part it is."""
    attempt: TaskAttempt
    error: BerglineError | None = None


class RowTask:
    """Carries out parts of a plan, which come as pickled pairs of a number and the part, and yields a row for each."""

    def __init__(self, io: FileIO, carry_out: CarryOut, job: str) -> None:
        self._io = io
        self._carry_out = carry_out
        self._job = job

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write; the files of an attempt have names that no other attempt uses."""
        attempt, deletes = this_attempt(), DeleteFiles(self._io)
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                number, part = pickle.loads(blob)  # noqa: S301  (we pickled it)
                prefix = f"{attempt.name}-{self._job}-{number:05d}"
                try:
                    result = RowTaskResult(self._carry_out(part, prefix, deletes), number, attempt)
                except _CERTAIN as error:
                    result = RowTaskResult(FileChanges(), number, attempt, error)
                yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


class ComputeTask:
    """Computes something from parts, which come as pickled pairs of a number and the part: a row for each part."""

    def __init__(self, io: FileIO, work: Callable[[FileIO, Any], Any]) -> None:
        self._io = io
        self._work = work

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield each part's number with its result, or with the error that another attempt would meet too."""
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                number, part = pickle.loads(blob)  # noqa: S301  (we pickled it)
                try:
                    result: tuple[int, Any, BerglineError | None] = number, self._work(self._io, part), None
                except _CERTAIN as error:
                    result = number, None, error
                yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})


Z_VALUE = "bergline z-value"
"""The column of z-order values, beside a table's own."""


class ZValueTask:
    """Adds a column of z-order values to rows, of the columns at some places."""

    def __init__(self, places: list[int], order: ZOrder) -> None:
        self._places = places
        self._order = order

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batch by batch."""
        for batch in batches:
            values = z_values([batch.column(place) for place in self._places], self._order)
            yield pa.RecordBatch.from_arrays([*batch.columns, values], [*batch.schema.names, Z_VALUE])
