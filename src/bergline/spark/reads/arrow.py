"""Files read by the one reader in `parquet`, on the executors: large files by row groups, small ones together."""

import pickle
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame

from bergline.errors import NotFoundError
from bergline.io.fileio import FileIO
from bergline.parquet.delete.delete_files import DeleteFiles
from bergline.parquet.read.reader import read_file
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.executors import prepare_executors
from bergline.spark.runtime.tasks import missing_file, task_frame
from bergline.spark.runtime.types import read_schema

_LARGEST_TASK = 128 * 1024 * 1024
_OPENING = 4 * 1024 * 1024
"""What opening a file costs, in bytes that could be read meanwhile."""


class FilePart(msgspec.Struct, frozen=True):
    """Row groups of a file: the first one, and the one to end before (None: all that are left)."""

    planned: PlannedFile
    first: int = 0
    end: int | None = None
    size: int = 0


def read_arrow(plan: ScanPlan, files: Sequence[PlannedFile], backend: SparkBackend, io: FileIO) -> DataFrame:
    """The rows of files."""
    shared = msgspec.structs.replace(plan, files=())
    location = files[0].file.file_path
    tasks = pack(files, prepare_executors(backend, location))
    names = [f.name for f in plan.schema.fields]

    def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        deletes = DeleteFiles(io)
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                for part in pickle.loads(blob):  # noqa: S301  (we pickled it)
                    for rows in _read_part(io, part, shared, deletes):
                        yield pa.record_batch([in_spark(column) for column in rows.columns], names=names)

    blobs = [pickle.dumps(task) for task in tasks]
    return task_frame(backend, blobs, location, len(blobs)).mapInArrow(read_batches, read_schema(plan.schema))


def pack(files: Sequence[PlannedFile], cores: int) -> list[list[FilePart]]:
    """Parts of files for each task: as many tasks as there are cores or more, none of them too large."""
    total = sum(planned.file.file_size_in_bytes + _OPENING for planned in files)
    limit = min(_LARGEST_TASK, max(_OPENING, total // max(1, cores)))
    tasks: list[list[FilePart]] = []
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


def split(planned: PlannedFile, limit: int) -> Iterator[FilePart]:
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


def _read_part(io: FileIO, part: FilePart, plan: ScanPlan, deletes: DeleteFiles) -> Iterator[pa.RecordBatch]:
    try:
        yield from read_file(io, part.planned, plan, deletes, (part.first, part.end))
    except NotFoundError as error:
        if error.kind != "file":
            raise
        kind = "data" if error.name == part.planned.file.file_path else "delete"
        raise missing_file(kind, error.name, plan.snapshot_id) from error
