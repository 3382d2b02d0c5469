"""Metrics of data files."""

import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.format.schema import Schema
from bergline.format.types import BINARY, DOUBLE, INT, LONG, STRING, FixedType, IcebergType, NestedField, StructType
from bergline.format.values import decode_value
from bergline.parquet.arrow_schema import arrow_schema
from bergline.parquet.metrics import FooterMetrics, MetricsCollector


def collect(schema: Schema, *tables: pa.Table) -> MetricsCollector:
    collector = MetricsCollector(schema)
    for table in tables:
        collector.add(table)
    return collector


def one(type_: IcebergType, *batches: list[Any]) -> tuple[Any, Any, dict[int, int]]:
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    arrow = arrow_schema(schema)
    tables = [pa.Table.from_arrays([pa.array(b, arrow.field(0).type)], schema=arrow) for b in batches]
    collector = collect(schema, *tables)
    lower, upper = collector.bounds()
    low, high = (decode_value(type_, b[1]) if 1 in b else None for b in (lower, upper))
    return low, high, collector.nan_value_counts


@pytest.mark.parametrize(
    ("type_", "batches", "expected"),
    [
        (LONG, [[3, None], [1], [2]], (1, 3)),
        (LONG, [[None], []], (None, None)),
        (DOUBLE, [[float("nan"), 1.0]], (1.0, 1.0)),
        (DOUBLE, [[float("nan")], [None]], (None, None)),
        (DOUBLE, [[float("-inf"), float("inf")]], (float("-inf"), float("inf"))),
        (STRING, [["b", "a", ""]], ("", "b")),
        (STRING, [["x" * 20]], ("x" * 16, "x" * 15 + "y")),
        (STRING, [["\U0010ffff" * 20]], ("\U0010ffff" * 16, None)),
        (BINARY, [[b"\xff" * 17, b"\x00"]], (b"\x00", None)),
        (FixedType(17), [[b"a" * 17]], (b"a" * 16, b"a" * 15 + b"b")),
    ],
)
def test_bounds_cover_all_batches(type_: IcebergType, batches: list[list[Any]], expected: tuple[Any, Any]) -> None:
    assert one(type_, *batches)[:2] == expected


def test_nans_are_counted_and_never_bounds() -> None:
    nan = float("nan")
    assert one(DOUBLE, [nan, 1.0, None], [nan])[2] == {1: 2}
    assert one(LONG, [1])[2] == {}


@pytest.mark.parametrize("values", [[0.0], [-0.0], [0.0, -0.0], [-0.0, 0.0]])
def test_zero_bounds_cover_both_signs(values: list[float]) -> None:
    low, high, _ = one(DOUBLE, values)
    assert (str(low), str(high)) == ("-0.0", "0.0")


def test_every_primitive_outside_lists_and_maps_has_bounds(every_type: Schema, every_row: pa.Table) -> None:
    lower, upper = collect(every_type, every_row).bounds()
    assert set(lower) == {*range(1, 15), 41, 42}
    assert set(lower) - set(upper) == {10, 12}
    for field_id in upper:
        type_ = every_type.ids[field_id].type
        assert decode_value(type_, lower[field_id]) <= decode_value(type_, upper[field_id])


def test_footer_sums_every_row_group_and_every_leaf() -> None:
    schema = Schema(
        fields=(
            NestedField(
                5, "s", False, StructType((NestedField(7, "a", False, INT), NestedField(6, "b", False, STRING)))
            ),
            NestedField(1, "c", False, LONG),
        )
    )
    arrow = arrow_schema(schema)
    rows = [{"s": {"a": 1, "b": None}, "c": 1}, {"s": None, "c": 2}, {"s": {"a": None, "b": "x"}, "c": 3}]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, schema=arrow), out, row_group_size=2)
    metadata = pq.ParquetFile(out).metadata
    footer = FooterMetrics(metadata, schema)
    groups = [metadata.row_group(n) for n in range(2)]
    assert footer.column_sizes == {
        i: sum(g.column(position).total_compressed_size for g in groups) for position, i in enumerate((7, 6, 1))
    }
    assert len(footer.split_offsets) == 2
    assert footer.split_offsets[0] == 4
    assert footer.split_offsets[1] > 4


def test_rows_and_nulls_are_counted_over_all_batches() -> None:
    schema = Schema(fields=(NestedField(5, "s", False, StructType((NestedField(6, "a", False, LONG),))),))
    arrow = arrow_schema(schema)
    batches = [[{"s": {"a": 1}}, {"s": None}], [{"s": {"a": None}}]]
    collector = collect(schema, *(pa.Table.from_pylist(b, schema=arrow) for b in batches))
    assert (collector.value_counts, collector.null_value_counts) == ({6: 3}, {6: 2})
