"""Conditions that Spark has resolved, as predicates of ours.

Spark resolves names, casts, parameters, time zones and the current date, so that what is left are columns against
values. Parts that we have no words for are left out: what comes back may keep more rows than the condition, not fewer.
"""

import struct
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

from bergline.errors import BerglineError
from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    And,
    Comparison,
    ComparisonOperator,
    IsIn,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    bind,
)
from bergline.expressions.sql_predicates import MIRRORED, function_predicate, null_safe_equal
from bergline.expressions.times import NANOS_PER_DAY, Instant, parse_time_of_day
from bergline.format.encoding.iso import render_time
from bergline.format.schema.schema import Schema
from bergline.format.types.types import TIME, TIMESTAMP_NS, TIMESTAMPTZ_NS, UUID, IcebergType

_COMPARISONS: dict[str, ComparisonOperator] = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_NANOS_PER_MICRO = 1000
_VALUES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), int),
    "double": float,
    # it comes as its shortest text: 1.1, which is another number than the nearest single
    "float": lambda number: struct.unpack("<f", struct.pack("<f", number))[0],
    "boolean": bool,
    "string": str,
    "binary": bytes,
    "date": lambda days: Instant(Fraction(days * NANOS_PER_DAY)),
    "timestamp": lambda micros: Instant(Fraction(micros * _NANOS_PER_MICRO)),
    "timestamp_ntz": lambda micros: Instant(Fraction(micros * _NANOS_PER_MICRO)),
}


_NANOSECONDS = (TIMESTAMP_NS, TIMESTAMPTZ_NS)


def _rendered_time(text: str) -> str:
    nanoseconds = parse_time_of_day(text).nanoseconds
    return render_time(int(nanoseconds), per_second=10**9)


_TEXT_FORMS: dict[IcebergType, Callable[[str], str]] = {UUID: lambda text: str(uuid.UUID(text)), TIME: _rendered_time}


def known_part(condition: Any, schema: Schema, *, clock: bool = False) -> Predicate:
    """What holds for every row that a Catalyst condition keeps, in words that bind to the schema.

    With `clock`, values may have come from the time that it is now, and the frame may run later: only lower bounds of
    times and `IS NULL` are taken, which hold then too.
    """
    found = _inclusive(condition, schema)
    if found is None:
        return ALWAYS_TRUE
    return _without_clock(found) or ALWAYS_TRUE if clock else found


def _without_clock(predicate: Predicate) -> Predicate | None:
    match predicate:
        case And(left, right):
            known = [part for part in map(_without_clock, (left, right)) if part is not None]
            return all_of(known) if known else None
        case Or(left, right):
            first, second = _without_clock(left), _without_clock(right)
            return None if first is None or second is None else any_of([first, second])
        case Comparison(_, ">" | ">=", Instant()) | IsNull() | Not(IsNull()):
            return predicate
    return None


def exact_predicate(condition: Any, schema: Schema) -> Predicate | None:
    """What holds for exactly the rows that a Catalyst condition keeps; None if we cannot."""
    return _exact(condition, schema)


def hidden_field(java: Any, name: str) -> Any:
    """A field of a Java object that no public method gives."""
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def scala_items(sequence: Any) -> Iterator[Any]:
    """What is in a Scala collection."""
    items = sequence.iterator()
    while items.hasNext():
        yield items.next()


def scala_seq(sequence: Any) -> list[Any]:
    """What is in a Scala sequence: of a short one that takes half of the calls."""
    return [sequence.apply(place) for place in range(sequence.size())]


def class_of(node: Any) -> str:
    """The name of a Catalyst node's class."""
    return str(node.getClass().getSimpleName())


def is_random_case(value: Any) -> bool:
    """Whether a condition of a CASE, or of one that it chooses, may be another each time."""
    if class_of(value) != "CaseWhen":
        return False
    branches = [(branch._1(), branch._2()) for branch in scala_items(value.branches())]  # noqa: SLF001  (a pair)
    chosen = [*(then for _, then in branches), *scala_items(value.elseValue())]
    return any(not when.deterministic() for when, _ in branches) or any(map(is_random_case, chosen))


def _inclusive(condition: Any, schema: Schema) -> Predicate | None:
    match class_of(condition):
        case "And":
            parts = [_inclusive(side, schema) for side in (condition.left(), condition.right())]
            known = [part for part in parts if part is not None]
            return all_of(known) if known else None
        case "Or":
            parts = [_inclusive(side, schema) for side in (condition.left(), condition.right())]
            return None if None in parts else any_of([part for part in parts if part is not None])
    return _exact(condition, schema)


def _exact(condition: Any, schema: Schema) -> Predicate | None:
    """The condition itself, or nothing."""
    match class_of(condition):
        case "And" | "Or" as kind:
            left, right = _exact(condition.left(), schema), _exact(condition.right(), schema)
            if left is None or right is None:
                return None
            return all_of([left, right]) if kind == "And" else any_of([left, right])
        case "Not":
            child = _exact(condition.child(), schema)
            return None if child is None else Not(child)
    predicate = _leaf(condition)
    return _as_stored(predicate, schema) if predicate is not None and _can_bind(predicate, schema) else None


def _can_bind(predicate: Predicate, schema: Schema) -> bool:
    """Whether it is a comparison that we understand too."""
    try:
        bind(predicate, schema)
    except BerglineError:
        return False
    return _is_the_same_for_text(predicate, schema)


def _as_stored(predicate: Predicate, schema: Schema) -> Predicate:
    """What holds for the stored values; Spark reads nanoseconds as the whole microseconds before them."""
    match predicate:
        case Comparison(column, op, Instant() as instant) if schema.find(column).type in _NANOSECONDS:
            after = Instant(instant.nanoseconds + _NANOS_PER_MICRO)
            match op:
                case "<=":
                    return Comparison(column, "<", after)
                case ">":
                    return Comparison(column, ">=", after)
                case "=":
                    return And(Comparison(column, ">=", instant), Comparison(column, "<", after))
        case IsIn(column, literals) if literals and schema.find(column).type in _NANOSECONDS:
            parts = (Comparison(column, "=", literal) for literal in literals)
            return any_of([_as_stored(part, schema) for part in parts])
        case And(left, right):
            return And(_as_stored(left, schema), _as_stored(right, schema))
    return predicate


def _is_the_same_for_text(predicate: Predicate, schema: Schema) -> bool:
    """UUIDs and times of day are text in Spark, which finds them only as they are written there.

    That is in lower case with hyphens, and with two digits each and no zeros at the end of a fraction.
    """
    match predicate:
        case Comparison(column, _, literal):
            literals: tuple[Any, ...] = (literal,)
        case IsIn(column, literals):
            pass
        case And(_, Comparison() as comparison):
            return _is_the_same_for_text(comparison, schema)
        case _:
            return True
    render = _TEXT_FORMS.get(schema.find(column).type)
    return render is None or all(literal is None or literal == render(literal) for literal in literals)


def _leaf(condition: Any) -> Predicate | None:
    kind = class_of(condition)
    match kind:
        case "AttributeReference" | "GetStructField":
            column = _column(condition)
            return None if column is None else Comparison(column, "=", True)
        case "IsNull" | "IsNotNull" | "IsNaN":
            column = _column(condition.child())
            return None if column is None else function_predicate(kind.lower(), column)
        case "In" | "InSet":
            return _membership(condition, kind)
    if kind in _COMPARISONS or kind in {"EqualNullSafe", "StartsWith"}:
        return _comparison(condition, kind)
    return None


def _membership(condition: Any, kind: str) -> Predicate | None:
    value = condition.value() if kind == "In" else condition.child()
    column = _column(value)
    if column is None:
        return None
    if kind == "InSet":
        type_ = value.dataType().simpleString()
        literals = [_plain(v, type_) for v in scala_items(condition.hset())]
    else:
        literals = [_literal(v) for v in scala_items(condition.list())]
    return None if _OTHER in literals else IsIn(column, tuple(literals))


def _comparison(condition: Any, kind: str) -> Predicate | None:
    left, right = condition.left(), condition.right()
    column, literal, swapped = _column(left), _literal(right), False
    if column is None:
        column, literal, swapped = _column(right), _literal(left), True
    if column is None or literal is _OTHER:
        return None
    if kind == "StartsWith":
        return StartsWith(column, literal) if isinstance(literal, str) and not swapped else None
    if kind == "EqualNullSafe":
        return null_safe_equal(column, literal, is_null=literal is None)
    operator = _COMPARISONS[kind]
    return Comparison(column, MIRRORED[operator] if swapped else operator, literal)


def _column(expression: Any) -> str | None:
    """The full name of a column or of a field inside structs."""
    match class_of(expression):
        case "AttributeReference":
            return str(expression.name())
        case "GetStructField":
            around = _column(expression.child())
            return None if around is None else f"{around}.{expression.extractFieldName()}"
    return None


class _Other:
    """An expression that is no literal, or one of a type that we do not compare."""


_OTHER = _Other()


def _literal(expression: Any) -> Any:
    if class_of(expression) != "Literal":
        return _OTHER
    return _plain(expression.value(), expression.dataType().simpleString())


def _plain(value: Any, type_: str) -> Any:
    """A value as Catalyst keeps it (days, microseconds), as our filters take it."""
    if value is None:
        return None
    if type_.startswith("decimal"):
        return Decimal(str(value.toString()))
    if type_ == "string":
        return str(value.toString())
    return _VALUES[type_](value) if type_ in _VALUES else _OTHER
