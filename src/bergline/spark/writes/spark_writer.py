"""Rows written by Spark's own Parquet writer, where it writes what Iceberg needs: no row leaves the JVM.

The files are written into a directory of the job. Spark says which of them count: local ones are moved to where they
belong, objects stay. What is known of them comes from their footers, which have no counts of NaN.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as T  # noqa: N812  (the name that Spark users know)

from bergline.arguments import counted
from bergline.datafiles.write.write_spec import WriteSpec
from bergline.errors import BerglineError, InvalidInputError
from bergline.format.manifest.manifest import DataFile
from bergline.format.partition.transforms import Void
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
from bergline.io.fileio import FileIO
from bergline.io.local import LocalFileIO, make_durable_directory, move_file, remove_directory, sync_directories
from bergline.io.locations import join, local_path, normalized, scheme_of
from bergline.quoting import back_quoted, back_quoted_path
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.backend import ParquetJob, SparkBackend
from bergline.spark.runtime.types import spark_type
from bergline.spark.writes.footers import FileByFooter, read_stored
from bergline.spark.writes.s3a import s3a_write_refusal

_TYPES: Final = (BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIMESTAMP, TIMESTAMPTZ, STRING, BINARY)
_FIELD_ID: Final = "parquet.field.id"
_PLAIN_PLACE: Final = re.compile(
    r"(?:(?:file://)?|(?P<object>s3a?://[a-z0-9][a-z0-9.-]*))(?:/[A-Za-z0-9=_+-][A-Za-z0-9=_+.-]*)+"
)
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
_TASK: Final = re.compile(r"part-([0-9]{5,})-[^/]*$")
_NEVER_EMPTY: Final = "_job"
_NO_TEXT: Final = "bergline: no UTF-8 in "


def why_not(frame: DataFrame, spec: WriteSpec, io: FileIO | None = None) -> str | None:
    """Why Spark's own writer cannot write these rows as they must be written, or not as fast; None if it can.

    On object stores it can only if the table's storage is given.
    """
    if backend_of(frame).parquet_writer is None:
        return "the session shows no writer"
    if spec.compression not in _CODECS or (spec.options.compression_level is not None and spec.compression != "zstd"):
        return f"Spark's writer has no {spec.compression} of that level"
    if not all(isinstance(field.transform, Void) for field in spec.spec.fields):
        return "Spark's writer takes longer for each file, and a partitioned table has many"
    return _why_not_columns(frame.schema.fields, spec.schema) or _why_not_there(backend_of(frame), spec, io)


def _why_not_there(backend: SparkBackend, spec: WriteSpec, io: FileIO | None) -> str | None:
    place = _PLAIN_PLACE.fullmatch(spec.data_location)
    if place is None or (place["object"] and io is None):
        return f"Spark may have no access to {spec.data_location}, or spell it otherwise"
    if io is not None and place["object"]:
        return s3a_write_refusal(backend, io, spec.data_location)
    return None if backend.runs_in_driver else "the driver may not see what executors write to their disks"


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


def write_with_spark(frame: DataFrame, spec: WriteSpec, job: str, io: FileIO | None = None) -> list[DataFile]:
    """Write rows for which `why_not` finds nothing; an error may leave files with the id of the job."""
    return _SparkWrite(backend_of(frame), io or LocalFileIO(), spec, job).run(frame)


class _SparkWrite:
    """One write."""

    def __init__(self, backend: SparkBackend, io: FileIO, spec: WriteSpec, job: str) -> None:
        self._backend = backend
        self._io = io
        self._spec = spec
        self._job = job
        self._directory = join(spec.data_location, job)
        self._texts = [path for path, field in _leaves(spec.schema.fields) if field.type == STRING]

    def run(self, frame: DataFrame) -> list[DataFile]:
        if scheme_of(self._spec.data_location) != "file":
            return self._run_on_objects(frame)
        make_durable_directory(self._spec.data_location)
        try:
            files = [self._place(*each) for each in enumerate(self._write(frame))]
        finally:
            remove_directory(self._directory)
        sync_directories({file.file_path.rpartition("/")[0] for file in files})
        return files

    def _run_on_objects(self, frame: DataFrame) -> list[DataFile]:
        """Files stay where they were written: objects cannot be moved."""
        # S3A removes the files of an attempt that fails, and makes an object of a directory that this leaves empty
        self._io.create(join(self._directory, _NEVER_EMPTY), b"")
        files = self._write(frame)
        kept = {normalized(file.file_path) for file in files}
        with suppress(BerglineError):  # what others left and nobody can remove are orphans
            self._io.delete([path for path in self._io.list(self._directory) if normalized(path) not in kept])
        return files

    def _write(self, frame: DataFrame) -> list[DataFile]:
        """The files that count, where the writer put them, without those that are empty."""
        writer = self._backend.parquet_writer
        assert writer is not None  # `why_not` has asked  # noqa: S101
        with self._refusals():
            written = writer(self._checked(frame), self._parquet_job(), _SETTINGS)
        places = [(join(self._directory, file.path), file.size) for file in written]
        stored = [each for each in read_stored(self._backend, self._io, self._spec, places) if each.file.record_count]
        self._check_required(stored)
        return [each.file for each in stored]

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
            "parquet.bloom.filter.max.bytes": options.bloom_filter_bytes,
            # a bound of so many letters is exact, and the null counts of columns with long values are kept
            "parquet.statistics.truncate.length": min(_BYTES_OF_LETTER * max(longest, 16), _MOST_STATISTICS),
        }
        for path, false_positives in options.bloom_filters:
            settings[f"parquet.bloom.filter.enabled#{'.'.join(path)}"] = "true"
            settings[f"parquet.bloom.filter.fpp#{'.'.join(path)}"] = false_positives
        if options.compression_level is not None:
            settings["parquet.compression.codec.zstd.level"] = options.compression_level
        is_local = scheme_of(self._directory) == "file"
        place = f"file://{local_path(self._directory)}" if is_local else self._directory.replace("s3:", "s3a:", 1)
        return ParquetJob(columns, place, {name: str(value) for name, value in settings.items()})

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

    def _check_required(self, stored: Sequence[FileByFooter]) -> None:
        for name in (field.name for field in self._spec.schema.fields if field.required):
            if found := sum(each.nulls[name] for each in stored):
                message = f"expected values in the required column `{name}`, found {counted(found, 'null')}"
                raise InvalidInputError(message, condition="NOT_NULL_ASSERT_VIOLATION")

    def _place(self, number: int, file: DataFile) -> DataFile:
        """Move a file to where it belongs."""
        spec, task = self._spec, _TASK.search(file.file_path)
        name = f"{task[1] if task else '00000'}-0-{self._job}-{number + 1:05d}.parquet"
        directory = spec.spec.partition_path(spec.schema, file.partition)
        location = join(spec.data_location, *([directory] if directory else []), name)
        move_file(file.file_path, location)
        return msgspec.structs.replace(file, file_path=location)


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
