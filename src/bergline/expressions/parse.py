"""Predicates from SQL text such as `amount > 5 AND region IN ('eu', 'us')`."""

import datetime as dt
from decimal import Decimal
from typing import Any

import sqlglot
from sqlglot import exp

from bergline.errors import InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.expressions.predicate import (
    Always,
    And,
    Comparison,
    ComparisonOperator,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
)

_COMPARISONS: dict[type[exp.Expression], ComparisonOperator] = {
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "=": "=",
    "!=": "!=",
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
}


def parse_predicate(text: str) -> Predicate:
    """The predicate that the text says; SqlSyntaxError or UnsupportedError where it cannot be one."""
    try:
        return _predicate(sqlglot.parse_one(text, dialect="spark", into=exp.Condition), text)
    except sqlglot.errors.ParseError as error:
        place = error.errors[0] if error.errors else {}
        raise SqlSyntaxError(
            f"cannot read the filter `{text}` near `{place.get('highlight') or text}`",
            line=place.get("line") or 1,
            column=place.get("col") or 1,
        ) from error
    except sqlglot.errors.SqlglotError as error:
        raise SqlSyntaxError(f"cannot read the filter `{text}`", line=1, column=1) from error
    except RecursionError as error:
        raise UnsupportedError(f"expected a filter of fewer terms, found {len(text)} characters of them") from error


def _predicate(tree: Any, text: str) -> Predicate:
    match tree:
        case exp.Paren():
            return _predicate(tree.this, text)
        case exp.Not():
            return Not(_predicate(tree.this, text))
        case exp.And():
            return And(_predicate(tree.left, text), _predicate(tree.right, text))
        case exp.Or():
            return Or(_predicate(tree.left, text), _predicate(tree.right, text))
        case exp.Boolean():
            return Always(bool(tree.this))
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return IsNull(_column(tree.this, text))
        case exp.In() if tree.expressions:
            return IsIn(_column(tree.this, text), tuple(_literal(e, text) for e in tree.expressions))
        case exp.Between():
            column = _column(tree.this, text)
            low, high = _literal(tree.args["low"], text), _literal(tree.args["high"], text)
            return And(Comparison(column, ">=", low), Comparison(column, "<=", high))
    if op := _COMPARISONS.get(type(tree)):
        if isinstance(tree.left, exp.Column):
            return Comparison(_column(tree.left, text), op, _literal(tree.right, text))
        if isinstance(tree.right, exp.Column):
            return Comparison(_column(tree.right, text), _MIRRORED[op], _literal(tree.left, text))
    raise UnsupportedError(
        f"expected comparisons of columns with literals, found `{_sql(tree)}` in the filter `{text}`",
        hints=["=, !=, <, <=, >, >=, IN, BETWEEN, IS [NOT] NULL, AND, OR and NOT are understood"],
    )


def _column(tree: Any, text: str) -> str:
    if not isinstance(tree, exp.Column):
        raise UnsupportedError(f"expected a column, found `{_sql(tree)}` in the filter `{text}`")
    return ".".join(part.name for part in tree.parts)


def _literal(tree: Any, text: str) -> Any:
    match tree:
        case exp.Literal():
            return str(tree.this) if tree.is_string else _number(str(tree.this))
        case exp.Boolean():
            return bool(tree.this)
        case exp.Neg() if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return -_number(str(tree.this.this))
        case exp.Cast() if isinstance(tree.this, exp.Literal) and tree.this.is_string:
            return _typed_literal(tree, text)
    raise UnsupportedError(f"expected a literal, found `{_sql(tree)}` in the filter `{text}`")


def _typed_literal(tree: exp.Cast, text: str) -> Any:
    value = str(tree.this.this)
    try:
        if tree.is_type("date"):
            return dt.date.fromisoformat(value)
        if tree.is_type("timestamp", "timestamptz", "timestampntz"):
            return dt.datetime.fromisoformat(value)
    except ValueError as error:
        raise InvalidInputError(f"expected a date or time, found `{value}` in the filter `{text}`") from error
    raise UnsupportedError(f"expected a literal, found `{_sql(tree)}` in the filter `{text}`")


def _number(text: str) -> int | Decimal:
    return int(text) if text.isdigit() else Decimal(text)


def _sql(tree: Any) -> str:
    return str(tree.sql(dialect="spark"))
