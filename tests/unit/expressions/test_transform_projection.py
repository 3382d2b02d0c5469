"""Leaf predicates projected through partition transforms."""

import pytest

from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    ColumnPredicate,
    Comparison,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from bergline.expressions.transform_projection import project_leaf
from bergline.format.partition.transforms import parse_transform
from bergline.format.types.types import DATE, INT, LONG, STRING, TIMESTAMP, IcebergType

DAY_MICROS = 86_400_000_000


@pytest.mark.parametrize(
    ("transform", "source", "leaf", "expected"),
    [
        ("identity", LONG, Comparison("c", "<", 5), Comparison("p", "<", 5)),
        ("void", LONG, Comparison("c", "<", 5), ALWAYS_TRUE),
        ("bucket[16]", LONG, Comparison("c", "<", 5), ALWAYS_TRUE),
        ("bucket[16]", LONG, IsNull("c"), IsNull("p")),
        ("truncate[10]", LONG, Comparison("c", "=", 15), Comparison("p", "=", 10)),
        ("truncate[10]", LONG, Comparison("c", ">", 19), Comparison("p", ">=", 20)),
        ("truncate[2]", STRING, Comparison("c", "=", "abc"), Comparison("p", "=", "ab")),
        ("truncate[2]", STRING, StartsWith("c", "a"), StartsWith("p", "a")),
        ("truncate[2]", STRING, StartsWith("c", "abc"), Comparison("p", "=", "ab")),
        ("day", TIMESTAMP, Comparison("c", ">=", DAY_MICROS), Comparison("p", ">=", 1)),
        ("day", TIMESTAMP, Comparison("c", "<", DAY_MICROS), Comparison("p", "<=", 0)),
        ("month", DATE, IsIn("c", (0, 1, 31)), IsIn("p", (0, 1))),
    ],
)
def test_projection_covers_the_partition_of_every_matching_row(
    transform: str, source: IcebergType, leaf: ColumnPredicate, expected: Predicate
) -> None:
    assert project_leaf(parse_transform(transform), source, "p", leaf, negated=False) == expected


def test_negated_leaves_project_where_that_is_exact() -> None:
    identity, bucket = parse_transform("identity"), parse_transform("bucket[16]")
    assert project_leaf(identity, LONG, "p", IsIn("c", (1,)), negated=True) == Not(IsIn("p", (1,)))
    assert project_leaf(bucket, LONG, "p", IsIn("c", (1,)), negated=True) == ALWAYS_TRUE


def test_smallest_integers_wrap_around_when_truncated() -> None:
    smallest = -(2**31)
    wrapped = parse_transform("truncate[10]").apply(INT, smallest)
    found = project_leaf(parse_transform("truncate[10]"), INT, "p", Comparison("c", "<", 0), negated=False)
    assert wrapped > 0
    assert found == Or(Comparison("p", "<=", -10), Comparison("p", "=", wrapped))


def test_partitions_next_to_one_before_1970_are_included() -> None:
    found = project_leaf(parse_transform("day"), TIMESTAMP, "p", Comparison("c", "=", -DAY_MICROS), negated=False)
    assert found == IsIn("p", (-2, -1, 0))
