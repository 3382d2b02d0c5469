"""Which manifests may list files with matching rows."""

import pytest

from bergline.errors import FormatError
from bergline.expressions.parse import parse_predicate
from bergline.expressions.predicate import IsNan, Not, bind
from bergline.expressions.project import project_inclusive
from bergline.expressions.summaries import may_match_manifest
from bergline.format.manifest.manifest import FieldSummary
from bergline.format.partition.spec import PartitionField, PartitionSpec
from bergline.format.partition.transforms import IDENTITY, parse_transform
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import DOUBLE, LONG, STRING, NestedField

SCHEMA = Schema(
    fields=(NestedField(1, "a", False, LONG), NestedField(2, "d", False, DOUBLE), NestedField(3, "s", False, STRING))
)
SPEC = PartitionSpec(
    0,
    (
        PartitionField(1, 1000, "a_trunc", parse_transform("truncate[10]")),
        PartitionField(99, 1001, "gone", IDENTITY),
        PartitionField(2, 1002, "d", IDENTITY),
        PartitionField(3, 1003, "s", IDENTITY),
    ),
)
A = FieldSummary(contains_null=False, lower_bound=encode_value(LONG, 10), upper_bound=encode_value(LONG, 20))
GONE = FieldSummary(contains_null=True)
D = FieldSummary(False, False, encode_value(DOUBLE, 1.0), encode_value(DOUBLE, 2.0))
S = FieldSummary(contains_null=True, contains_nan=False)


def matches(text: str, d: FieldSummary = D) -> bool:
    projected = project_inclusive(bind(parse_predicate(text), SCHEMA), SPEC, SCHEMA)
    return may_match_manifest(projected, (A, GONE, d, S), SPEC, SCHEMA)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 9", False),
        ("a = 10", True),
        ("a = 29", True),
        ("a = 30", False),
        ("a > 29", False),
        ("a < 10", False),
        ("a IN (1, 31)", False),
        ("a IS NULL", False),
        ("a IS NOT NULL", True),
        ("d > 2", False),
        ("d >= 2", True),
        ("s IS NULL", True),
        ("s IS NOT NULL", False),
        ("s = 'x'", False),
        ("s != 'x'", False),
        ("a = 9 OR d = 1", True),
        ("a = 9 AND d = 1", False),
        ("NOT (a < 30 AND d < 3)", False),
    ],
)
def test_manifest_is_left_out_only_where_no_file_can_match(text: str, expected: bool) -> None:
    assert matches(text) is expected


@pytest.mark.parametrize("nan", [True, None])
def test_nan_that_may_be_there_is_greater_than_everything(nan: bool | None) -> None:
    summary = FieldSummary(False, nan, D.lower_bound, D.upper_bound)
    assert matches("d > 9", summary) is True
    assert matches("d = 9", summary) is False


def test_only_nan_has_no_bounds() -> None:
    summary = FieldSummary(contains_null=False, contains_nan=True)
    assert (matches("d > 9", summary), matches("d < 9", summary)) == (True, False)
    assert may_match_manifest(Not(IsNan("d")), (A, GONE, summary, S), SPEC, SCHEMA) is False


def test_missing_bounds_without_nulls_say_nothing() -> None:
    assert matches("d = 9", FieldSummary(contains_null=False, contains_nan=False)) is True


def test_missing_summaries_say_nothing() -> None:
    projected = project_inclusive(bind(parse_predicate("a = 9"), SCHEMA), SPEC, SCHEMA)
    assert may_match_manifest(projected, None, SPEC, SCHEMA) is True


def test_summaries_of_another_spec_are_a_format_error() -> None:
    projected = project_inclusive(bind(parse_predicate("a = 9"), SCHEMA), SPEC, SCHEMA)
    with pytest.raises(FormatError, match="expected 4 partition summaries, found 1"):
        may_match_manifest(projected, (A,), SPEC, SCHEMA)
