"""Tests of SQL that take more than one predicate: those that are never unknown, and comparisons the other way round."""

from typing import Any

from bergline.expressions.predicate import And, Comparison, ComparisonOperator, IsNan, IsNull, Not, Predicate

MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}
"""What a comparison is called when its sides change places."""


def null_safe_equal(column: str, literal: Any, *, is_null: bool) -> Predicate:
    """`<=>`: null equals null and nothing else."""
    return IsNull(column) if is_null else _never_null(column, Comparison(column, "=", literal))


def function_test(name: str, column: str) -> Predicate:
    """`isnull`, `isnotnull` or `isnan` of a column."""
    match name:
        case "isnull":
            return IsNull(column)
        case "isnotnull":
            return Not(IsNull(column))
    return _never_null(column, IsNan(column))


def _never_null(column: str, test: Predicate) -> Predicate:
    """The test of a column that is false, not unknown, where the column is null."""
    return And(Not(IsNull(column)), test)
