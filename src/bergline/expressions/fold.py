"""A bottom-up fold over bound predicates, on which every evaluation and projection is built."""

from collections.abc import Callable
from typing import TypeVar

from bergline.expressions.predicate import (
    Always,
    And,
    ColumnPredicate,
    Comparison,
    ComparisonOperator,
    Not,
    Or,
    Predicate,
)

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
    leaf: Callable[[ColumnPredicate, bool], T],
    both: Callable[[T, T], T],
    either: Callable[[T, T], T],
    negated: bool = False,
) -> T:
    """Fold a bound predicate bottom-up, with negation pushed down to the leaves, where it is exact.

    `leaf` receives whether the leaf is negated; comparisons get the opposite operator instead.
    """
    match predicate:
        case Always(value):
            return constant(value if value is None else value is not negated)
        case Not(child):
            return fold(child, constant=constant, leaf=leaf, both=both, either=either, negated=not negated)
        case And(left, right) | Or(left, right):
            first = fold(left, constant=constant, leaf=leaf, both=both, either=either, negated=negated)
            second = fold(right, constant=constant, leaf=leaf, both=both, either=either, negated=negated)
            return (both if isinstance(predicate, And) is not negated else either)(first, second)
        case _:
            return leaf(*normalized_leaf(predicate, negated=negated))


def normalized_leaf(leaf: ColumnPredicate, *, negated: bool) -> tuple[ColumnPredicate, bool]:
    """The leaf and whether it is negated; a negated comparison becomes one with the opposite operator."""
    if negated and isinstance(leaf, Comparison):
        return Comparison(leaf.column, _NEGATED[leaf.operator], leaf.literal), False
    return leaf, negated
