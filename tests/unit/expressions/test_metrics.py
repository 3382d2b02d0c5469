"""Which files may hold matching rows."""

import uuid
from typing import Any

import pytest

from bergline.errors import FormatError
from bergline.expressions.metrics import may_match, must_match
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import Comparison, IsIn, IsNan, Not, Predicate, StartsWith, bind
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import DOUBLE, LONG, STRING, UUID, NestedField

SCHEMA = Schema(
    fields=(
        NestedField(1, "a", False, LONG),
        NestedField(2, "d", False, DOUBLE),
        NestedField(3, "s", False, STRING),
        NestedField(4, "empty", False, LONG),
        NestedField(5, "late", False, LONG),
        NestedField(6, "u", False, UUID),
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


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        (StartsWith("s", "a"), False),
        (StartsWith("s", "b"), True),
        (StartsWith("s", "cxyz"), True),
        (StartsWith("s", "dd"), False),
        (StartsWith("s", "e"), False),
        (Not(StartsWith("s", "")), False),
        (Not(StartsWith("s", "b")), True),
        (IsNan("d"), False),
        (Not(IsNan("d")), True),
        (Comparison("a", "=", None), False),
        (Not(Comparison("a", "=", None)), False),
    ],
)
def test_other_predicates_on_bounds(predicate: Predicate, expected: bool) -> None:
    assert may_match(bind(predicate, SCHEMA), file(), SCHEMA) is expected


def test_one_value_that_is_excluded_cannot_match() -> None:
    one = {1: encode_value(LONG, 7), 3: b"xyz"}
    found = file(lower_bounds=one, upper_bounds=one)
    assert matches("a != 7", found) is False
    assert matches("a NOT IN (7, 8)", found) is False
    assert matches("a NOT IN (8)", found) is True
    assert may_match(Not(StartsWith("s", "xy")), found, SCHEMA) is False


def test_column_of_nan_only_is_only_greater() -> None:
    found = file(nan_value_counts={2: 10}, lower_bounds={}, upper_bounds={})
    assert [matches(f"d {op} 5", found) for op in ("=", "<", "<=", ">", ">=", "!=")] == [False] * 3 + [True] * 3
    assert may_match(Not(IsNan("d")), found, SCHEMA) is False
    assert must_match(IsNan("d"), found, SCHEMA) is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s >= 'b'", True),
        ("s > 'b'", False),
        ("s <= 'd'", True),
        ("s < 'd'", False),
        ("s < 'da'", True),
        ("s != 'a'", True),
        ("s != 'c'", False),
        ("s NOT IN ('a', 'e')", True),
        ("s NOT IN ('a', 'c')", False),
        ("s IN ('b', 'c', 'd')", False),
        ("s IS NOT NULL", True),
        ("s IS NULL", False),
        ("a >= 10", False),
        ("a IS NOT NULL", False),
        ("empty IS NULL", True),
        ("empty = 1", False),
        ("NOT empty = 1", False),
        ("late IS NULL", False),
        ("late IS NOT NULL", False),
        ("late = 1", False),
        ("d >= 1", True),
        ("d < 3", True),
        ("NOT s < 'b'", True),
        ("s >= 'b' AND d < 3", True),
        ("s >= 'b' AND a > 0", False),
        ("s < 'a' OR d < 3", True),
        ("NOT (s < 'b' OR d > 2)", True),
        ("true", True),
        ("false", False),
    ],
)
def test_all_rows_match_only_where_it_is_certain(text: str, expected: bool) -> None:
    assert must_match(bind(parse_predicate(text), SCHEMA), file(), SCHEMA) is expected


@pytest.mark.parametrize("text", ["a >= 0", "s >= 'b'", "d >= 1", "a IS NULL", "a IS NOT NULL", "NOT a = 1"])
def test_nothing_is_certain_without_metrics(text: str) -> None:
    assert must_match(bind(parse_predicate(text), SCHEMA), DataFile("f", "PARQUET", (), 10, 1), SCHEMA) is False


@pytest.mark.parametrize("counts", [{2: 1}, {}, None])
def test_nan_that_may_be_there_may_not_match(counts: dict[int, int] | None) -> None:
    found = file(nan_value_counts=counts)
    for text, expected in (("d < 3", False), ("d <= 2", False), ("d = 1", False), ("d >= 1", True), ("d != 3", True)):
        assert must_match(bind(parse_predicate(text), SCHEMA), found, SCHEMA) is expected, text


def test_file_of_one_value_matches_it_and_lists_with_it() -> None:
    one = {3: b"xyz"}
    found = file(lower_bounds=one, upper_bounds=one)
    for predicate in (Comparison("s", "=", "xyz"), IsIn("s", ("a", "xyz")), StartsWith("s", "xy")):
        assert must_match(predicate, found, SCHEMA) is True
        assert must_match(Not(predicate), found, SCHEMA) is False


@pytest.mark.parametrize("text", ["a = 15", "true", "a IS NULL", "false"])
def test_file_without_rows_matches_nothing_and_everything(text: str) -> None:
    predicate = bind(parse_predicate(text), SCHEMA)
    empty = DataFile("f", "PARQUET", (), 0, 1)
    assert (may_match(predicate, empty, SCHEMA), must_match(predicate, empty, SCHEMA)) == (False, True)
    uncounted = DataFile("f", "AVRO", (), -1, 1)
    assert (may_match(predicate, uncounted, SCHEMA), must_match(predicate, uncounted, SCHEMA)) == (True, False)


def test_nan_in_one_bound_makes_the_other_unreliable() -> None:
    found = file(upper_bounds={2: encode_value(DOUBLE, NAN)})
    assert matches("d < 1.0", found) is True


def test_uuids_between_bounds_in_the_order_of_java_or_of_bytes_may_be_there() -> None:
    low, middle, high, other = (uuid.UUID(int=n) for n in (0x80 << 120, 0x90 << 120, 0x10 << 120, 0x20 << 120))
    signed = file(lower_bounds={6: low.bytes}, upper_bounds={6: high.bytes})
    unsigned = file(lower_bounds={6: high.bytes}, upper_bounds={6: low.bytes})
    for found, inside, outside in ((signed, middle, other), (unsigned, other, middle)):
        assert may_match(Comparison("u", "=", inside), found, SCHEMA) is True
        assert may_match(Comparison("u", "=", outside), found, SCHEMA) is False
        for op in ("<", "<=", ">", ">="):
            assert may_match(Comparison("u", op, inside), found, SCHEMA) is True
    one = file(lower_bounds={6: low.bytes}, upper_bounds={6: low.bytes})
    assert may_match(Comparison("u", "<", low), one, SCHEMA) is False
