"""Conditions of which we know without Spark's optimizer what they mean: plain columns against values.

What a comparison means in Spark may depend on types and settings: text is cast, times without a zone are of the
session's, whole numbers meet doubles as doubles. Only those count here that mean the same whatever the settings are.
"""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Literal, NamedTuple

from bergline.errors import BerglineError
from bergline.expressions.predicate import (
    Always,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    bind,
)
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMPTZ,
    DecimalType,
    IcebergType,
    NestedField,
    StructType,
)

ColumnKind = Literal[
    "null", "boolean", "whole", "decimal", "double", "string", "binary", "date", "timestamp", "timestamp_ntz"
]
_SAME = {
    ("boolean", BOOLEAN),
    ("whole", INT),
    ("whole", LONG),
    ("double", DOUBLE),
    ("string", STRING),
    ("binary", BINARY),
    ("date", DATE),
    ("timestamp", TIMESTAMPTZ),
    ("timestamp_ntz", TIMESTAMP),
}
_EXACT_IN_DOUBLE = 2**53
_MOST_DIGITS = 18
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Value(NamedTuple):
    """A literal, and the type that Spark gives it."""

    kind: ColumnKind
    value: Any


class Conjunction(NamedTuple):
    """Conditions that must all hold, or one of which must."""

    parts: list[Any]
    all: bool


class Negation(NamedTuple):
    """A condition that must not hold."""

    part: Any


Outline = Conjunction | Negation | Predicate | None
"""A condition: put together from others, a predicate whose literals are `Value`s, or one that we do not understand."""


class PlainPredicates:
    """Conditions on a table's columns, in a language of which `outline` tells how one is put together."""

    def __init__(self, schema: Schema, outline: Callable[[Any], Outline], qualifier: str | None = None) -> None:
        self._schema = schema
        self._outline = outline
        self._qualifier = qualifier
        self._has_dots = any("." in part for path in schema.paths.values() for part in path)

    def exact(self, condition: Any) -> Predicate | None:
        """What holds for exactly the rows that a condition keeps; None if we cannot tell."""
        match self._outline(condition):
            case Conjunction(parts, together):
                found = [self.exact(part) for part in parts]
                known = [part for part in found if part is not None]
                return None if len(known) < len(found) else (all_of if together else any_of)(known)
            case Negation(part):
                child = self.exact(part)
                return None if child is None else Not(child)
            case None:
                return None
            case predicate:
                return self._understood(predicate)

    def known_part(self, condition: Any) -> Predicate | None:
        """What holds for every row that a condition keeps; None if nothing is known."""
        outline = self._outline(condition)
        if not isinstance(outline, Conjunction):
            return self.exact(condition)
        found = [self.known_part(part) for part in outline.parts]
        known = [part for part in found if part is not None]
        if outline.all:
            return all_of(known) if known else None
        return any_of(known) if len(known) == len(found) else None

    def _understood(self, predicate: Predicate) -> Predicate | None:
        """The predicate with plain literals, if it is a comparison that we understand too."""
        plain = self._plain(predicate)
        if plain is None:
            return None
        try:
            bind(plain, self._schema)
        except BerglineError:
            return None
        return plain

    def _plain(self, predicate: Predicate) -> Predicate | None:
        match predicate:
            case Always():
                return predicate
            case And(left, right) | Or(left, right):
                first, second = self._plain(left), self._plain(right)
                return None if first is None or second is None else type(predicate)(first, second)
            case Not(child):
                plain = self._plain(child)
                return None if plain is None else Not(plain)
        name, field = self._column(predicate.column)
        if field is None:
            return None
        match predicate:
            case IsNull():
                return IsNull(name)
            case IsNan():
                return IsNan(name) if field.type == DOUBLE else None
            case StartsWith(_, prefix):
                return StartsWith(name, prefix) if field.type == STRING else None
            case Comparison(_, op, literal):
                found = _comparable(field.type, literal)
                return None if found is None else Comparison(name, op, found.value)
            case IsIn(_, literals):
                values = [_comparable(field.type, literal) for literal in literals]
                kinds = {literal.kind for literal in literals} - {"null"}  # mixed, Spark takes a type that fits all
                if len(kinds) > 1 or None in values:
                    return None
                return IsIn(name, tuple(v.value for v in values if v is not None))

    def _column(self, name: str) -> tuple[str, NestedField | None]:
        """A column or a field inside structs, by its name as it is spelt."""
        if self._has_dots:
            return name, None
        field = _field(self._schema, name)
        if field is None and self._qualifier and name.startswith(f"{self._qualifier}."):
            inner = name.removeprefix(f"{self._qualifier}.")
            return inner, None if _field(self._schema, self._qualifier) else _field(self._schema, inner)
        return name, field


def _field(schema: Schema, name: str) -> NestedField | None:
    fields: tuple[NestedField, ...] = schema.fields
    field = None
    for part in name.split("."):
        field = next((f for f in fields if f.name == part), None)
        if field is None:
            return None
        fields = field.type.fields if isinstance(field.type, StructType) else ()
    return field


def _comparable(type_: IcebergType, literal: Value) -> Value | None:
    """The literal as a value for our filters; None if Spark may compare otherwise."""
    kind, value = literal
    if kind == "null" or (kind, type_) in _SAME:
        return literal
    match kind, type_:
        case "decimal", _ if type_ in (INT, LONG):
            return literal if _is_short(value) else None
        case "whole" | "decimal", DecimalType(precision, _):
            return literal if precision <= _MOST_DIGITS and _is_short(Decimal(value)) else None
        case "whole", _ if type_ == DOUBLE:
            return Value("double", float(value)) if abs(value) <= _EXACT_IN_DOUBLE else None
        case "decimal", _ if type_ == DOUBLE:
            return Value("double", float(value))
        case "string", _ if type_ == DATE:
            return literal if _DAY.fullmatch(value) else None
    return None


def _is_short(number: Decimal) -> bool:
    """Whether Spark compares it with whole numbers and decimals without rounding either."""
    _, digits, exponent = number.as_tuple()
    return isinstance(exponent, int) and -_MOST_DIGITS <= exponent <= 0 and len(digits) <= _MOST_DIGITS
