"""Whether rows can satisfy a leaf predicate, given what is known about the values of its column.

The facts come from a file's metrics or a manifest's partition summary; any of them may be missing.
"""

import uuid
from typing import Any, assert_never

import msgspec

from bergline.expressions.fold import normalized_leaf
from bergline.expressions.predicate import ColumnPredicate, Comparison, IsIn, IsNan, IsNull, StartsWith


class ColumnFacts(msgspec.Struct, frozen=True):
    """Which values a column may have in a set of rows; the bounds leave out null and NaN."""

    lower: Any = None
    upper: Any = None
    may_be_null: bool = True
    may_be_nan: bool = True
    may_be_value: bool = True
    """Whether any row may hold a value that is neither null nor NaN."""


def may_hold(leaf: ColumnPredicate, negated: bool, facts: ColumnFacts) -> bool:
    """False only if the leaf predicate, or its negation, is true for no row."""
    match leaf:
        case IsNull():
            return (facts.may_be_nan or facts.may_be_value) if negated else facts.may_be_null
        case IsNan():
            return facts.may_be_value if negated else facts.may_be_nan
        case Comparison(_, op, literal):
            # NaN is greater than everything and unequal to it
            if op in {">", ">=", "!="} and facts.may_be_nan:
                return True
            return facts.may_be_value and _may_compare(op, literal, facts)
        case IsIn(_, literals):
            if negated:
                return facts.may_be_nan or (facts.may_be_value and not _only_in(literals, facts))
            return facts.may_be_value and any(_may_equal(v, facts) for v in literals)
        case StartsWith(_, prefix):
            starts = _only_starts if negated else _never_starts
            return facts.may_be_value and not starts(prefix, facts)
        case _:
            assert_never(leaf)


def must_hold(leaf: ColumnPredicate, negated: bool, facts: ColumnFacts) -> bool:
    """True only if the leaf predicate, or its negation, is true for every row."""
    if not isinstance(leaf, IsNull) and facts.may_be_null:
        return False
    return not may_hold(*normalized_leaf(leaf, negated=not negated), facts)


def _may_compare(op: str, literal: Any, facts: ColumnFacts) -> bool:
    lower, upper = facts.lower, facts.upper
    if op == "=":
        return _may_equal(literal, facts)
    if op == "!=":
        return not _only_in((literal,), facts)
    if isinstance(literal, uuid.UUID) and lower != upper:
        return True
    match op:
        case "<":
            return lower is None or bool(lower < literal)
        case "<=":
            return lower is None or bool(lower <= literal)
        case ">":
            return upper is None or bool(upper > literal)
    return upper is None or bool(upper >= literal)


def _may_equal(literal: Any, facts: ColumnFacts) -> bool:
    lower, upper = facts.lower, facts.upper
    orders = (_as_is, _signed) if isinstance(literal, uuid.UUID) else (_as_is,)
    return any(
        (lower is None or order(lower) <= order(literal)) and (upper is None or order(literal) <= order(upper))
        for order in orders
    )


def _only_in(literals: tuple[Any, ...], facts: ColumnFacts) -> bool:
    """Whether there is only one value, and it is among the literals; a truncated bound never equals the other."""
    return facts.lower is not None and bool(facts.lower == facts.upper) and facts.lower in literals


def _never_starts(prefix: str, facts: ColumnFacts) -> bool:
    length = len(prefix)
    return (facts.lower is not None and facts.lower[:length] > prefix) or (
        facts.upper is not None and facts.upper[:length] < prefix
    )


def _only_starts(prefix: str, facts: ColumnFacts) -> bool:
    lower, upper = facts.lower, facts.upper
    return lower is not None and upper is not None and lower.startswith(prefix) and upper.startswith(prefix)


def _as_is(value: Any) -> Any:
    return value


def _signed(value: uuid.UUID) -> tuple[int, int]:
    """The order of UUIDs in Java, which its partition summaries use; Parquet compares unsigned bytes."""
    high, low = value.int >> 64, value.int & (2**64 - 1)
    return high - (high >> 63 << 64), low - (low >> 63 << 64)
