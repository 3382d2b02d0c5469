"""Rows written by Spark's own Parquet writer, where it writes what Iceberg needs: no row leaves the JVM.

The files are written into a directory of the job, and moved to where they belong when Spark says which count. What is
known of them comes from their footers, which have no counts of NaN.
"""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.arguments import counted
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.transforms import Void
from bergline.format.schema.physical_schema import physical_schema
from bergline.format.schema.schema import Schema
from bergline.format.types.defaults import write_value
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
    StructType,
)
from bergline.io.local import make_durable_directory, move_file, remove_directory, sync_directories, sync_file
from bergline.io.locations import join, local_path
from bergline.parquet.file.arrow_schema import arrow_schema
from bergline.parquet.read.file_metrics import FileMetrics, file_metrics
from bergline.parquet.write.metrics import split_offsets
from bergline.parquet.write.metrics_mode import MetricsModes
from bergline.parquet.write.write_spec import WriteSpec
from bergline.quoting import back_quoted, back_quoted_path
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.backend import ParquetJob, ParquetWriter
from bergline.spark.runtime.types import spark_type

_TYPES: Final = (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY)
_FIELD_ID: Final = "parquet.field.id"
_PLAIN_PLACE: Final = re.compile(r"(?:file://)?(?:/[A-Za-z0-9=_+-][A-Za-z0-9=_+.-]*)+")
_CODECS: Final = {"zstd": "zstd", "snappy": "snappy", "gzip": "gzip", "lz4": "lz4_raw", "none": "uncompressed"}
_SETTINGS: Final = {
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.writeLegacyFormat": "false",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    "spark.sql.maxConcurrentOutputFileWriters": "200",
}
_WIDTHS: Final[dict[IcebergType, int]] = {BOOLEAN: 1, INT: 4, FLOAT: 4, DATE: 4, STRING: 64, BINARY: 256}
_OTHER_WIDTH: Final = 8
_BYTES_OF_LETTER: Final = 4
_MOST_STATISTICS: Final = 1024
_THREADS: Final = 16
_TASK: Final = re.compile(r"part-([0-9]{5,})-[^/]*$")
_NO_TEXT: Final = "bergline: no UTF-8 in "


def why_not(frame: DataFrame, spec: WriteSpec) -> str | None:
    """Why Spark's own writer cannot write these rows as they must be written, or not as fast; None if it can."""
    if backend_of(frame).parquet_writer is None:
        return "the session shows no writer, or the driver may not see what executors write"
    if not _PLAIN_PLACE.fullmatch(spec.data_location):
        return f"Spark may have no access to {spec.data_location}, or spell it otherwise"
    if spec.compression not in _CODECS or (spec.options.compression_level is not None and spec.compression != "zstd"):
        return f"Spark's writer has no {spec.compression} of that level"
    if not all(isinstance(field.transform, Void) for field in spec.spec.fields):
        return "Spark's writer takes longer for each file, and a partitioned table has many"
    return _why_not_columns(frame.schema.fields, spec.schema)


def _why_not_columns(columns: Sequence[T.StructField], schema: Schema) -> str | None:
    found = {column.name: column.dataType for column in columns}
    if len({name.casefold() for name in found}) < len(columns) or not found.keys() <= {f.name for f in schema.fields}:
        return "the columns are not those of the table, or Spark might take one for another"
    for field in schema.fields:
        if not _can_write(field.type) or (field.required and isinstance(field.type, StructType)):
            return f"Spark's writer cannot write `{field.name}` of type `{field.type}`"
        if field.name not in found:
            if field.required or write_value(field) is not None or isinstance(field.type, StructType):
                return f"there is no column `{field.name}`"
        elif found[field.name].simpleString() != spark_type(field.type, field.name).simpleString():
            return f"column `{field.name}` has another type"
    return None


def _can_write(type_: IcebergType) -> bool:
    """Whether Spark's writer stores a type as Iceberg does; it sets no ids in lists and maps."""
    if isinstance(type_, StructType):
        return bool(type_.fields) and all(_can_write(f.type) and not f.required for f in type_.fields)
    return isinstance(type_, DecimalType) or type_ in _TYPES


def write_with_spark(frame: DataFrame, spec: WriteSpec, job: str) -> list[DataFile]:
    """Write rows for which there is nothing that speaks against it; an error may leave files with the id of the job."""
    writer = backend_of(frame).parquet_writer
    assert writer is not None  # `why_not` has asked  # noqa: S101
    return _SparkWrite(writer, spec, job).run(frame)


class _SparkWrite:
    """One write."""

    def __init__(self, writer: ParquetWriter, spec: WriteSpec, job: str) -> None:
        self._writer = writer
        self._spec = spec
        self._job = job
        self._directory = join(spec.data_location, job)
        self._texts = [path for path, field in _leaves(spec.schema.fields) if field.type == STRING]
        self._stored = physical_schema(spec.schema.fields)

    def run(self, frame: DataFrame) -> list[DataFile]:
        spec = self._spec
        make_durable_directory(spec.data_location)
        try:
            with self._refusals():
                written = self._writer(self._checked(frame), self._parquet_job(), _SETTINGS)
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="bergline-footers") as threads:
                found = [*threads.map(self._durable_footer, written)]
            filled = [(path, footer) for path, footer in zip(written, found, strict=True) if footer.num_rows]
            self._check_required([footer for _, footer in filled])
            files = [self._place(number, *each) for number, each in enumerate(filled)]
        finally:
            remove_directory(self._directory)
        sync_directories({file.file_path.rpartition("/")[0] for file in files})
        return files

    def _parquet_job(self) -> ParquetJob:
        spec, options = self._spec, self._spec.options
        columns = T.StructType([_with_id(field) for field in spec.schema.fields]).json()
        lengths = [spec.metrics.mode(i).bound_length for i in spec.schema.paths]
        longest = max((_MOST_STATISTICS if length is None else length for length in lengths), default=0)
        settings = {
            "compression": _CODECS[spec.compression],
            "maxRecordsPerFile": max(1, spec.target_file_size // (spec.row_bytes or _row_width(spec.schema))),
            "parquet.block.size": spec.row_group_bytes,
            "parquet.page.size": options.page_bytes,
            "parquet.dictionary.page.size": options.dictionary_bytes,
            # a bound of so many letters is exact, and the null counts of columns with long values are kept
            "parquet.statistics.truncate.length": min(_BYTES_OF_LETTER * max(longest, 16), _MOST_STATISTICS),
        }
        if options.compression_level is not None:
            settings["parquet.compression.codec.zstd.level"] = options.compression_level
        directory = f"file://{local_path(self._directory)}"
        return ParquetJob(columns, directory, {name: str(value) for name, value in settings.items()})

    def _checked(self, frame: DataFrame) -> DataFrame:
        """The columns in the table's order, with an error for text that is none."""
        names = [field.name for field in self._spec.schema.fields]
        if not self._texts and frame.columns == names:
            return frame
        given, columns = set(frame.columns), []
        for field in self._spec.schema.fields:
            name = back_quoted(field.name)
            if field.name not in given:
                columns.append(f"CAST(NULL AS {spark_type(field.type, field.name).simpleString()}) AS {name}")
                continue
            checks = [
                f"WHEN is_valid_utf8({back_quoted_path(path)}) IS FALSE THEN raise_error('{_NO_TEXT}{number}')"
                for number, path in enumerate(self._texts)
                if path[0] == field.name
            ]
            columns.append(f"CASE {' '.join(checks)} ELSE {name} END AS {name}" if checks else name)
        return backend_of(frame).select_texts(frame, columns)

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        """Say what is wrong with rows as the other writer does."""
        try:
            yield
        except PySparkException as error:
            found = re.search(f"{_NO_TEXT}([0-9]+)", str(error))
            if found is None:
                raise
            column = self._texts[int(found[1])][0]
            raise InvalidInputError(
                f"expected text in UTF-8, found other bytes in column `{column}`",
                hints=["store bytes in a BINARY column, or repair text by Spark's make_valid_utf8"],
            ) from error

    def _durable_footer(self, path: str) -> pq.FileMetaData:
        location = join(self._directory, path)
        sync_file(location)
        return pq.read_metadata(local_path(location))

    def _check_required(self, footers: Sequence[pq.FileMetaData]) -> None:
        required = [field for field in self._spec.schema.fields if field.required]
        if not required:
            return
        nulls = [self._metrics(footer, MetricsModes()).null_value_counts for footer in footers]
        for field in required:
            if found := sum(counts[field.id] for counts in nulls):
                message = f"expected values in the required column `{field.name}`, found {counted(found, 'null')}"
                raise InvalidInputError(message, condition="NOT_NULL_ASSERT_VIOLATION")

    def _place(self, number: int, path: str, footer: pq.FileMetaData) -> DataFile:
        """Give a file its name, and say what is in it."""
        spec, source = self._spec, join(self._directory, path)
        task = _TASK.search(path)
        name = f"{task[1] if task else '00000'}-0-{self._job}-{number + 1:05d}.parquet"
        partition = tuple(None for _ in spec.spec.fields)
        directory = spec.spec.partition_path(spec.schema, partition)
        location = join(spec.data_location, *([directory] if directory else []), name)
        size = move_file(source, location)
        metrics = self._metrics(footer, spec.metrics)
        return DataFile(
            file_path=location,
            file_format="PARQUET",
            partition=partition,
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
            physical_schema=self._stored,
        )

    def _metrics(self, footer: pq.FileMetaData, modes: MetricsModes) -> FileMetrics:
        schema = self._spec.schema
        return file_metrics(footer, arrow_schema(schema), schema, modes)


def _row_width(schema: Schema) -> int:
    """About how many bytes a row takes in a file before it is compressed."""
    return sum(_WIDTHS.get(field.type, _OTHER_WIDTH) for _, field in _leaves(schema.fields)) or 1


def _leaves(fields: Sequence[NestedField], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], NestedField]]:
    for field in fields:
        if isinstance(field.type, StructType):
            yield from _leaves(field.type.fields, (*path, field.name))
        else:
            yield (*path, field.name), field


def _with_id(field: NestedField) -> T.StructField:
    """A column as Spark's writer takes it; required ones are checked afterwards, so all may be null."""
    if isinstance(field.type, StructType):
        type_: T.DataType = T.StructType([_with_id(inside) for inside in field.type.fields])
    else:
        type_ = spark_type(field.type, field.name)
    return T.StructField(field.name, type_, True, {_FIELD_ID: field.id})
