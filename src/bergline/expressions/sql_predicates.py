"""SQL operators that expand to several predicates: `<=>`, `isnull`, `isnotnull`, `isnan`, and mirrored comparisons."""

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
"""The operator of a comparison after its operands are swapped."""


def null_safe_equal(column: str, literal: Any, *, is_null: bool) -> Predicate:
    """`<=>`: null equals null and nothing else."""
    return IsNull(column) if is_null else _false_if_null(column, Comparison(column, "=", literal))


def function_predicate(name: str, column: str) -> Predicate:
    """`isnull`, `isnotnull` or `isnan` of a column."""
    match name:
        case "isnull":
            return IsNull(column)
        case "isnotnull":
            return Not(IsNull(column))
    return _false_if_null(column, IsNan(column))


def _false_if_null(column: str, predicate: Predicate) -> Predicate:
    """The predicate, but false instead of unknown where the column is null."""
    return And(Not(IsNull(column)), predicate)
