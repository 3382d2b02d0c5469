"""Metrics of data files."""

import io
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.write.metrics import FooterMetrics, MetricsCollector
from bergline.datafiles.write.metrics_mode import COUNTS, FULL, NONE, MetricsMode, MetricsModes, parse_mode
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import (
    BINARY,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    NestedField,
    StructType,
)

A_UUID = uuid.UUID(int=2**127 + 5)


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
        (BINARY, [[b"a" * 15 + b"\xff\xff"]], (b"a" * 15 + b"\xff", b"a" * 14 + b"b")),
        (STRING, [["x" * 15 + "\U0010ffff" * 2]], ("x" * 15 + "\U0010ffff", "x" * 14 + "y")),
        (STRING, [["😀" * 17]], ("😀" * 16, "😀" * 15 + "😁")),
        (STRING, [["\ud7ff" * 17]], ("\ud7ff" * 16, "\ud7ff" * 15 + "\ue000")),
        (FixedType(17), [[b"a" * 17]], (b"a" * 17, b"a" * 17)),
        (DecimalType(9, 2), [[Decimal("-1.50"), Decimal("99.99")]], (Decimal("-1.50"), Decimal("99.99"))),
        (UUID, [[A_UUID]], (A_UUID, A_UUID)),
    ],
)
def test_bounds_cover_all_batches(type_: IcebergType, batches: list[list[Any]], expected: tuple[Any, Any]) -> None:
    assert one(type_, *batches)[:2] == expected


def test_nans_are_counted_and_never_bounds() -> None:
    nan = float("nan")
    assert one(DOUBLE, [nan, 1.0, None], [nan])[2] == {1: 2}
    assert one(LONG, [1])[2] == {}


@pytest.mark.parametrize("type_", [FLOAT, DOUBLE])
@pytest.mark.parametrize(
    ("batches", "expected"),
    [
        ([[0.0]], ("0.0", "0.0")),
        ([[-0.0]], ("-0.0", "-0.0")),
        ([[0.0, -0.0]], ("-0.0", "0.0")),
        ([[-0.0], [0.0]], ("-0.0", "0.0")),
        ([[0.0], [-0.0]], ("-0.0", "0.0")),
        ([[-0.0, None], [-1.0]], ("-1.0", "-0.0")),
        ([[0.0, float("nan")], [1.0]], ("0.0", "1.0")),
    ],
)
def test_zeros_in_bounds_have_the_sign_that_they_have_in_the_rows(
    type_: IcebergType, batches: list[list[float]], expected: tuple[str, str]
) -> None:
    low, high, _ = one(type_, *batches)
    assert (str(low), str(high)) == expected


@pytest.mark.parametrize(
    ("mode", "counts", "bounds"),
    [
        (NONE, {}, ({}, {})),
        (COUNTS, {1: 1}, ({}, {})),
        (FULL, {1: 1}, ({1: b"x" * 20}, {1: b"x" * 20})),
        (parse_mode("truncate(2)"), {1: 1}, ({1: b"xx"}, {1: b"xy"})),
    ],
    ids=["none", "counts", "full", "truncate"],
)
def test_mode_says_what_is_kept(mode: MetricsMode, counts: Any, bounds: Any) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, STRING),))
    collector = MetricsCollector(schema, MetricsModes(mode))
    collector.add(pa.Table.from_pydict({"c": ["x" * 20]}, schema=arrow_schema(schema)))
    assert collector.value_counts == collector.value_counts == counts
    assert collector.bounds() == bounds


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
