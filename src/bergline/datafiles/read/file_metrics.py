"""Metrics of files by other writers, from their footers alone; as in Java, without counts of NaN."""

import math
import struct
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bergline.datafiles.file.arrow_schema import file_field_id
from bergline.datafiles.file.schema import inner_fields
from bergline.datafiles.write.metrics_mode import MetricsModes
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value, signed_bytes, truncate_lower, truncate_upper
from bergline.format.types.types import (
    BINARY,
    DATE,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    PrimitiveType,
)

_PER_MICRO: Final = {"ms": 1000, "us": 1}
_DAYS: Final = (DATE, TIMESTAMP, TIMESTAMPTZ)
_SPARK_VERSION: Final = b"org.apache.spark.version"
_LEGACY: Final = b"org.apache.spark.legacy"


class FileMetrics(msgspec.Struct, frozen=True):
    """What the footer of a file says about its columns, by field id."""

    column_sizes: dict[int, int]
    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    lower_bounds: dict[int, bytes]
    upper_bounds: dict[int, bytes]


def file_metrics(footer: pq.FileMetaData, columns: pa.Schema, schema: Schema, modes: MetricsModes) -> FileMetrics:
    """The metrics of the columns that the table has; `columns` are those of the file, with field ids."""
    metrics = FileMetrics({}, {}, {}, {}, {})
    rebased = _is_rebased(footer)
    groups = [footer.row_group(n) for n in range(footer.num_row_groups)]
    for position, leaf in enumerate(_leaves(columns)):
        field_id = file_field_id(leaf)
        if field_id is None or field_id not in schema.ids or not modes.mode(field_id).counted:
            continue
        chunks = [group.column(position) for group in groups]
        metrics.column_sizes[field_id] = sum(chunk.total_compressed_size for chunk in chunks)
        # as in Java, values inside lists and maps are not counted
        if field_id in schema.paths and chunks and chunks[0].physical_type != "INT96":
            field = schema.ids[field_id]
            length = 0 if rebased and field.type in _DAYS else modes.mode(field_id).bound_length
            _add(metrics, field, chunks, leaf.type, length)
    return metrics


def _add(metrics: FileMetrics, field: NestedField, chunks: list[Any], stored: pa.DataType, length: int | None) -> None:
    """Add the counts of a column, and its bounds of at most a length: none for 0, whole ones for None."""
    if any(c.statistics is None or not c.statistics.has_null_count for c in chunks):
        return
    nulls = sum(chunk.statistics.null_count for chunk in chunks)
    metrics.value_counts[field.id] = sum(chunk.num_values for chunk in chunks)
    metrics.null_value_counts[field.id] = nulls
    filled = [c.statistics for c in chunks if c.num_values > c.statistics.null_count]
    # values without bounds may lie anywhere
    if length == 0 or not filled or not all(statistics.has_min_max for statistics in filled):
        return
    try:
        lowest = min(_value(field.type, stored, s.min_raw) for s in filled)
        highest = max(_value(field.type, stored, s.max_raw) for s in filled)
    except (TypeError, ValueError, struct.error):  # a bound that cannot be read does not count
        return
    lower, upper = _bounds(field.type, lowest, highest, length)
    if lower is not None:
        metrics.lower_bounds[field.id] = lower
    if upper is not None:
        metrics.upper_bounds[field.id] = upper


def _value(type_: IcebergType, stored: pa.DataType, raw: Any) -> Any:
    """A bound as the plain value of the table's type; ValueError if it is not known exactly."""
    if isinstance(raw, float):
        if math.isnan(raw):
            raise ValueError(raw)
        return raw
    match type_:
        case DecimalType():
            return int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
        case PrimitiveType("string"):
            return raw.decode()
        case PrimitiveType("binary" | "uuid") | FixedType():
            return bytes(raw)
        case PrimitiveType("timestamp" | "timestamptz"):
            return raw * _units(stored)
        case PrimitiveType("int" | "long" | "date" | "boolean"):
            return raw
        case PrimitiveType("time") if pa.types.is_time64(stored) and stored.unit == "us":
            return raw
    raise ValueError(raw)


def _units(stored: pa.DataType) -> int:
    if pa.types.is_timestamp(stored) and stored.unit in _PER_MICRO:
        return _PER_MICRO[stored.unit]
    raise ValueError(stored)


def _bounds(type_: IcebergType, lowest: Any, highest: Any, length: int | None) -> tuple[bytes | None, bytes | None]:
    if isinstance(type_, DecimalType):
        return signed_bytes(lowest), signed_bytes(highest)
    if isinstance(lowest, float):  # Parquet does not say which zero it is
        lowest, highest = lowest or -0.0, highest or 0.0
    if length is not None and type_ in (STRING, BINARY):
        lowest, highest = truncate_lower(lowest, length), truncate_upper(highest, length)
    return encode_value(type_, lowest), None if highest is None else encode_value(type_, highest)


def _is_rebased(footer: pq.FileMetaData) -> bool:
    """Whether dates may be in another calendar: in files of Spark 2, and those that Spark marks."""
    known = footer.metadata or {}
    return known.get(_SPARK_VERSION, b"3") < b"3" or any(key.startswith(_LEGACY) for key in known)


def _leaves(fields: Any) -> Iterator[pa.Field]:
    """The leaf columns of a Parquet file, in order."""
    for field in fields:
        inside = inner_fields(field.type)
        if inside:
            yield from _leaves(inside)
        else:
            yield field
