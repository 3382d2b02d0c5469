"""Exact metrics of a data file: counts and bounds from the rows themselves, sizes and offsets from its footer."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bergline.format.schema import Schema
from bergline.format.types import BINARY, STRING, FixedType, NestedField, child_fields
from bergline.format.values import encode_value, truncate_lower, truncate_upper
from bergline.parquet.plain import leaf_array, plain_array

_TRUNCATE_LENGTH = 16


class MetricsCollector:
    """Gathers counts and bounds while rows are written; like Java's, of no columns inside lists and maps."""

    def __init__(self, schema: Schema) -> None:
        types = {i: schema.ids[i].type for i in schema.paths}
        self._leaves = {i: (schema.paths[i], type_) for i, type_ in types.items() if not child_fields(type_)}
        self._ranges: dict[int, tuple[Any, Any]] = {}
        self.value_counts = dict.fromkeys(self._leaves, 0)
        self.null_value_counts = dict.fromkeys(self._leaves, 0)
        self.nan_value_counts: dict[int, int] = {}

    def add(self, table: pa.Table) -> None:
        """Take rows into account."""
        for field_id, (path, _) in self._leaves.items():
            self._add_column(field_id, leaf_array(table, path))

    def bounds(self) -> tuple[dict[int, bytes], dict[int, bytes]]:
        """Lower and upper bounds by column id, cut to a prefix where they are long."""
        lower: dict[int, bytes] = {}
        upper: dict[int, bytes] = {}
        for field_id, (low, high) in self._ranges.items():
            type_ = self._leaves[field_id][1]
            cut = type_ in (STRING, BINARY) or isinstance(type_, FixedType)
            lower[field_id] = encode_value(type_, truncate_lower(low, _TRUNCATE_LENGTH) if cut else low)
            highest = truncate_upper(high, _TRUNCATE_LENGTH) if cut else high
            if highest is not None:
                upper[field_id] = encode_value(type_, highest)
        return lower, upper

    def _add_column(self, field_id: int, column: pa.ChunkedArray) -> None:
        self.value_counts[field_id] += len(column)
        self.null_value_counts[field_id] += column.null_count
        if pa.types.is_floating(column.type):
            is_nan = pc.fill_null(pc.is_nan(column), False)
            nans = pc.sum(is_nan).as_py() or 0
            self.nan_value_counts[field_id] = self.nan_value_counts.get(field_id, 0) + nans
            column = column.filter(pc.invert(is_nan))
        low, high = (s.as_py() for s in pc.min_max(plain_array(column)).values())
        if low is None:
            return
        if pa.types.is_floating(column.type):
            # min_max may give either zero: -0.0 sorts below 0.0
            low, high = (-0.0 if low == 0 else low), (0.0 if high == 0 else high)
        known = self._ranges.get(field_id)
        self._ranges[field_id] = (min(low, known[0]), max(high, known[1])) if known else (low, high)


class FooterMetrics:
    """Sizes and offsets that a Parquet footer tells."""

    def __init__(self, footer: pq.FileMetaData, schema: Schema) -> None:
        leaves = [field.id for field in _primitive_leaves(schema.fields)]
        self.column_sizes = dict.fromkeys(leaves, 0)
        offsets = []
        for group in (footer.row_group(i) for i in range(footer.num_row_groups)):
            for position, field_id in enumerate(leaves):
                self.column_sizes[field_id] += group.column(position).total_compressed_size
            first = group.column(0)
            dictionary = first.dictionary_page_offset
            offsets.append(first.data_page_offset if dictionary is None else min(dictionary, first.data_page_offset))
        self.split_offsets = tuple(offsets)


def _primitive_leaves(fields: tuple[NestedField, ...]) -> list[NestedField]:
    """The columns that a Parquet file stores, in its order."""
    leaves: list[NestedField] = []
    for field in fields:
        leaves += _primitive_leaves(children) if (children := child_fields(field.type)) else [field]
    return leaves
