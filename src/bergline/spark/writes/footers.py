"""What the files that Spark's own writer wrote are: from their footers, read by threads here or by tasks.

Its functions run in tasks, so it imports nothing that plans or commits.
"""

import pickle
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.read.file_metrics import FileMetrics, file_metrics
from bergline.datafiles.write.metrics import split_offsets
from bergline.datafiles.write.metrics_mode import MetricsModes
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.physical_schema import physical_schema
from bergline.io.fileio import FileIO
from bergline.io.local import sync_file
from bergline.io.locations import local_path, scheme_of
from bergline.spark.runtime.arrow_tasks import map_in_arrow
from bergline.spark.runtime.backend import SparkBackend
from bergline.spark.runtime.tasks import task_frame

_THREADS: Final = 16
_FILE_IN_COLUMNS: Final = 20
"""Opening a file costs about as much as what is said of so many columns."""
_MOST_COLUMNS_HERE: Final = 50_000
"""Two or three seconds of this process; tasks take about one to start."""
_FILES_PER_TASK: Final = 100


class FileByFooter(msgspec.Struct, frozen=True):
    """A file, and how many nulls are in each required column; nothing is said of a file without rows."""

    file: DataFile
    nulls: dict[str, int]


def stored_files(io: FileIO, spec: WriteSpec, found: Sequence[tuple[str, int]]) -> list[FileByFooter]:
    """Files at locations, of so many bytes; local ones are made durable."""
    reader = _FooterReader(io, spec)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="bergline-footers") as threads:
        footers = [*threads.map(reader.footer, (location for location, _ in found))]
    return [reader.stored(*each, footer) for each, footer in zip(found, footers, strict=True)]


def read_stored(
    backend: SparkBackend, io: FileIO, spec: WriteSpec, found: Sequence[tuple[str, int]]
) -> list[FileByFooter]:
    """The same, by tasks where there are so many objects that these are faster."""
    columns = len(found) * (_FILE_IN_COLUMNS + len(spec.schema.ids))
    if columns <= _MOST_COLUMNS_HERE or scheme_of(spec.data_location) == "file":
        return stored_files(io, spec, found)

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                first, part = pickle.loads(blob)  # noqa: S301  (we pickled it)
                stored = pickle.dumps((first, stored_files(io, spec, part)))
                yield pa.record_batch([pa.array([stored], pa.binary())], names=["stored"])

    parts = [pickle.dumps((n, found[n : n + _FILES_PER_TASK])) for n in range(0, len(found), _FILES_PER_TASK)]
    rows = map_in_arrow(task_frame(backend, parts, spec.data_location), read, "stored binary").collect()
    results = sorted(pickle.loads(row.stored) for row in rows)  # noqa: S301  (our own tasks wrote it)
    return [each for _, part in results for each in part]


class _FooterReader:
    def __init__(self, io: FileIO, spec: WriteSpec) -> None:
        self._io = io
        self._spec = spec
        self._columns = arrow_schema(spec.schema)
        self._physical = physical_schema(spec.schema.fields)
        self._required = [field for field in spec.schema.fields if field.required]

    def footer(self, location: str) -> pq.FileMetaData:
        if scheme_of(location) == "file":
            sync_file(location)
            return pq.read_metadata(local_path(location))
        with self._io.open_input(location) as stream:
            return pq.read_metadata(stream)

    def stored(self, location: str, size: int, footer: pq.FileMetaData) -> FileByFooter:
        spec, metrics = self._spec, self._metrics(footer, self._spec.metrics)
        required = self._required if footer.num_rows else []
        # a metrics mode may leave counts out
        counts = self._metrics(footer, MetricsModes()).null_value_counts if required else {}
        file = DataFile(
            file_path=location,
            file_format="PARQUET",
            partition=tuple(None for _ in spec.spec.fields),
            record_count=footer.num_rows,
            file_size_in_bytes=size,
            spec_id=spec.spec.spec_id,
            column_sizes=metrics.column_sizes,
            value_counts=metrics.value_counts,
            null_value_counts=metrics.null_value_counts,
            nan_value_counts={},
            lower_bounds=metrics.lower_bounds,
            upper_bounds=metrics.upper_bounds,
            split_offsets=split_offsets(footer),
            sort_order_id=spec.sort_order_id,
            physical_schema=self._physical,
        )
        return FileByFooter(file, {field.name: counts[field.id] for field in required})

    def _metrics(self, footer: pq.FileMetaData, modes: MetricsModes) -> FileMetrics:
        return file_metrics(footer, self._columns, self._spec.schema, modes)
