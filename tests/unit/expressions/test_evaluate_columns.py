"""Predicates evaluated on columns."""

import polars as pl
import pytest

from bergline.expressions.evaluate_columns import ColumnMetrics, matches_columns, may_match_columns
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, LONG, NestedField

SCHEMA = Schema(fields=(NestedField(1, "a", False, LONG), NestedField(2, "d", False, DOUBLE)))
ROWS = {1: pl.Series([1, 5, None], dtype=pl.Int64), 2: pl.Series([0.5, float("nan"), 2.0], dtype=pl.Float64)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > 1", [False, True, False]),
        ("NOT a > 1", [True, False, False]),
        ("a IS NULL", [False, False, True]),
        ("a IN (1, 7)", [True, False, False]),
        ("d > 1", [False, True, True]),
        ("isnan(d)", [False, True, False]),
        ("a = 1 OR d = 2", [True, False, True]),
        ("true", [True, True, True]),
    ],
)
def test_rows_match_where_the_predicate_is_true(text: str, expected: list[bool]) -> None:
    assert matches_columns(bind(parse_predicate(text), SCHEMA), ROWS.__getitem__, 3, SCHEMA).to_list() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 3", [True, False, True]),
        ("a > 9", [False, True, True]),
        ("a IS NULL", [False, True, True]),
        ("a = 3 AND a > 9", [False, False, True]),
        ("false", [False, False, False]),
    ],
)
def test_files_are_ruled_out_by_their_metrics(text: str, expected: list[bool]) -> None:
    asked: list[int] = []

    def metrics(field_id: int) -> ColumnMetrics:
        asked.append(field_id)
        return ColumnMetrics(
            value_count=pl.Series([10, 10, None], dtype=pl.Int64),
            null_count=pl.Series([0, 2, None], dtype=pl.Int64),
            nan_count=pl.Series([None, None, None], dtype=pl.Int64),
            lower=pl.Series([1, 10, None], dtype=pl.Int64),
            upper=pl.Series([5, 20, None], dtype=pl.Int64),
        )

    found = may_match_columns(bind(parse_predicate(text), SCHEMA), metrics, pl.Series([10, 10, 10]), SCHEMA)
    assert found.to_list() == expected
    assert len(asked) <= 1
