"""Predicates evaluated for many files or rows at once, on polars columns; same results as one by one."""

import uuid
from collections.abc import Callable
from operator import and_, or_
from typing import Any, assert_never

import msgspec
import polars as pl

from bergline.expressions.bounds import ColumnFacts, may_hold
from bergline.expressions.evaluate import evaluate_leaf
from bergline.expressions.fold import fold
from bergline.expressions.predicate import (
    COMPARE,
    ColumnPredicate,
    Comparison,
    ComparisonOperator,
    IsIn,
    IsNan,
    IsNull,
    Predicate,
    StartsWith,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, FLOAT


class ColumnMetrics(msgspec.Struct, frozen=True):
    """One column's metrics in many files, null where unknown; bounds as `decode_bounds` gives them."""

    lower: pl.Series
    upper: pl.Series
    null_count: pl.Series
    value_count: pl.Series
    nan_count: pl.Series


def may_match_columns(
    predicate: Predicate, metrics: Callable[[int], ColumnMetrics], record_count: pl.Series, schema: Schema
) -> pl.Series:
    """`may_match` for each file; `metrics` returns a column's metrics by field id and is called once per column."""
    known: dict[int, _Facts] = {}

    def on_leaf(leaf: ColumnPredicate, negated: bool) -> pl.Series:
        field = schema.names[leaf.column]
        if field.id not in known:
            known[field.id] = _facts(metrics(field.id), is_float=field.type in (FLOAT, DOUBLE))
        return _may_hold(leaf, negated, known[field.id])

    rows = len(record_count)
    found: pl.Series = fold(
        predicate, constant=lambda value: _repeat(value is True, rows), leaf=on_leaf, both=and_, either=or_
    )
    return (found & (record_count != 0)) | (record_count < 0)


def matches_columns(predicate: Predicate, values: Callable[[int], pl.Series], rows: int, schema: Schema) -> pl.Series:
    """Whether a bound predicate is true for each row, given the columns (such as partition values) by field id.

    Columns hold plain values in the types that `decode_bounds` returns, or narrower ones.
    """
    found: pl.Series = fold(
        predicate,
        constant=lambda value: _repeat(value, rows),
        leaf=lambda leaf, negated: _holds(leaf, negated, values(schema.names[leaf.column].id)),
        both=and_,
        either=or_,
    )
    return found.fill_null(False)


class _Facts(msgspec.Struct, frozen=True):
    """`ColumnFacts` as columns."""

    lower: pl.Series
    upper: pl.Series
    may_be_null: pl.Series
    may_be_nan: pl.Series
    may_be_value: pl.Series


def _facts(metrics: ColumnMetrics, *, is_float: bool) -> _Facts:
    nulls, values, nans = metrics.null_count, metrics.value_count, metrics.nan_count
    rows = len(nulls)
    only_null = (nulls == values).fill_null(False)
    lower, upper = metrics.lower, metrics.upper
    if is_float:
        only_nan = ((nans > 0) & (nans == values - nulls.fill_null(0))).fill_null(False)
        may_be_nan = (nans != 0).fill_null(True) & ~only_null
        # if one bound is NaN, the other is unreliable too
        is_nan = (lower.is_nan().fill_null(False)) | (upper.is_nan().fill_null(False))
        lower, upper = lower.set(is_nan, None), upper.set(is_nan, None)
    else:
        only_nan = may_be_nan = _repeat(False, rows)
    return _Facts(lower, upper, (nulls != 0).fill_null(True), may_be_nan, ~only_null & ~only_nan)


def _may_hold(leaf: ColumnPredicate, negated: bool, facts: _Facts) -> pl.Series:
    match leaf:
        case IsNull():
            return (facts.may_be_nan | facts.may_be_value) if negated else facts.may_be_null
        case IsNan():
            return facts.may_be_value if negated else facts.may_be_nan
    if facts.lower.dtype == pl.Object:
        return _one_by_one(leaf, negated, facts)
    match leaf:
        case Comparison(_, op, literal):
            found = facts.may_be_value & _may_compare(op, literal, facts)
            return found | facts.may_be_nan if op in {">", ">=", "!="} else found
        case IsIn(_, literals):
            if negated:
                return facts.may_be_nan | (facts.may_be_value & ~_only_in(literals, facts))
            least = _least_not_below(facts.lower, literals)
            return facts.may_be_value & least.is_not_null() & (least <= facts.upper).fill_null(True)
        case StartsWith(_, prefix):
            return facts.may_be_value & ~(_only_starts if negated else _never_starts)(prefix, facts)
        case _:
            assert_never(leaf)


def _may_compare(op: ComparisonOperator, literal: Any, facts: _Facts) -> pl.Series:
    if op == "=":
        above = _compare(facts.lower, "<=", literal).fill_null(True)
        return above & _compare(facts.upper, ">=", literal).fill_null(True)
    if op == "!=":
        return ~_only_in((literal,), facts)
    return _compare(facts.lower if op in {"<", "<="} else facts.upper, op, literal).fill_null(True)


def _only_in(literals: tuple[Any, ...], facts: _Facts) -> pl.Series:
    found = _least_not_below(facts.lower, literals) == facts.lower
    return (found & (facts.lower == facts.upper)).fill_null(False)


def _never_starts(prefix: str, facts: _Facts) -> pl.Series:
    above = _compare(facts.lower.str.slice(0, len(prefix)), ">", prefix).fill_null(False)
    return above | _compare(facts.upper.str.slice(0, len(prefix)), "<", prefix).fill_null(False)


def _only_starts(prefix: str, facts: _Facts) -> pl.Series:
    return (facts.lower.str.starts_with(prefix) & facts.upper.str.starts_with(prefix)).fill_null(False)


def _one_by_one(leaf: ColumnPredicate, negated: bool, facts: _Facts) -> pl.Series:
    """Fallback for values that polars cannot compare."""
    columns = (facts.lower, facts.upper, facts.may_be_null, facts.may_be_nan, facts.may_be_value)
    rows = zip(*(column.to_list() for column in columns), strict=True)
    return pl.Series([may_hold(leaf, negated, ColumnFacts(*row)) for row in rows], dtype=pl.Boolean)


def _holds(leaf: ColumnPredicate, negated: bool, values: pl.Series) -> pl.Series:
    found = _evaluate_leaf(leaf, values)
    return ~found if negated else found


def _evaluate_leaf(leaf: ColumnPredicate, values: pl.Series) -> pl.Series:
    """True, false, or null for unknown."""
    match leaf:
        case IsNull():
            return values.is_null()
        case _ if values.dtype == pl.Null:
            return _repeat(None, len(values))
        case _ if values.dtype == pl.Object or values.dtype.is_decimal():
            return pl.Series([evaluate_leaf(leaf, v) for v in values.to_list()], dtype=pl.Boolean)
        case Comparison(_, op, literal):
            return _compare(values, op, literal)
        case IsIn(_, literals):
            found = (_least_not_below(values, literals) == _comparable(values)).fill_null(False)
            return found | (values.is_null() & pl.Series([None], dtype=pl.Boolean))
        case StartsWith(_, prefix):
            return values.str.starts_with(prefix)
        case IsNan():
            return values.is_nan()
        case _:
            assert_never(leaf)


def _compare(values: pl.Series, op: ComparisonOperator, literal: Any) -> pl.Series:
    """Compare; null where the value is null. polars orders NaN, zeros, text and bytes as Spark does."""
    values = _comparable(values)
    compared: Any = COMPARE[op](values, _literals((literal,), values.dtype))
    return compared  # type: ignore[no-any-return]


def _least_not_below(values: pl.Series, literals: tuple[Any, ...]) -> pl.Series:
    """The smallest literal at or above each value, null if there is none; the smallest of all for null."""
    values = _comparable(values)
    ordered = _literals(tuple(sorted(literals)), values.dtype)
    if values.dtype == pl.Float64:
        ordered, values = ordered + 0.0, values + 0.0  # search_sorted distinguishes -0.0 from 0.0
    return ordered.extend_constant(None, 1).gather(ordered.search_sorted(values, side="left"))


def _comparable(values: pl.Series) -> pl.Series:
    """Plain values in a type that can also hold the literals."""
    if values.dtype in {pl.Float32, pl.Float64}:
        return values.cast(pl.Float64)
    return values if values.dtype in {pl.String, pl.Binary, pl.Boolean} else values.to_physical().cast(pl.Int64)


def _literals(literals: tuple[Any, ...], dtype: pl.DataType) -> pl.Series:
    return pl.Series([v.bytes if isinstance(v, uuid.UUID) else v for v in literals], dtype=dtype)


def _repeat(value: bool | None, rows: int) -> pl.Series:
    return pl.repeat(value, rows, dtype=pl.Boolean, eager=True)
