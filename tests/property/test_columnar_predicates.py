"""Predicates over columns give the same answers as over one file or one row."""

import uuid
from decimal import Decimal
from itertools import product
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bergline.expressions.decode_bounds import decode_bounds
from bergline.expressions.evaluate import evaluate
from bergline.expressions.evaluate_columns import ColumnMetrics, matches_columns, may_match_columns
from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import COMPARE, Comparison, IsIn, IsNan, IsNull, Not, Predicate, StartsWith
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    UUID,
    DecimalType,
    IcebergType,
    NestedField,
)
from support.fixtures.predicate_strategies import ALL_TYPES, bound_predicates, plain_values

COUNTS = st.none() | st.sampled_from([0, 1, 2, 3])


def schema_of(*types: IcebergType) -> Schema:
    return Schema(fields=tuple(NestedField(n + 1, f"c{n + 1}", False, t) for n, t in enumerate(types)))


@st.composite
def files(draw: st.DrawFn, schema: Schema) -> DataFile:
    """A file with any metrics, also such as no rows could have."""
    maps: dict[str, dict[int, Any]] = {
        name: {} for name in ("value_counts", "null_value_counts", "nan_value_counts", "lower_bounds", "upper_bounds")
    }
    for field in schema.fields:
        for name, found in maps.items():
            values = plain_values(field.type).map(lambda v, t=field.type: encode_value(t, v))
            value = draw(st.none() | values if name.endswith("bounds") else COUNTS)
            if value is not None:
                found[field.id] = value
    return DataFile("f", "PARQUET", (), draw(st.sampled_from([3, 3, 3, 0, -1])), 1, **maps)


def metrics_of(found: list[DataFile], schema: Schema, field_id: int) -> ColumnMetrics:
    def column(name: str, dtype: Any) -> pl.Series:
        return pl.Series([getattr(f, name).get(field_id) for f in found], dtype=dtype)

    type_ = schema.ids[field_id].type
    return ColumnMetrics(
        decode_bounds(type_, column("lower_bounds", pl.Binary)),
        decode_bounds(type_, column("upper_bounds", pl.Binary)),
        column("null_value_counts", pl.Int64),
        column("value_counts", pl.Int64),
        column("nan_value_counts", pl.Int64),
    )


SAMPLES: dict[IcebergType, list[Any]] = {
    BOOLEAN: [False, True],
    LONG: [-(2**63), 0, 2**63 - 1],
    DOUBLE: [float("-inf"), -0.0, 0.0, 0.1, float("nan")],
    FLOAT: [-0.0, 0.5, float("inf"), float("nan")],
    STRING: ["", "a", "ab", "b", "\U0010ffff"],
    BINARY: [b"", b"a", b"\x80"],
    UUID: [uuid.UUID(int=n) for n in (0, 2**63, 2**127, 2**128 - 1)],
    DecimalType(4, 1): [Decimal("-999.9"), Decimal("0.0"), Decimal("999.9")],
}
COUNTS_OF_THREE = (
    *((0, 0, 3), (1, 1, 3), (3, 0, 3), (0, 3, 3), (1, 2, 3)),
    *((None, 3, 3), (None, None, None), (0, None, 3), (None, 0, 3), (1, 1, None)),
)


@pytest.mark.parametrize("type_", SAMPLES, ids=str)
def test_all_metrics_of_samples_are_judged_as_one_by_one(type_: IcebergType) -> None:
    schema, samples = schema_of(type_), SAMPLES[type_]
    bounds = [None, *(encode_value(type_, v) for v in samples)]
    found = [
        DataFile(
            *("f", "PARQUET", (), 3, 1),
            **{
                name: {} if value is None else {1: value}
                for name, value in zip(
                    ("lower_bounds", "upper_bounds", "null_value_counts", "nan_value_counts", "value_counts"),
                    (lower, upper, *counts),
                    strict=True,
                )
            },
        )
        for lower, upper in product(bounds, bounds)
        for counts in (
            (0, 0, 3),
            (1, 1, 3),
            (3, 0, 3),
            (0, 3, 3),
            (1, 2, 3),
            (None, 3, 3),
            (None, None, None),
            (0, None, 3),
        )
    ]
    record_count = pl.Series([f.record_count for f in found], dtype=pl.Int64)
    literals = [v for v in samples if v == v]  # noqa: PLR0124
    tests: list[Predicate] = [
        IsNull("c1"),
        IsIn("c1", ()),
        IsIn("c1", tuple(literals)),
        IsIn("c1", tuple(literals[1:])),
    ]
    tests += [Comparison("c1", op, literal) for op in COMPARE for literal in literals]
    tests += [StartsWith("c1", v) for v in samples] if type_ == STRING else []
    tests += [IsNan("c1")] if type_ in (FLOAT, DOUBLE) else []
    metrics = metrics_of(found, schema, 1)
    for predicate in (p for test in tests for p in (test, Not(test))):
        answer = may_match_columns(predicate, lambda _: metrics, record_count, schema)
        assert answer.to_list() == [may_match(predicate, f, schema) for f in found], predicate


@settings(max_examples=60)
@given(st.data())
def test_files_of_many_columns_are_judged_as_one_by_one(data: st.DataObject) -> None:
    check_files(schema_of(*data.draw(st.lists(st.sampled_from(ALL_TYPES), min_size=1, max_size=5))), data)


def check_files(schema: Schema, data: st.DataObject) -> None:
    found = data.draw(st.lists(files(schema), max_size=6))
    predicate = data.draw(bound_predicates(schema))
    record_count = pl.Series([f.record_count for f in found], dtype=pl.Int64)
    answer = may_match_columns(predicate, lambda i: metrics_of(found, schema, i), record_count, schema)
    assert answer.to_list() == [may_match(predicate, f, schema) for f in found]


@pytest.mark.parametrize("type_", ALL_TYPES, ids=str)
@settings(max_examples=12)
@given(st.data())
def test_rows_are_judged_as_one_by_one(type_: IcebergType, data: st.DataObject) -> None:
    schema = schema_of(type_)
    rows = data.draw(st.lists(st.none() | plain_values(type_), max_size=6))
    predicate = data.draw(bound_predicates(schema))
    encoded = pl.Series([None if v is None else encode_value(type_, v) for v in rows], dtype=pl.Binary)
    values = decode_bounds(type_, encoded)
    answer = matches_columns(predicate, lambda _: values, len(rows), schema)
    assert answer.to_list() == [evaluate(predicate, lambda _, v=v: v) is True for v in rows]


def test_column_of_nulls_without_a_type_is_unknown() -> None:
    nulls = pl.Series([None, None])
    schema = schema_of(STRING)
    for test in (Comparison("c1", "=", "x"), IsIn("c1", ("x",)), StartsWith("c1", "x")):
        assert matches_columns(Not(test), lambda _: nulls, 2, schema).to_list() == [False, False]
    assert matches_columns(IsNull("c1"), lambda _: nulls, 2, schema).to_list() == [True, True]


@pytest.mark.parametrize(
    ("type_", "dtype"),
    [(INT, pl.Int32), (FLOAT, pl.Float32), (DecimalType(4, 1), pl.Decimal(4, 1)), (INT, pl.Date), (UUID, pl.Binary)],
)
@settings(max_examples=20)
@given(st.data())
def test_narrower_columns_do(type_: IcebergType, dtype: Any, data: st.DataObject) -> None:
    schema = schema_of(type_)
    rows = data.draw(st.lists(st.none() | plain_values(type_), min_size=1, max_size=4))
    predicate = data.draw(bound_predicates(schema))
    if dtype == pl.Date:
        values = pl.Series(rows, dtype=pl.Int32).cast(pl.Date)
    elif dtype == pl.Binary:
        values = pl.Series([None if v is None else v.bytes for v in rows], dtype=pl.Binary)
    else:
        values = pl.Series(rows, dtype=dtype)
    answer = matches_columns(predicate, lambda _: values, len(rows), schema)
    assert answer.to_list() == [evaluate(predicate, lambda _, v=v: v) is True for v in rows]
