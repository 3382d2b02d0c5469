"""Three-valued evaluation of a bound predicate on one row."""

import math
from collections.abc import Callable
from typing import Any, assert_never

from bergline.expressions.fold import fold
from bergline.expressions.predicate import (
    COMPARE,
    ColumnPredicate,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Predicate,
    StartsWith,
)


def evaluate(predicate: Predicate, value_of: Callable[[str], Any]) -> bool | None:
    """True, false or unknown (None) for one row; `value_of` returns its plain value for a column name."""

    def on_leaf(leaf: ColumnPredicate, negated: bool) -> bool | None:
        found = evaluate_leaf(leaf, value_of(leaf.column))
        return found if found is None else found is not negated

    return fold(predicate, constant=lambda value: value, leaf=on_leaf, both=_both, either=_either)


def evaluate_leaf(leaf: ColumnPredicate, value: Any) -> bool | None:
    """Evaluate a leaf predicate on one plain value; None for unknown."""
    if isinstance(leaf, IsNull):
        return value is None
    if value is None:
        return None
    is_nan = isinstance(value, float) and math.isnan(value)
    match leaf:
        case Comparison(_, op, literal):
            return op in {">", ">=", "!="} if is_nan else COMPARE[op](value, literal)
        case IsIn(_, literals):
            return not is_nan and value in literals
        case StartsWith(_, prefix):
            return bool(value.startswith(prefix))
        case IsNan():
            return is_nan
        case _:
            assert_never(leaf)


def _both(left: bool | None, right: bool | None) -> bool | None:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _either(left: bool | None, right: bool | None) -> bool | None:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False
