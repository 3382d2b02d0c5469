"""Exact metrics of a data file: counts and bounds from the rows, sizes and offsets from the footer."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bergline.datafiles.file.plain_values import leaf_array, plain_array
from bergline.datafiles.write.metrics_mode import MetricsModes
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value, truncate_lower, truncate_upper
from bergline.format.types.types import (
    BINARY,
    STRING,
    UNKNOWN,
    VARIANT,
    GeographyType,
    GeometryType,
    IcebergType,
    NestedField,
    child_fields,
)
from bergline.format.types.wkb import Box, box_of


class MetricsCollector:
    """Collects counts and bounds while rows are written; as in Java, not for columns inside lists and maps."""

    def __init__(self, schema: Schema, modes: MetricsModes | None = None) -> None:
        self._modes = modes or MetricsModes()
        counted = [i for i in schema.paths if self._modes.mode(i).counted]
        self._leaves = {
            i: (schema.paths[i], type_)
            for i in counted
            if not child_fields(type_ := schema.ids[i].type) and type_ != UNKNOWN
        }
        self._ranges: dict[int, tuple[Any, Any]] = {}
        self._boxes: dict[int, Box] = {}
        self.value_counts = dict.fromkeys(self._leaves, 0)
        self.null_value_counts = dict.fromkeys(self._leaves, 0)
        self.nan_value_counts: dict[int, int] = {}

    def add(self, table: pa.Table) -> None:
        """Add rows."""
        for field_id, (path, _) in self._leaves.items():
            self._add_column(field_id, leaf_array(table, path))

    def bounds(self) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Lower and upper bounds by column id, truncated if long."""
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for field_id, (low, high) in self._ranges.items():
            type_ = self._leaves[field_id][1]
            length = self._modes.mode(field_id).bound_length
            lowest, highest = _cut(type_, low, high, length)
            lower[field_id] = encode_value(type_, lowest)
            if highest is not None:
                upper[field_id] = encode_value(type_, highest)
        for field_id, box in self._boxes.items():
            type_ = self._leaves[field_id][1]
            if isinstance(type_, GeometryType | GeographyType) and (corners := box.bounds(type_)) is not None:
                lower[field_id], upper[field_id] = (encode_value(type_, corner) for corner in corners)
        return lower, upper

    def _add_column(self, field_id: int, column: pa.ChunkedArray) -> None:
        self.value_counts[field_id] += len(column)
        self.null_value_counts[field_id] += column.null_count
        if pa.types.is_floating(column.type):
            is_nan = pc.fill_null(pc.is_nan(column), False)
            nans = pc.sum(is_nan).as_py() or 0
            self.nan_value_counts[field_id] = self.nan_value_counts.get(field_id, 0) + nans
            column = column.filter(pc.invert(is_nan)) if nans else column
        if self._modes.mode(field_id).bound_length == 0 or self._leaves[field_id][1] == VARIANT:
            return
        if isinstance(self._leaves[field_id][1], GeometryType | GeographyType):
            box = self._boxes.setdefault(field_id, Box())
            for shape in column.drop_null().to_pylist():
                box.add(box_of(shape))
            return
        low, high = (s.as_py() for s in pc.min_max(plain_array(column)).values())
        if low is None:
            return
        if pa.types.is_floating(column.type):
            low, high = _signed_zeros(column, low, high)
        if known := self._ranges.get(field_id):
            low, high = min(low, known[0], key=_order), max(high, known[1], key=_order)
        self._ranges[field_id] = (low, high)


def _cut(type_: IcebergType, low: Any, high: Any, length: int | None) -> tuple[Any, Any]:
    if length is None or type_ not in (STRING, BINARY):
        return low, high
    return truncate_lower(low, length), truncate_upper(high, length)


def _signed_zeros(column: pa.ChunkedArray, low: float, high: float) -> tuple[float, float]:
    """Fix the signs of zeros in a range: `min_max` returns either, and -0.0 is below 0.0."""
    if 0 not in (low, high):
        return low, high
    bits = pa.int32() if pa.types.is_float32(column.type) else pa.int64()
    zeros = column.filter(pc.equal(column, pa.scalar(0.0, column.type)))
    signs = {v < 0 for chunk in zeros.chunks for v in pc.unique(chunk.view(bits)).to_pylist()}
    return -0.0 if low == 0 and True in signs else low + 0.0, -0.0 if high == 0 and False not in signs else high + 0.0


def _order(value: Any) -> Any:
    return (value, math.copysign(1, value)) if isinstance(value, float) else value


class FooterMetrics:
    """Sizes and offsets from a Parquet footer."""

    def __init__(self, footer: pq.FileMetaData, schema: Schema, modes: MetricsModes | None = None) -> None:
        modes = modes or MetricsModes()
        leaves = [field.id for field in _primitive_leaves(schema.fields)]
        self.column_sizes = dict.fromkeys((i for i in leaves if modes.mode(i).counted), 0)
        for group in (footer.row_group(i) for i in range(footer.num_row_groups)):
            for position, field_id in enumerate(leaves):
                if field_id in self.column_sizes:
                    self.column_sizes[field_id] += group.column(position).total_compressed_size
        self.split_offsets = split_offsets(footer)


def split_offsets(footer: pq.FileMetaData) -> tuple[int, ...]:
    """Where the row groups of a file begin."""
    firsts = (footer.row_group(i).column(0) for i in range(footer.num_row_groups))
    return tuple(min(c.dictionary_page_offset or c.data_page_offset, c.data_page_offset) for c in firsts)


def _primitive_leaves(fields: tuple[NestedField, ...]) -> list[NestedField]:
    """The leaf columns of a Parquet file, in order; a variant has two, its metadata and its value."""
    leaves: list[NestedField] = []
    for field in fields:
        leaves += _primitive_leaves(children) if (children := child_fields(field.type)) else [field]
        leaves += [field] if field.type == VARIANT else []
    return leaves
