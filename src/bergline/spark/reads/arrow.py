"""Files read by the reader in `datafiles`, on the executors: large files by row groups, small ones together."""

import contextlib
import functools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.read.changelog import changelog_schema, read_changes
from bergline.datafiles.read.reader import read_file
from bergline.errors import NotFoundError
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.plan import FileChange, PlannedFile, ScanPlan
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.runtime.tasks import missing_file, task_frame
from bergline.spark.runtime.types import read_schema

_LARGEST_TASK = 128 * 1024 * 1024
_OPENING = 4 * 1024 * 1024
"""What opening a file costs, in bytes that could be read meanwhile."""


_Planned = TypeVar("_Planned", PlannedFile, FileChange)


class FilePart(msgspec.Struct, Generic[_Planned], frozen=True):
    """Row groups of a file: the first one, and the one to end before (None: all that are left)."""

    planned: _Planned
    first: int = 0
    end: int | None = None
    size: int = 0


_ReadPart = Callable[[FilePart[Any], FileIO, DeleteFiles], Iterator[pa.RecordBatch]]


class ReadTask(msgspec.Struct, frozen=True):
    """Parts of files that one task reads, by a plan without its files."""

    io: FileIO
    plan: ScanPlan
    parts: tuple[FilePart[PlannedFile], ...]

    def read(self) -> Iterator[pa.RecordBatch]:
        """The rows, in Spark's types."""
        return _in_spark(self.parts, functools.partial(_read_part, self.plan), self.plan.schema, self.io)


def read_arrow(plan: ScanPlan, files: Sequence[PlannedFile], backend: SparkBackend, io: FileIO) -> DataFrame:
    """The rows of files."""
    shared = msgspec.structs.replace(plan, files=())
    return _read(files, functools.partial(_read_part, shared), plan.schema, backend, io)


def read_changed_files(plan: ScanPlan, changes: Sequence[FileChange], backend: SparkBackend, io: FileIO) -> DataFrame:
    """The rows of files that snapshots added and deleted, with the columns that tell about each change."""
    return _read(changes, functools.partial(_read_changed_part, plan), changelog_schema(plan.schema), backend, io)


def _read(
    files: Sequence[_Planned], read_part: _ReadPart, schema: Schema, backend: SparkBackend, io: FileIO
) -> DataFrame:
    location = files[0].file.file_path
    tasks = pack(files, prepare_executors(backend, location))

    def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        blobs = (blob for batch in batches for blob in batch.column(0).to_pylist())
        parts = (part for blob in blobs for part in pickle.loads(blob))  # noqa: S301  (we pickled it)
        return _in_spark(parts, read_part, schema, io)

    blobs = [pickle.dumps(task) for task in tasks]
    rows, columns = sum(planned.file.record_count for planned in files), read_schema(schema)
    work = backend.with_estimate(task_frame(backend, blobs, location, len(blobs)), rows, columns)
    return map_in_arrow(work, read_batches, columns)


def _in_spark(
    parts: Iterable[FilePart[Any]], read_part: _ReadPart, schema: Schema, io: FileIO
) -> Iterator[pa.RecordBatch]:
    """The rows of parts of files, in Spark's types; delete files are read once for all parts."""
    deletes, names = DeleteFiles(io), [f.name for f in schema.fields]
    for part in parts:
        for rows in read_part(part, io, deletes):
            yield pa.record_batch([in_spark(column) for column in rows.columns], names=names)


def pack(files: Sequence[_Planned], cores: int) -> list[list[FilePart[_Planned]]]:
    """Parts of files for each task: as many tasks as there are cores or more, none of them too large."""
    total = sum(planned.file.file_size_in_bytes + _OPENING for planned in files)
    limit = min(_LARGEST_TASK, max(_OPENING, total // max(1, cores)))
    tasks: list[list[FilePart[_Planned]]] = []
    room = 0
    for planned in files:
        for part in split(planned, limit):
            cost = part.size + _OPENING
            if not tasks or cost > room:
                tasks.append([])
                room = limit
            tasks[-1].append(part)
            room -= cost
    return tasks


def split(planned: _Planned, limit: int) -> Iterator[FilePart[_Planned]]:
    """A file in parts of about a size, between row groups; the last part takes all row groups that are left."""
    size = planned.file.file_size_in_bytes
    offsets = list(planned.file.split_offsets or ())
    if size <= limit or len(offsets) < 2 or offsets != sorted(set(offsets)):  # noqa: PLR2004
        yield FilePart(planned, size=size)
        return
    first = 0
    for group in range(1, len(offsets)):
        if offsets[group] - offsets[first] >= limit:
            yield FilePart(planned, first, group, offsets[group] - offsets[first])
            first = group
    yield FilePart(planned, first, None, size - offsets[first])


def _read_part(
    plan: ScanPlan, part: FilePart[PlannedFile], io: FileIO, deletes: DeleteFiles
) -> Iterator[pa.RecordBatch]:
    with _missing_named(part.planned.file.file_path, plan.snapshot_id):
        yield from read_file(io, part.planned, plan, deletes, (part.first, part.end))


def _read_changed_part(
    plan: ScanPlan, part: FilePart[FileChange], io: FileIO, deletes: DeleteFiles
) -> Iterator[pa.RecordBatch]:
    change = part.planned
    with _missing_named(change.file.file_path, change.snapshot_id or plan.snapshot_id):
        yield from read_changes(io, change, plan, deletes, (part.first, part.end))


@contextlib.contextmanager
def _missing_named(path: str, snapshot_id: int | None) -> Iterator[None]:
    """A file that is gone is named with the snapshot that needs it."""
    try:
        yield
    except NotFoundError as error:
        if error.kind != "file":
            raise
        raise missing_file("data" if error.name == path else "delete", error.name, snapshot_id) from error
