"""What the known bounds of a column say about leaf predicates."""

import uuid

import pytest

from bergline.expressions.bounds import ColumnFacts, may_hold, must_hold
from bergline.expressions.predicate import ColumnPredicate, Comparison, IsIn, IsNan, IsNull, StartsWith

NUMBERS = ColumnFacts(10, 20, may_be_null=False, may_be_nan=False)
TEXTS = ColumnFacts("ba", "bz", may_be_null=False, may_be_nan=False)


@pytest.mark.parametrize(
    ("leaf", "facts", "may", "must"),
    [
        (Comparison("c", "=", 9), NUMBERS, False, False),
        (Comparison("c", "=", 15), NUMBERS, True, False),
        (Comparison("c", "!=", 21), NUMBERS, True, True),
        (Comparison("c", "<", 10), NUMBERS, False, False),
        (Comparison("c", "<=", 10), NUMBERS, True, False),
        (Comparison("c", "<", 21), NUMBERS, True, True),
        (Comparison("c", ">=", 10), NUMBERS, True, True),
        (Comparison("c", ">", 20), NUMBERS, False, False),
        (IsIn("c", (1, 9, 21)), NUMBERS, False, False),
        (IsIn("c", (1, 12)), NUMBERS, True, False),
        (IsIn("c", (7,)), ColumnFacts(7, 7, may_be_null=False, may_be_nan=False), True, True),
        (StartsWith("c", "b"), TEXTS, True, True),
        (StartsWith("c", "bx"), TEXTS, True, False),
        (StartsWith("c", "c"), TEXTS, False, False),
        (IsNull("c"), NUMBERS, False, False),
        (IsNan("c"), NUMBERS, False, False),
    ],
)
def test_bounds_decide_what_rows_can_and_must_satisfy(
    leaf: ColumnPredicate, facts: ColumnFacts, may: bool, must: bool
) -> None:
    assert (may_hold(leaf, False, facts), must_hold(leaf, False, facts)) == (may, must)


@pytest.mark.parametrize("leaf", [Comparison("c", "=", 1), IsIn("c", (1,)), StartsWith("c", "x"), IsNull("c")])
@pytest.mark.parametrize("negated", [False, True])
def test_without_facts_everything_is_possible_and_nothing_certain(leaf: ColumnPredicate, negated: bool) -> None:
    assert may_hold(leaf, negated, ColumnFacts())
    assert not must_hold(leaf, negated, ColumnFacts())


def test_null_rows_keep_a_predicate_from_being_certain() -> None:
    assert not must_hold(Comparison("c", "<", 100), False, ColumnFacts(1, 2, may_be_nan=False))


def test_nan_is_above_every_bound() -> None:
    facts = ColumnFacts(1.0, 2.0, may_be_null=False)
    assert may_hold(Comparison("c", ">", 9.0), False, facts)
    assert not may_hold(Comparison("c", "<", 1.0), False, facts)


def test_uuid_bounds_may_be_in_java_s_order_or_in_byte_order() -> None:
    low, inside, high = (uuid.UUID(int=n << 120) for n in (0x80, 0x90, 0x10))
    assert may_hold(Comparison("c", "=", inside), False, ColumnFacts(low, high))
    assert may_hold(Comparison("c", "=", uuid.UUID(int=0x20 << 120)), False, ColumnFacts(high, low))
    assert not may_hold(Comparison("c", "=", inside), False, ColumnFacts(high, low))
