"""Which row groups of a file may hold matching rows, from the statistics in its footer."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import Predicate
from bergline.format.manifest import DataFile
from bergline.format.schema import Schema
from bergline.format.types import DATE, INT, LONG, STRING, TIMESTAMP, TIMESTAMPTZ, IcebergType, NestedField
from bergline.format.values import encode_value

_COMPARABLE: dict[IcebergType, tuple[pa.DataType, ...]] = {
    INT: (pa.int32(),),
    LONG: (pa.int32(), pa.int64()),
    DATE: (pa.date32(),),
    TIMESTAMP: (pa.timestamp("us"),),
    TIMESTAMPTZ: (pa.timestamp("us", tz="UTC"),),
    STRING: (pa.string(),),
}
"""Types whose statistics bound the values as they are; those of floats leave out NaN and the sign of zero."""

_PHYSICAL = {"INT32", "INT64", "BYTE_ARRAY"}


def matching_groups(
    file: pq.ParquetFile, columns: Mapping[int, pa.Field], predicate: Predicate, schema: Schema
) -> list[int]:
    """The row groups to read; `columns` are the file's, by the ids of the table's columns."""
    footer = file.metadata
    leaves = {footer.schema.column(n).path: n for n in range(footer.num_columns)}
    fields = {f.id: f for f in schema.fields}
    usable = {
        leaves[stored.name]: fields[field_id]
        for field_id, stored in columns.items()
        if field_id in fields
        and "." not in stored.name
        and stored.type in _COMPARABLE.get(fields[field_id].type, ())
        and stored.name in leaves
    }
    groups = range(footer.num_row_groups)
    return [n for n in groups if may_match(predicate, _described(footer.row_group(n), usable), schema)]


def _described(group: pq.RowGroupMetaData, columns: Mapping[int, NestedField]) -> DataFile:
    """A row group as if it were a data file."""
    counts: dict[int, int] = {}
    nulls: dict[int, int] = {}
    lower: dict[int, bytes] = {}
    upper: dict[int, bytes] = {}
    for position, field in columns.items():
        chunk = group.column(position)
        statistics = chunk.statistics if chunk.is_stats_set else None
        if statistics is None:
            continue
        counts[field.id] = chunk.num_values
        if statistics.has_null_count:
            nulls[field.id] = statistics.null_count
        if statistics.has_min_max and chunk.physical_type in _PHYSICAL:
            _put(lower, field, statistics.min_raw)
            _put(upper, field, statistics.max_raw)
    return DataFile(
        file_path="",
        file_format="PARQUET",
        partition=(),
        record_count=group.num_rows,
        file_size_in_bytes=0,
        value_counts=counts,
        null_value_counts=nulls,
        lower_bounds=lower,
        upper_bounds=upper,
    )


def _put(bounds: dict[int, bytes], field: NestedField, raw: Any) -> None:
    if field.type != STRING:
        bounds[field.id] = encode_value(field.type, raw)
    elif _is_text(raw):
        bounds[field.id] = raw


def _is_text(raw: bytes) -> bool:
    """Whether a bound of text is text: writers may cut it within a character."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
