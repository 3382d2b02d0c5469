"""Predicates as closed variants, and binding them to a schema.

Literals of bound predicates are plain values, as everywhere below the Arrow boundary: days, microseconds, Decimal.
"""

import datetime as dt
import math
import operator
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, Literal, assert_never

import msgspec

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.schema import Schema
from bergline.format.types import DecimalType, IcebergType, NestedField, PrimitiveType

ComparisonOperator = Literal["=", "!=", "<", "<=", ">", ">="]
COMPARE: dict[ComparisonOperator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MAX_DECIMAL_DIGITS = 38
_EPOCH_DATE = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class Always(msgspec.Struct, frozen=True):
    """True or false for every row."""

    value: bool


class Comparison(msgspec.Struct, frozen=True):
    """A column against a literal; unknown where the column is null."""

    column: str
    operator: ComparisonOperator
    literal: Any


class IsIn(msgspec.Struct, frozen=True):
    """A column against several literals."""

    column: str
    literals: tuple[Any, ...]


class IsNull(msgspec.Struct, frozen=True):
    """Whether a column is null; never unknown."""

    column: str


class Not(msgspec.Struct, frozen=True):
    """Unknown stays unknown."""

    child: "Predicate"


class And(msgspec.Struct, frozen=True):
    """Both."""

    left: "Predicate"
    right: "Predicate"


class Or(msgspec.Struct, frozen=True):
    """Either."""

    left: "Predicate"
    right: "Predicate"


Predicate = Always | Comparison | IsIn | IsNull | Not | And | Or

ALWAYS_TRUE = Always(True)


def bind(predicate: Predicate, schema: Schema) -> Predicate:
    """The same predicate with columns spelt as in the schema and literals converted to the columns' types."""
    match predicate:
        case Always():
            return predicate
        case Comparison(column, op, literal):
            name, field = _column(column, schema)
            return Comparison(name, op, convert_literal(literal, field.type, name))
        case IsIn(column, literals):
            name, field = _column(column, schema)
            return IsIn(name, tuple(convert_literal(v, field.type, name) for v in literals))
        case IsNull(column):
            return IsNull(_column(column, schema)[0])
        case Not(child):
            return Not(bind(child, schema))
        case And(left, right):
            return And(bind(left, schema), bind(right, schema))
        case Or(left, right):
            return Or(bind(left, schema), bind(right, schema))
        case _:
            assert_never(predicate)


def columns_of(predicate: Predicate) -> set[str]:
    """The names of the columns that a predicate looks at."""
    match predicate:
        case Always():
            return set()
        case Comparison(column) | IsIn(column) | IsNull(column):
            return {column}
        case Not(child):
            return columns_of(child)
        case And(left, right) | Or(left, right):
            return columns_of(left) | columns_of(right)
        case _:
            assert_never(predicate)


def convert_literal(value: Any, type_: IcebergType, column: str) -> Any:
    """A literal as a value of the column's type; InvalidInputError where it does not fit."""
    try:
        converted = _convert(value, type_)
    except (ValueError, OverflowError, InvalidOperation):
        converted = None
    if converted is None:
        raise InvalidInputError(f"expected a `{type_}` to compare with column `{column}`, found {value!r}")
    return converted


def _convert(value: Any, type_: IcebergType) -> Any:
    match type_, value:
        case PrimitiveType("boolean"), bool():
            return value
        case _, bool():
            return None
        case PrimitiveType("int" | "long"), int():
            return value if -(2**63) <= value < 2**63 else None
        case PrimitiveType("int" | "long"), Decimal() if value == value.to_integral_value():
            return _convert(int(value), type_)
        case PrimitiveType("float" | "double"), int() | Decimal() | float():
            return None if math.isnan(value) else float(value)
        case DecimalType(), int() | Decimal():
            return _decimal(Decimal(value))
        case PrimitiveType("string"), str():
            return value
        case PrimitiveType("date"), dt.datetime():
            return None
        case PrimitiveType("date"), dt.date():
            return (value - _EPOCH_DATE).days
        case PrimitiveType("date"), str():
            return (dt.date.fromisoformat(value) - _EPOCH_DATE).days
        case PrimitiveType("timestamp" | "timestamptz"), dt.datetime():
            return _micros(value)
        case PrimitiveType("timestamp" | "timestamptz"), dt.date():
            return (value - _EPOCH_DATE).days * 86_400_000_000
        case PrimitiveType("timestamp" | "timestamptz"), str():
            return _micros(dt.datetime.fromisoformat(value))
        case PrimitiveType("binary"), bytes():
            return value
    return None


def _decimal(value: Decimal) -> Decimal | None:
    """The value if up to 38 digits on each side of the point are enough for it."""
    exponent = value.as_tuple().exponent
    fits = isinstance(exponent, int) and exponent >= -MAX_DECIMAL_DIGITS and value.adjusted() < MAX_DECIMAL_DIGITS
    return value if fits else None


def _micros(value: dt.datetime) -> int:
    """Microseconds since 1970; a time without a zone counts as UTC."""
    aware = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // dt.timedelta(microseconds=1)


def _column(name: str, schema: Schema) -> tuple[str, NestedField]:
    field = schema.find(name)
    if field.id not in schema.paths:
        raise UnsupportedError(f"expected a column outside lists and maps in a filter, found `{name}`")
    return schema.names_by_id[field.id], field
