"""Deleted rows as frames, for joins with what Spark's own reader reads: positions by file, and keys by set of files.

Positions come as bits, one for each row of a file, by which Spark finds them without another join; where files have
too many rows for that, they come as numbers.

The delete files are read on the executors, by the reader that everything else uses; a few positions are read here.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)
from pyspark.sql.pandas.types import from_arrow_schema

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.delete.deletes import DeletedRows
from bergline.errors import FormatError, NotFoundError
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.io.fileio import FileIO
from bergline.scan.plan import KeyColumn, PlannedFile, ScanPlan
from bergline.spark.runtime.arrow_rows import in_spark
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.tasks import missing_file, task_frame
from bergline.spark.runtime.types import spark_type

MOST_READ_HERE = 100_000
"""So many deleted positions, and the delete files of so many data files, are read here, before tasks would start."""
_MOST_FILES_HERE = 32
BITS = 64
"""How many rows a number of `deleted_bits` tells of."""
_POSITIONS = pa.schema([("file", pa.int32()), ("pos", pa.int64())])
_BITS_OF_FILES = pa.schema([("file", pa.int32()), ("bits", pa.list_(pa.int64()))])


class KeySets(msgspec.Struct, frozen=True):
    """Equality deletes on the same columns: the different sets of delete files, and which each data file has."""

    columns: tuple[KeyColumn, ...]
    deletes: tuple[tuple[DataFile, ...], ...]
    sets: tuple[int | None, ...]


def deleted_positions(
    files: Sequence[PlannedFile], snapshot_id: int | None, backend: SparkBackend, io: FileIO
) -> DataFrame:
    """The deleted positions of files, which are known by their numbers here: columns `file` and `pos`."""

    def numbers(positions: PositionSet, _: int) -> pa.ChunkedArray:
        return positions.to_arrow()

    return _as_frame(_of_files(files, numbers, _POSITIONS, snapshot_id, backend=backend, io=io), _POSITIONS, backend)


def bit_frame(files: Sequence[PlannedFile], snapshot_id: int | None, backend: SparkBackend, io: FileIO) -> DataFrame:
    """The same as columns `file` and `bits`, for each file that has some: 64 rows to a number, the first one lowest."""
    found = _of_files(files, _bits, _BITS_OF_FILES, snapshot_id, backend=backend, io=io)
    return _as_frame(found, _BITS_OF_FILES, backend)


def deleted_bits(
    files: Sequence[PlannedFile], snapshot_id: int | None, backend: SparkBackend, io: FileIO
) -> list[bytes]:
    """The same for each file as bytes, brought here; nothing for a file that has none."""
    found = _of_files(files, _bits, _BITS_OF_FILES, snapshot_id, backend=backend, io=io)
    rows = found if isinstance(found, pa.Table) else found.toArrow()
    bits = [b""] * len(files)
    for number, marks in zip(rows["file"].to_pylist(), rows["bits"], strict=True):
        array = marks.values
        bits[number] = array.buffers()[1].slice(array.offset * 8, len(array) * 8).to_pybytes()
    return bits


def _bits(positions: PositionSet, rows: int) -> pa.ChunkedArray:
    length = -(-rows // BITS)
    mask = positions.to_mask(length * BITS).buffers()[1]
    marks = pa.Array.from_buffers(pa.int64(), length, [None, mask])
    return pa.chunked_array([pa.ListArray.from_arrays([0, length], marks)])


def _as_frame(found: DataFrame | pa.Table, schema: pa.Schema, backend: SparkBackend) -> DataFrame:
    if isinstance(found, pa.Table):
        return backend.spark.createDataFrame(found, from_arrow_schema(schema))
    return found


def key_sets(files: Sequence[PlannedFile], columns: Sequence[KeyColumn]) -> list[KeySets]:
    """The equality deletes of files by the columns that they compare."""
    by_ids: dict[tuple[int, ...], dict[tuple[str, ...], tuple[DataFile, ...]]] = {}
    numbers: dict[tuple[int, ...], list[int | None]] = {}
    for position, planned in enumerate(files):
        own: dict[tuple[int, ...], list[DataFile]] = {}
        for delete in planned.deletes:
            if delete.content is FileContent.EQUALITY_DELETES:
                own.setdefault(_ids(delete), []).append(delete)
        for ids, deletes in own.items():
            known = by_ids.setdefault(ids, {})
            paths = tuple(d.file_path for d in deletes)
            known.setdefault(paths, tuple(deletes))
            numbers.setdefault(ids, [None] * len(files))[position] = list(known).index(paths)
    return [
        KeySets(tuple(c for c in columns if c.field_id in ids), tuple(found.values()), tuple(numbers[ids]))
        for ids, found in by_ids.items()
    ]


def deleted_keys(keys: KeySets, plan: ScanPlan, backend: SparkBackend, io: FileIO) -> DataFrame:
    """The deleted keys of each set of delete files: columns `set`, `key0`, `key1` and so on."""
    fields = [T.StructField("set", T.IntegerType())]
    fields += [T.StructField(f"key{n}", spark_type(c.column.type, c.path[0])) for n, c in enumerate(keys.columns)]
    columns, mapping = keys.columns, plan.name_mapping
    tasks = [(number, delete) for number, deletes in enumerate(keys.deletes) for delete in deletes]

    def read(delete_files: DeleteFiles, blob: bytes) -> Iterator[pa.RecordBatch]:
        number, delete = pickle.loads(blob)  # noqa: S301  (we pickled it)
        found = [in_spark(array) for array in delete_files.keys(delete, columns, mapping)]
        arrays = [pa.repeat(pa.scalar(number, pa.int32()), len(found[0])), *found]
        yield pa.record_batch(arrays, names=["set", *(f"key{n}" for n in range(len(columns)))])

    return _map(
        tasks, read, T.StructType(fields), plan.snapshot_id, backend=backend, io=io, location=tasks[0][1].file_path
    )


def _of_files(
    files: Sequence[PlannedFile],
    column: Callable[[PositionSet, int], pa.ChunkedArray],
    schema: pa.Schema,
    snapshot_id: int | None,
    *,
    backend: SparkBackend,
    io: FileIO,
) -> DataFrame | pa.Table:
    """The numbers of files, and what `column` makes of the positions deleted in each and of how many rows it has."""
    tasks = [(n, planned.file, deletes) for n, planned in enumerate(files) if (deletes := planned.position_deletes)]

    def read(delete_files: DeleteFiles, blob: bytes) -> Iterator[pa.RecordBatch]:
        number, file, deletes = pickle.loads(blob)  # noqa: S301  (we pickled it)
        rows = DeletedRows(file.file_path, deletes, files=delete_files, key_columns=())
        rows.check_positions(file.record_count)
        for chunk in column(rows.positions, file.record_count).chunks:
            yield pa.record_batch([pa.repeat(pa.scalar(number, pa.int32()), len(chunk)), chunk], schema=schema)

    most = sum(d.record_count for _, _, deletes in tasks for d in deletes)
    if len(tasks) <= _MOST_FILES_HERE and most <= MOST_READ_HERE:
        delete_files = DeleteFiles(io)
        with _missing_named(snapshot_id):
            found = [batch for task in tasks for batch in read(delete_files, pickle.dumps(task))]
        return pa.Table.from_batches(found, schema)
    return _map(
        tasks, read, from_arrow_schema(schema), snapshot_id, backend=backend, io=io, location=files[0].file.file_path
    )


def _ids(delete: DataFile) -> tuple[int, ...]:
    if not delete.equality_ids:
        raise FormatError(f"expected equality ids, found none for {delete.file_path}")
    return tuple(sorted(set(delete.equality_ids)))


def _map(
    tasks: Sequence[object],
    read: Callable[[DeleteFiles, bytes], Iterator[pa.RecordBatch]],
    schema: T.StructType,
    snapshot_id: int | None,
    *,
    backend: SparkBackend,
    io: FileIO,
    location: str,
) -> DataFrame:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        delete_files = DeleteFiles(io)
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                with _missing_named(snapshot_id):
                    yield from read(delete_files, blob)

    return map_in_arrow(task_frame(backend, [pickle.dumps(task) for task in tasks], location), run, schema)


@contextmanager
def _missing_named(snapshot_id: int | None) -> Iterator[None]:
    """A delete file that is gone is named with the snapshot that needs it."""
    try:
        yield
    except NotFoundError as error:
        raise missing_file("delete", error.name, snapshot_id) from error
