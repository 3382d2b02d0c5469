"""What a bound predicate comes to, bottom up: the one walk that every evaluation and projection is made of."""

from collections.abc import Callable
from typing import TypeVar

from bergline.expressions.predicate import Always, And, ColumnTest, Comparison, ComparisonOperator, Not, Or, Predicate

T = TypeVar("T")
_NEGATED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "!=",
    "!=": "=",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


def fold(
    predicate: Predicate,
    *,
    constant: Callable[[bool | None], T],
    test: Callable[[ColumnTest, bool], T],
    both: Callable[[T, T], T],
    either: Callable[[T, T], T],
    negated: bool = False,
) -> T:
    """What a bound predicate comes to, bottom up, with negation pushed down to the tests, where it is exact.

    A test comes with whether it is negated; comparisons come with the opposite operator instead.
    """
    match predicate:
        case Always(value):
            return constant(value if value is None else value is not negated)
        case Not(child):
            return fold(child, constant=constant, test=test, both=both, either=either, negated=not negated)
        case And(left, right) | Or(left, right):
            first = fold(left, constant=constant, test=test, both=both, either=either, negated=negated)
            second = fold(right, constant=constant, test=test, both=both, either=either, negated=negated)
            return (both if isinstance(predicate, And) is not negated else either)(first, second)
        case _:
            return test(*normal_test(predicate, negated=negated))


def normal_test(test: ColumnTest, *, negated: bool) -> tuple[ColumnTest, bool]:
    """A test and whether it is negated; never a negated comparison."""
    if negated and isinstance(test, Comparison):
        return Comparison(test.column, _NEGATED[test.operator], test.literal), False
    return test, negated
