"""One Parquet file being written: rows are buffered to row groups, and metrics are collected."""

import contextlib
import inspect
import math
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bergline.datafiles.file.annotations import annotated, annotations
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.write.metrics import FooterMetrics, MetricsCollector
from bergline.datafiles.write.write_spec import ParquetOptions, WriteSpec
from bergline.errors import InvalidInputError, StorageError
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    UNKNOWN,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
    child_fields,
)
from bergline.io.fileio import FileIO

_HAS_BLOOM_FILTERS = "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters
"""Older versions of pyarrow write none."""


class OpenFile:
    """A data file being written; takes rows with exactly the spec's columns."""

    def __init__(self, io: FileIO, spec: WriteSpec, partition: tuple[Any, ...], location: str) -> None:
        self._spec = spec
        self._schema = stored_schema(spec.schema)
        self._arrow = arrow_schema(self._schema)
        self._partition = partition
        self._location = location
        self._metrics = MetricsCollector(self._schema, spec.metrics)
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self.waiting_bytes = 0
        """The size of the rows buffered for the next row group."""
        self._output = io.create_output(location)
        try:
            with _storage_errors(location):
                self._stream = _AnnotatingStream(self._output.stream(), annotations(self._schema))
                self._writer = _parquet_writer(self._stream, self._arrow, spec)
        except BaseException:
            self._output.abort()
            raise

    @property
    def size(self) -> int:
        """Bytes written so far."""
        return self._output.stream().tell()

    def write(self, table: pa.Table) -> None:
        """Add rows."""
        if self._schema != self._spec.schema:
            table = table.select([f.name for f in self._schema.fields]).cast(self._arrow)
        self._metrics.add(table)
        self._rows += table.num_rows
        self._waiting.append(table)
        self.waiting_bytes += table.nbytes
        if self.waiting_bytes >= self._spec.row_group_bytes:
            self.flush()

    def flush(self) -> None:
        """Write the buffered rows as a row group."""
        if self._waiting:
            table = pa.concat_tables(self._waiting)
            self._waiting.clear()
            self.waiting_bytes = 0
            with _storage_errors(self._location):
                self._writer.write_table(table, row_group_size=table.num_rows)

    def finish(self) -> DataFile:
        """Close the file and return its DataFile."""
        self.flush()
        with _storage_errors(self._location), self._stream.annotating():
            self._writer.close()
        footer = FooterMetrics(self._writer.writer.metadata, self._schema, self._spec.metrics)
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
            sort_order_id=self._spec.sort_order_id,
        )

    def abort(self) -> None:
        """Remove the file."""
        with contextlib.suppress(Exception):
            self._writer.close()
        self._output.abort()


class _AnnotatingStream:
    """A stream that passes on what is written to it and adds annotations to the footer."""

    def __init__(self, stream: BinaryIO, logical_types: Mapping[int, bytes]) -> None:
        self._stream = stream
        self._logical_types = logical_types
        self._held: list[bytes] | None = None
        self.closed = False

    def write(self, data: Any) -> int:
        if self._held is None:
            return self._stream.write(data)
        self._held.append(bytes(data))
        return len(self._held[-1])

    def flush(self) -> None:
        """Nothing is buffered here, and the file is made durable when it is closed."""

    def tell(self) -> int:
        return self._stream.tell()

    def writable(self) -> bool:
        return True

    @contextlib.contextmanager
    def annotating(self) -> Iterator[None]:
        """The end of the file, with its footer, is written inside this context."""
        self._held = [] if self._logical_types else None
        yield
        if self._held is not None:
            tail, self._held = b"".join(self._held), None
            self._stream.write(annotated(tail, self._logical_types))


def stored_schema(schema: Schema) -> Schema:
    """The columns that files hold: all but those of type `unknown`."""
    if all(f.type != UNKNOWN for f in schema.ids.values()):
        return schema
    return Schema(fields=_stored(schema.fields, ""), schema_id=schema.schema_id)


def _stored(fields: tuple[NestedField, ...], prefix: str) -> tuple[NestedField, ...]:
    stored = []
    for field in fields:
        name = f"{prefix}{field.name}"
        if field.type == UNKNOWN:
            continue
        if isinstance(field.type, ListType | MapType) and any(f.type == UNKNOWN for f in child_fields(field.type)):
            raise InvalidInputError(f"expected a type for what is inside `{name}`, found `{field.type}`")
        stored.append(_stored_field(field, name))
    if not stored:
        raise InvalidInputError(f"expected a column to write{f' in `{prefix[:-1]}`' if prefix else ''}, found none")
    return tuple(stored)


def _stored_field(field: NestedField, name: str) -> NestedField:
    match field.type:
        case StructType(fields):
            type_: Any = StructType(_stored(fields, f"{name}."))
        case ListType(element_id, _, required):
            (element,) = _stored(child_fields(field.type), f"{name}.")
            type_ = ListType(element_id, element.type, required)
        case MapType(key_id, _, value_id, _, required):
            key, value = _stored(child_fields(field.type), f"{name}.")
            type_ = MapType(key_id, key.type, value_id, value.type, required)
        case _:
            return field
    return NestedField(field.id, field.name, field.required, type_)


def _parquet_writer(stream: Any, schema: pa.Schema, spec: WriteSpec) -> pq.ParquetWriter:
    options = spec.options
    try:
        return pq.ParquetWriter(
            stream,
            schema,
            compression=spec.compression,
            compression_level=options.compression_level,
            data_page_size=options.page_bytes,
            dictionary_pagesize_limit=options.dictionary_bytes,
            store_schema=False,
            store_decimal_as_integer=True,
            write_statistics=_with_statistics(spec.schema),
            write_page_checksum=True,
            **_bloom_filters(options),
        )
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InvalidInputError(f"expected Parquet options that can be used, found {error}") from error


def _bloom_filters(options: ParquetOptions) -> dict[str, Any]:
    """Filters of the requested size, which pyarrow takes as a number of distinct values."""
    if not options.bloom_filters or not _HAS_BLOOM_FILTERS:
        return {}
    return {
        "bloom_filter_options": {
            ".".join(path): {"ndv": max(1, int(-options.bloom_filter_bytes * math.log1p(-(fpp**0.125)))), "fpp": fpp}
            for path, fpp in options.bloom_filters
        }
    }


def _with_statistics(schema: Schema) -> bool | list[str]:
    """Which columns get minima and maxima in the footer: Parquet defines no order for geometries."""
    if not any(isinstance(field.type, GeometryType | GeographyType) for field in schema.ids.values()):
        return True
    return [
        path for path, field in _file_paths(schema.fields) if not isinstance(field.type, GeometryType | GeographyType)
    ]


def _file_paths(fields: tuple[NestedField, ...], prefix: str = "") -> Iterator[tuple[str, NestedField]]:
    """The leaf columns with their paths in a Parquet file."""
    for field in fields:
        path = f"{prefix}{field.name}"
        match field.type:
            case ListType():
                yield from _file_paths(child_fields(field.type), f"{path}.list.")
            case MapType():
                yield from _file_paths(child_fields(field.type), f"{path}.key_value.")
            case StructType(fields=inside):
                yield from _file_paths(inside, f"{path}.")
            case PrimitiveType("variant"):
                yield from ((f"{path}.{part}", field) for part in ("metadata", "value"))
            case _:
                yield path, field


@contextlib.contextmanager
def _storage_errors(location: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot write {location}: {error.strerror or error}") from error
