"""The one writer: Arrow rows to Parquet files, split by partition and rolled at the target size."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bergline.errors import InvalidInputError, StorageError
from bergline.format.manifest import DataFile
from bergline.format.metadata import TableMetadata, positive_property
from bergline.format.partition import PartitionSpec
from bergline.format.schema import Schema
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.parquet.arrow_schema import arrow_schema
from bergline.parquet.fit import ArrowRows, fit_to_schema
from bergline.parquet.metrics import FooterMetrics, MetricsCollector
from bergline.parquet.plain import distinct_values, leaf_array

_DEFAULT_TARGET_FILE_SIZE = 512 * 1024 * 1024
_ROW_GROUP_BYTES = 64 * 1024 * 1024
_MAX_OPEN_FILES = 200
_CODECS = {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4", "uncompressed": "none"}


class WriteSpec(msgspec.Struct, frozen=True):
    """What a writer must know of a table; small enough to travel to executors."""

    schema: Schema
    spec: PartitionSpec
    data_location: str
    compression: str
    target_file_size: int

    @property
    def row_group_bytes(self) -> int:
        """How many bytes in memory become a row group."""
        return max(1, min(_ROW_GROUP_BYTES, self.target_file_size))


def write_spec(metadata: TableMetadata) -> WriteSpec:
    """How new files of a table are written."""
    codec = metadata.properties.get("write.parquet.compression-codec", "zstd").lower()
    if codec not in _CODECS:
        raise InvalidInputError(f"expected a codec of {', '.join(_CODECS)}, found `{codec}`")
    return WriteSpec(
        schema=metadata.schema,
        spec=metadata.spec,
        data_location=metadata.properties.get("write.data.path") or join(metadata.location, "data"),
        compression=_CODECS[codec],
        target_file_size=positive_property(metadata, "write.target-file-size-bytes", _DEFAULT_TARGET_FILE_SIZE),
    )


class DataFileWriter:
    """Writes rows to files whose names begin with `prefix`, which must be unique to this writer.

    Used as a context: leaving it with an error removes every file that it wrote.
    """

    def __init__(self, io: FileIO, spec: WriteSpec, prefix: str) -> None:
        self._io = io
        self._spec = spec
        self._prefix = prefix
        self._open: dict[tuple[Any, ...], _FileInProgress] = {}
        self._done: list[DataFile] = []
        self._count = 0
        self._sources = [spec.schema.paths.get(f.source_id) for f in spec.spec.fields]
        if None in self._sources:
            raise InvalidInputError("expected partition columns outside lists and maps")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_type: type[BaseException] | None, *_: object) -> None:
        if error_type is not None:
            self.abort()

    def write(self, rows: ArrowRows) -> None:
        """Add rows; they must fit the schema."""
        table = fit_to_schema(rows, self._spec.schema)
        if table.num_rows == 0:
            return
        for partition, part in self._split(table):
            for piece in _pieces(part, self._spec.row_group_bytes):
                if partition not in self._open:
                    if len(self._open) >= _MAX_OPEN_FILES:
                        self._finish(next(iter(self._open)))
                    self._open[partition] = self._start(partition)
                file = self._open[partition]
                file.write(piece)
                if file.size >= self._spec.target_file_size:
                    self._finish(partition)

    def finish(self) -> list[DataFile]:
        """Close all files and return them."""
        for partition in list(self._open):
            self._finish(partition)
        return self._done

    def abort(self) -> None:
        """Remove every file."""
        for file in self._open.values():
            file.abort()
        self._open.clear()
        self._io.delete([f.file_path for f in self._done])
        self._done.clear()

    def _finish(self, partition: tuple[Any, ...]) -> None:
        self._done.append(self._open[partition].finish())
        del self._open[partition]

    def _start(self, partition: tuple[Any, ...]) -> "_FileInProgress":
        self._count += 1
        directory = self._spec.spec.partition_path(self._spec.schema, partition)
        name = f"{self._prefix}-{self._count:05d}.parquet"
        location = join(self._spec.data_location, *([directory] if directory else []), name)
        return _FileInProgress(self._io, self._spec, partition, location)

    def _split(self, table: pa.Table) -> list[tuple[tuple[Any, ...], pa.Table]]:
        if self._spec.spec.is_unpartitioned:
            return [((), table)]
        columns = [
            _partition_column(table, path, self._transform(position))
            for position, path in enumerate(self._sources)
            if path is not None
        ]
        names = [str(n) for n in range(len(columns))]
        keys = pa.table([*(positions for _, positions in columns), pa.array(range(table.num_rows))], [*names, "row"])
        groups = keys.group_by(names, use_threads=False).aggregate([("row", "list")])
        return [
            (
                tuple(values[group[name]] for name, (values, _) in zip(names, columns, strict=True)),
                table.take(pa.array(group["row_list"])),
            )
            for group in groups.to_pylist()
        ]

    def _transform(self, position: int) -> Callable[[Any], Any]:
        field = self._spec.spec.fields[position]
        source = self._spec.schema.ids[field.source_id].type
        return lambda value: field.transform.apply(source, value)


class _FileInProgress:
    """One open Parquet file; rows are gathered up to a row group."""

    def __init__(self, io: FileIO, spec: WriteSpec, partition: tuple[Any, ...], location: str) -> None:
        self._spec = spec
        self._partition = partition
        self._location = location
        self._metrics = MetricsCollector(spec.schema)
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._output = io.create_output(location)
        try:
            with _storage_errors(location):
                self._writer = pq.ParquetWriter(
                    self._output.stream(), arrow_schema(spec.schema), compression=spec.compression, store_schema=False
                )
        except BaseException:
            self._output.abort()
            raise

    @property
    def size(self) -> int:
        """Bytes on disk so far."""
        return self._output.stream().tell()

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        self._metrics.add(table)
        self._rows += table.num_rows
        self._waiting.append(table)
        if sum(t.nbytes for t in self._waiting) >= self._spec.row_group_bytes:
            self._flush()

    def finish(self) -> DataFile:
        """Close the file and describe it."""
        self._flush()
        with _storage_errors(self._location):
            self._writer.close()
        footer = FooterMetrics(self._writer.writer.metadata, self._spec.schema)
        lower, upper = self._metrics.bounds()
        return DataFile(
            file_path=self._location,
            file_format="PARQUET",
            partition=self._partition,
            record_count=self._rows,
            file_size_in_bytes=self._output.close(),
            spec_id=self._spec.spec.spec_id,
            column_sizes=footer.column_sizes,
            value_counts=self._metrics.value_counts,
            null_value_counts=self._metrics.null_value_counts,
            nan_value_counts=self._metrics.nan_value_counts,
            lower_bounds=lower,
            upper_bounds=upper,
            split_offsets=footer.split_offsets,
            sort_order_id=0,
        )

    def abort(self) -> None:
        """Remove the file."""
        with contextlib.suppress(Exception):
            self._writer.close()
        self._output.abort()

    def _flush(self) -> None:
        if self._waiting:
            table = pa.concat_tables(self._waiting).combine_chunks()
            self._waiting.clear()
            with _storage_errors(self._location):
                self._writer.write_table(table, row_group_size=table.num_rows)


def _pieces(table: pa.Table, limit: int) -> Iterator[pa.Table]:
    """The table in slices of about `limit` bytes."""
    rows = max(1, table.num_rows * limit // max(1, table.nbytes))
    for start in range(0, table.num_rows, rows):
        yield table.slice(start, rows)


@contextlib.contextmanager
def _storage_errors(location: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {location}: {error.strerror or error}") from error


def _partition_column(
    table: pa.Table, path: tuple[str, ...], transform: Callable[[Any], Any]
) -> tuple[Mapping[int, Any], pa.Array]:
    """Partition values by number, and the number of each row; equal values share one number."""
    distinct, indices = distinct_values(leaf_array(table, path))
    numbers: dict[Any, int] = {}
    mapping = pa.array([numbers.setdefault(transform(v), len(numbers)) for v in distinct], pa.int64())
    return {n: v for v, n in numbers.items()}, mapping.take(indices)
