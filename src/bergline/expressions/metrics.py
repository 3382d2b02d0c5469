"""Whether a file may hold matching rows, from its metrics alone: false only if it certainly holds none."""

from typing import Any, assert_never

from bergline.expressions.predicate import Always, And, Comparison, IsIn, IsNull, Not, Or, Predicate
from bergline.format.manifest import DataFile
from bergline.format.schema import Schema
from bergline.format.types import DOUBLE, FLOAT
from bergline.format.values import decode_value

_NEGATED: dict[str, Any] = {"=": "!=", "!=": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}


def may_match(predicate: Predicate, file: DataFile, schema: Schema) -> bool:
    """False only if no row of the file can satisfy a bound predicate."""
    match predicate:
        case Always(value):
            return value
        case And(left, right):
            return may_match(left, file, schema) and may_match(right, file, schema)
        case Or(left, right):
            return may_match(left, file, schema) or may_match(right, file, schema)
        case IsNull(column):
            return _null_count(file, schema.names[column].id) != 0
        case Comparison(column, op, literal):
            return _compare_range(column, op, literal, file, schema)
        case IsIn(column, literals):
            return any(_compare_range(column, "=", literal, file, schema) for literal in literals)
        case Not(child):
            return _may_match_not(child, file, schema)
        case _:
            assert_never(predicate)


def _may_match_not(child: Predicate, file: DataFile, schema: Schema) -> bool:
    """Negation pushed down to the leaves, where three-valued logic makes it exact."""
    match child:
        case Always(value):
            return not value
        case Not(inner):
            return may_match(inner, file, schema)
        case And(left, right):
            return _may_match_not(left, file, schema) or _may_match_not(right, file, schema)
        case Or(left, right):
            return _may_match_not(left, file, schema) and _may_match_not(right, file, schema)
        case IsNull(column):
            return not _all_null(file, schema.names[column].id)
        case Comparison(column, op, literal):
            return may_match(Comparison(column, _NEGATED[op], literal), file, schema)
        case IsIn(column):
            return not _all_null(file, schema.names[column].id)
        case _:
            assert_never(child)


def _compare_range(column: str, op: str, literal: Any, file: DataFile, schema: Schema) -> bool:
    field = schema.names[column]
    if _all_null(file, field.id):
        return False
    lower = _bound(file.lower_bounds, field.id, field.type)
    upper = _bound(file.upper_bounds, field.id, field.type)
    # bounds leave NaN out, and NaN is greater than everything
    holds_nan = field.type in (FLOAT, DOUBLE) and (file.nan_value_counts or {}).get(field.id) != 0
    match op:
        case "=":
            return (lower is None or lower <= literal) and (upper is None or literal <= upper)
        case "<":
            return lower is None or lower < literal
        case "<=":
            return lower is None or lower <= literal
        case ">":
            return upper is None or holds_nan or upper > literal
        case ">=":
            return upper is None or holds_nan or upper >= literal
    return True


def _bound(bounds: dict[int, bytes] | None, field_id: int, type_: Any) -> Any:
    data = (bounds or {}).get(field_id)
    value = None if data is None else decode_value(type_, data)
    return None if value != value else value  # noqa: PLR0124  (old writers let NaN into bounds: it says nothing)


def _null_count(file: DataFile, field_id: int) -> int | None:
    return (file.null_value_counts or {}).get(field_id)


def _all_null(file: DataFile, field_id: int) -> bool:
    nulls = _null_count(file, field_id)
    return nulls is not None and nulls == (file.value_counts or {}).get(field_id)
