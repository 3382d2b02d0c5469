"""Predicates as closed variants, and binding them to a schema.

Literals of bound predicates are values of the columns' types, in plain form as everywhere below Arrow: days,
microseconds, Decimal. Bound predicates are never deeply nested, so that functions over them may recurse.

SQL's three-valued logic holds, with Spark's order: NaN is greater than everything and equal to itself, -0.0 equals 0.0,
text compares by code point. Every leaf but IsNull is unknown where its column is null.
"""

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, Literal, assert_never

import msgspec

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.literals import LiteralPosition, locate
from bergline.format.schema.reserved import is_metadata_column
from bergline.format.schema.schema import Schema
from bergline.format.types.types import DOUBLE, FLOAT, STRING, NestedField

ComparisonOperator = Literal["=", "!=", "<", "<=", ">", ">="]
COMPARE: dict[ComparisonOperator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
MAX_DEPTH = 100
# the operator to use with the nearest value when the literal lies just above it, or just below
_BESIDE: dict[int, dict[ComparisonOperator, ComparisonOperator]] = {
    1: {"<": "<=", "<=": "<=", ">": ">", ">=": ">"},
    -1: {"<": "<", "<=": "<", ">": ">=", ">=": ">="},
}


class Always(msgspec.Struct, frozen=True):
    """True, false or unknown for every row."""

    value: bool | None


class Comparison(msgspec.Struct, frozen=True):
    """A column compared with a literal; a null literal makes it unknown."""

    column: str
    operator: ComparisonOperator
    literal: Any


class IsIn(msgspec.Struct, frozen=True):
    """Whether a column equals one of several literals."""

    column: str
    literals: tuple[Any, ...]


class StartsWith(msgspec.Struct, frozen=True):
    """Whether the text of a column starts with a prefix."""

    column: str
    prefix: str


class IsNan(msgspec.Struct, frozen=True):
    """Whether a number is NaN; unlike Spark's `isnan`, unknown where it is null."""

    column: str


class IsNull(msgspec.Struct, frozen=True):
    """Whether a column is null; never unknown."""

    column: str


class Not(msgspec.Struct, frozen=True):
    """Negation; the negation of unknown is unknown."""

    child: "Predicate"


class And(msgspec.Struct, frozen=True):
    """Conjunction, in three-valued logic."""

    left: "Predicate"
    right: "Predicate"


class Or(msgspec.Struct, frozen=True):
    """Disjunction, in three-valued logic."""

    left: "Predicate"
    right: "Predicate"


ColumnPredicate = Comparison | IsIn | StartsWith | IsNan | IsNull
Predicate = Always | ColumnPredicate | Not | And | Or

ALWAYS_TRUE = Always(True)
ALWAYS_FALSE = Always(False)
UNKNOWN = Always(None)


def all_of(parts: Iterable[Predicate]) -> Predicate:
    """The conjunction of all parts, as a balanced tree."""
    return _balanced(And, list(parts)) or ALWAYS_TRUE


def any_of(parts: Iterable[Predicate]) -> Predicate:
    """The disjunction of all parts, as a balanced tree."""
    return _balanced(Or, list(parts)) or ALWAYS_FALSE


def bind(predicate: Predicate, schema: Schema) -> Predicate:
    """Bind to a schema: columns spelled as in the schema, literals converted to the columns' types.

    A literal that no value can equal becomes the nearest value with an operator that gives the same results:
    `id > 1.5` is `id > 1`, and a number beyond the type's range is greater than its largest value.
    """
    return _bind(predicate, schema, 0)


def columns_of(predicate: Predicate) -> set[str]:
    """The names of the columns that a predicate refers to."""
    names: set[str] = set()
    pending: list[Predicate] = [predicate]
    while pending:
        match pending.pop():
            case Always():
                pass
            case Comparison(column) | IsIn(column) | StartsWith(column) | IsNan(column) | IsNull(column):
                names.add(column)
            case Not(child):
                pending.append(child)
            case And(left, right) | Or(left, right):
                pending += (left, right)
            case other:
                assert_never(other)
    return names


def _balanced(kind: type[And | Or], parts: list[Predicate]) -> Predicate | None:
    while len(parts) > 1:
        pairs = [kind(left, right) for left, right in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else [*pairs]
    return parts[0] if parts else None


def _bind(predicate: Predicate, schema: Schema, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise UnsupportedError(f"expected a filter nested at most {MAX_DEPTH} levels deep, found a deeper one")
    match predicate:
        case Always():
            return predicate
        case Not(child):
            return Not(_bind(child, schema, depth + 1))
        case And() | Or():
            parts = _operands(predicate)
            deeper = depth + (len(parts) - 1).bit_length()
            join = all_of if isinstance(predicate, And) else any_of
            return join([_bind(part, schema, deeper) for part in parts])
        case _:
            return _bind_leaf(predicate, schema)


def _operands(predicate: And | Or) -> list[Predicate]:
    """The operands of a chain of ANDs or ORs, however it is parenthesized."""
    kind, found = type(predicate), []
    pending: list[Predicate] = [predicate]
    while pending:
        part = pending.pop()
        if isinstance(part, And | Or) and type(part) is kind:
            pending += (part.right, part.left)
        else:
            found.append(part)
    return found


def _bind_leaf(predicate: ColumnPredicate, schema: Schema) -> Predicate:
    name, field = _column(predicate.column, schema)
    match predicate:
        case Comparison(_, _, None):
            return UNKNOWN
        case Comparison(_, op, literal):
            return _compare(name, op, locate(literal, field.type, name))
        case IsIn(_, literals):
            return _bind_in(name, field, literals)
        case StartsWith(_, prefix):
            if field.type != STRING:
                raise InvalidInputError(f"expected a `string` column to start with {prefix!r}, found `{field.type}`")
            return StartsWith(name, locate(prefix, STRING, name).value)
        case IsNan():
            if field.type not in (FLOAT, DOUBLE):
                raise InvalidInputError(
                    f"expected a `float` or `double` column that may be NaN, found `{field.type}` in `{name}`"
                )
            return IsNan(name)
        case IsNull():
            return IsNull(name)
        case _:
            assert_never(predicate)


def _compare(name: str, op: ComparisonOperator, position: LiteralPosition) -> Predicate:
    value = position.value
    if isinstance(value, float) and math.isnan(value):
        return _compare_nan(name, op)
    if position.side == 0:
        return Comparison(name, op, value)
    if op in {"=", "!="}:
        return IsIn(name, ()) if op == "=" else Not(IsIn(name, ()))
    return Comparison(name, _BESIDE[position.side][op], value)


def _compare_nan(name: str, op: ComparisonOperator) -> Predicate:
    """A comparison with NaN, which is the greatest value and equals itself."""
    match op:
        case "=" | ">=":
            return IsNan(name)
        case "!=" | "<":
            return Not(IsNan(name))
        case "<=":
            return Not(IsIn(name, ()))
        case ">":
            return IsIn(name, ())
        case _:
            assert_never(op)


def _bind_in(name: str, field: NestedField, literals: tuple[Any, ...]) -> Predicate:
    """A null literal turns every result but true into unknown; NaN becomes IsNan."""
    positions = [locate(v, field.type, name) for v in literals if v is not None]
    exact = dict.fromkeys(p.value for p in positions if p.side == 0)
    numbers = [v for v in exact if not (isinstance(v, float) and math.isnan(v))]
    found: Predicate = IsIn(name, tuple(numbers))
    if len(numbers) < len(exact):
        found = Or(found, IsNan(name)) if numbers else IsNan(name)
    return Or(found, UNKNOWN) if None in literals else found


def _column(name: str, schema: Schema) -> tuple[str, NestedField]:
    if name not in schema.names and is_metadata_column(name):
        raise UnsupportedError(
            f"expected a column of the table in a filter, found `{name}`, which can be selected but not filtered on yet"
        )
    field = schema.find(name)
    if field.id not in schema.paths:
        raise UnsupportedError(f"expected a column outside lists and maps in a filter, found `{name}`")
    return schema.names_by_id[field.id], field
