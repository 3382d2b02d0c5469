"""Which files may hold matching rows."""

from typing import Any

import pytest

from bergline.errors import FormatError
from bergline.expressions.metrics import may_match
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import bind
from bergline.format.manifest import DataFile
from bergline.format.schema import Schema
from bergline.format.types import DOUBLE, LONG, STRING, NestedField
from bergline.format.values import encode_value

SCHEMA = Schema(
    fields=(
        NestedField(1, "a", False, LONG),
        NestedField(2, "d", False, DOUBLE),
        NestedField(3, "s", False, STRING),
        NestedField(4, "empty", False, LONG),
        NestedField(5, "late", False, LONG),
    )
)
NAN = float("nan")


def file(**changes: Any) -> DataFile:
    """a in 10..20 with nulls, d in 1.0..2.0 without NaN, s in 'b'..'d' without nulls, `empty` all null, no `late`."""
    metrics: dict[str, Any] = {
        "value_counts": {1: 10, 2: 10, 3: 10, 4: 10},
        "null_value_counts": {1: 3, 2: 0, 3: 0, 4: 10},
        "nan_value_counts": {2: 0},
        "lower_bounds": {1: encode_value(LONG, 10), 2: encode_value(DOUBLE, 1.0), 3: b"b"},
        "upper_bounds": {1: encode_value(LONG, 20), 2: encode_value(DOUBLE, 2.0), 3: b"d"},
    }
    return DataFile("f", "PARQUET", (), 10, 1, **(metrics | changes))


def matches(text: str, found: DataFile) -> bool:
    return may_match(bind(parse_predicate(text), SCHEMA), found, SCHEMA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 9", False),
        ("a = 10", True),
        ("a = 20", True),
        ("a = 21", False),
        ("a < 10", False),
        ("a <= 10", True),
        ("a > 20", False),
        ("a >= 20", True),
        ("a != 15", True),
        ("a IN (1, 2)", False),
        ("a IN (1, 12)", True),
        ("a NOT IN (12)", True),
        ("a IS NULL", True),
        ("a IS NOT NULL", True),
        ("s IS NULL", False),
        ("NOT s IS NOT NULL", False),
        ("s > 'd'", False),
        ("s BETWEEN 'a' AND 'az'", False),
        ("empty = 1", False),
        ("empty != 1", False),
        ("empty NOT IN (1)", False),
        ("empty IS NOT NULL", False),
        ("empty IS NULL", True),
        ("late = 1", True),
        ("late IS NULL", True),
        ("late IS NOT NULL", True),
        ("true", True),
        ("false", False),
        ("NOT true", False),
        ("NOT NOT a = 9", False),
        ("NOT a < 10", True),
        ("NOT a >= 10", False),
        ("NOT a > 9", False),
        ("NOT a <= 20", False),
        ("NOT a != 9", False),
        ("a = 9 AND s = 'c'", False),
        ("a = 9 OR s = 'c'", True),
        ("a = 9 OR s = 'x'", False),
        ("NOT (a = 15 AND s = 'c')", True),
        ("NOT (a >= 10 AND s >= 'b')", False),
        ("NOT (a >= 10 OR s = 'c')", False),
        ("d > 2.0", False),
        ("NOT d <= 2.0", False),
    ],
)
def test_file_is_left_out_only_where_no_row_can_match(text: str, expected: bool) -> None:
    assert matches(text, file()) is expected


@pytest.mark.parametrize("text", ["a = 99", "s < 'a'", "d > 9.0", "empty = 1", "a IS NULL", "NOT a < 99"])
def test_file_without_metrics_may_match_anything(text: str) -> None:
    assert matches(text, DataFile("f", "PARQUET", (), 10, 1)) is True


@pytest.mark.parametrize("counts", [{2: 1}, {}, None])
@pytest.mark.parametrize("text", ["d > 9.0", "d >= 9.0", "NOT d < 9.0", "NOT d <= 9.0"])
def test_nan_that_may_be_there_is_greater_than_everything(counts: dict[int, int] | None, text: str) -> None:
    assert matches(text, file(nan_value_counts=counts)) is True


@pytest.mark.parametrize("text", ["d = 9.0", "d < 1.0", "NOT d > 0.5"])
def test_nan_is_not_less_or_equal(text: str) -> None:
    assert matches(text, file(nan_value_counts={2: 1})) is False


@pytest.mark.parametrize("text", ["d = 9.0", "d < 0.5", "d > 9.0", "d IN (9.0)"])
def test_bounds_that_are_nan_say_nothing(text: str) -> None:
    bounds = {2: encode_value(DOUBLE, NAN)}
    assert matches(text, file(lower_bounds=bounds, upper_bounds=bounds)) is True


def test_zeros_of_both_signs_are_equal() -> None:
    zero = {2: encode_value(DOUBLE, -0.0)}
    assert matches("d = 0", file(lower_bounds=zero, upper_bounds=zero)) is True


def test_missing_upper_bound_is_no_bound() -> None:
    assert matches("s > 'zzz'", file(upper_bounds={})) is True
    assert matches("s < 'b'", file(upper_bounds={})) is False


def test_bounds_written_before_widening_are_understood() -> None:
    narrow = {1: (10).to_bytes(4, "little")}
    assert matches("a < 10", file(lower_bounds=narrow)) is False
    assert matches("a <= 10", file(lower_bounds=narrow)) is True


def test_damaged_bound_is_a_format_error() -> None:
    with pytest.raises(FormatError, match="expected a `long`, found 3 bytes"):
        matches("a = 1", file(lower_bounds={1: b"abc"}))
