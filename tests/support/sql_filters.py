"""Filters as SQL text, each with what it means for a row, in the three values of SQL."""

import datetime as dt
import math
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import strategies as st

Truth = bool | None
Filter = tuple[str, Callable[[dict[str, Any]], Truth]]

EVERYTHING: Filter = ("true", lambda _: True)
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


def sql_filters(columns: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Filter]:
    """Filters on columns, also inside structs, each compared with such values."""
    tests = st.one_of([_tests(name, values.filter(lambda v: v is not None)) for name, values in columns.items()])
    return st.recursive(tests, _combined, max_leaves=3)


def _tests(name: str, literals: st.SearchStrategy[Any]) -> st.SearchStrategy[Filter]:
    return (
        st.builds(_compared, st.just(name), st.sampled_from(list(_OPERATORS)), literals)
        | st.builds(_is_in, st.just(name), st.lists(literals, min_size=1, max_size=3))
        | st.just((f"{name} IS NULL", lambda row: _value(row, name) is None))
        | st.just((f"{name} IS NOT NULL", lambda row: _value(row, name) is not None))
    )


def _combined(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    return st.builds(_not, inner) | st.builds(_and, inner, inner) | st.builds(_or, inner, inner)


def _compared(name: str, operator: str, literal: Any) -> Filter:
    def truth(row: dict[str, Any]) -> Truth:
        value = _value(row, name)
        return None if value is None else _OPERATORS[operator](_ordered(value), _ordered(literal))

    return f"{name} {operator} {_literal(literal)}", truth


def _is_in(name: str, literals: list[Any]) -> Filter:
    def truth(row: dict[str, Any]) -> Truth:
        value = _value(row, name)
        return None if value is None else value in literals

    return f"{name} IN ({', '.join(map(_literal, literals))})", truth


def _value(row: dict[str, Any], name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = None if value is None else value[part]
    return value


def _ordered(value: Any) -> tuple[bool, Any]:
    """NaN is greater than every number, as Spark sorts it."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return is_nan, 0 if is_nan else value


def _not(inner: Filter) -> Filter:
    return f"NOT ({inner[0]})", lambda row: _negated(inner[1](row))


def _and(left: Filter, right: Filter) -> Filter:
    return f"({left[0]}) AND ({right[0]})", lambda row: _both(left[1](row), right[1](row))


def _or(left: Filter, right: Filter) -> Filter:
    def truth(row: dict[str, Any]) -> Truth:
        return _negated(_both(_negated(left[1](row)), _negated(right[1](row))))

    return f"({left[0]}) OR ({right[0]})", truth


def _negated(value: Truth) -> Truth:
    return None if value is None else not value


def _both(left: Truth, right: Truth) -> Truth:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def _literal(value: Any) -> str:
    if isinstance(value, dt.date):
        return f"DATE '{value}'"
    return f"'{value}'" if isinstance(value, str) else str(value)
