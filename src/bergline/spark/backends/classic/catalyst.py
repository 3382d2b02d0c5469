"""Conditions that Spark has resolved, as predicates of ours.

Spark resolves names, casts, parameters, time zones and the current date, so that what is left are columns against
values. Parts that we have no words for are left out: what comes back may keep more rows than the condition, not fewer.
"""

import json
import struct
import uuid
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

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
_VALUES: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("byte", "short", "integer", "long"), int),
    "double": float,
    # its shortest text is that of another number than the nearest single
    "float": lambda number: struct.unpack("<f", struct.pack("<f", float(number)))[0],
    "boolean": lambda text: text.lower() == "true",
    "string": str,
    "decimal": Decimal,
    "date": lambda days: Instant(Fraction(int(days) * NANOS_PER_DAY)),
    "timestamp": lambda micros: Instant(Fraction(int(micros) * _NANOS_PER_MICRO)),
    "timestamp_ntz": lambda micros: Instant(Fraction(int(micros) * _NANOS_PER_MICRO)),
}
"""Values by the text of what Catalyst keeps of them: days, microseconds."""
_SHOWN_OTHERWISE = ("date", "timestamp", "timestamp_ntz")
"""Literals of these types are told as the session shows them."""
_BETWEEN = "\0"


_NANOSECONDS = (TIMESTAMP_NS, TIMESTAMPTZ_NS)


def _rendered_time(text: str) -> str:
    nanoseconds = parse_time_of_day(text).nanoseconds
    return render_time(int(nanoseconds), per_second=10**9)


_TEXT_FORMS: dict[IcebergType, Callable[[str], str]] = {UUID: lambda text: str(uuid.UUID(text)), TIME: _rendered_time}


def known_part(condition: Any, schema: Schema, *, clock: bool = False) -> Predicate:
    """What holds for every row that a Catalyst condition keeps, in words that bind to the schema.

    With `clock`, values may come from the current time, and the frame may run later: then only lower bounds of times
    and `IS NULL` count, which still hold.
    """
    found = _inclusive(_node_of(condition), schema)
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
    return _exact(_node_of(condition), schema)


def hidden_field(java: Any, name: str) -> Any:
    """A field of a Java object that no public method gives."""
    field = java.getClass().getDeclaredField(name)
    field.setAccessible(True)
    return field.get(java)


def scala_items(sequence: Any) -> Iterator[Any]:
    """The items of a Scala collection."""
    items = sequence.iterator()
    while items.hasNext():
        yield items.next()


def scala_seq(sequence: Any) -> list[Any]:
    """The items of a Scala sequence, in half as many calls if it is short."""
    return [sequence.apply(place) for place in range(sequence.size())]


def class_of(java: Any) -> str:
    """The name of an object's class."""
    return str(java.getClass().getSimpleName())


def kind_of(node: Any) -> str:
    """What a node of a plan is: the name of its class, in one call."""
    return str(node.nodeName())


def is_random_case(value: Any) -> bool:
    """Whether a CASE, or another one that it chooses, has a condition that is not deterministic."""
    if class_of(value) != "CaseWhen":
        return False
    branches = [(branch._1(), branch._2()) for branch in scala_items(value.branches())]  # noqa: SLF001  (a pair)
    chosen = [*(then for _, then in branches), *scala_items(value.elseValue())]
    return any(not when.deterministic() for when, _ in branches) or any(map(is_random_case, chosen))


class _Node(msgspec.Struct, frozen=True):
    """A node of a condition, from the JSON in which Spark gives the whole tree."""

    kind: str
    fields: dict[str, Any]
    children: list["_Node"]
    path: tuple[int, ...]
    """Which child of the condition it is, which child of that one, and so on."""
    condition: Any

    def java(self) -> Any:
        """The node itself."""
        found = self.condition
        for place in self.path:
            found = found.children().apply(place)
        return found


def _node_of(condition: Any) -> _Node | None:
    """A condition in one call; None if Spark cannot tell."""
    try:
        told = iter(json.loads(str(condition.toJSON())))
    except (Py4JError, PySparkException):
        return None

    def next_node(path: tuple[int, ...]) -> _Node:
        fields = next(told)  # each node stands before its children
        children = [next_node((*path, place)) for place in range(fields["num-children"])]
        return _Node(str(fields["class"]).rpartition(".")[2], fields, children, path, condition)

    return next_node(())


def _inclusive(node: _Node | None, schema: Schema) -> Predicate | None:
    if node is None:
        return None
    match node.kind:
        case "And":
            parts = [_inclusive(side, schema) for side in node.children]
            known = [part for part in parts if part is not None]
            return all_of(known) if known else None
        case "Or":
            parts = [_inclusive(side, schema) for side in node.children]
            return None if None in parts else any_of([part for part in parts if part is not None])
    return _exact(node, schema)


def _exact(node: _Node | None, schema: Schema) -> Predicate | None:
    """The condition itself, or nothing."""
    if node is None:
        return None
    match node.kind:
        case "And" | "Or" as kind:
            left, right = (_exact(side, schema) for side in node.children)
            if left is None or right is None:
                return None
            return all_of([left, right]) if kind == "And" else any_of([left, right])
        case "Not":
            child = _exact(node.children[0], schema)
            return None if child is None else Not(child)
    predicate = _leaf(node)
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
    """Whether UUIDs and times of day, which are text in Spark, are spelled as Spark has them.

    UUIDs are in lower case with hyphens there, times have two digits for each part and no zeros at the end of a
    fraction. No row is equal to any other spelling.
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


def _leaf(node: _Node) -> Predicate | None:
    kind = node.kind
    match kind:
        case "AttributeReference" | "GetStructField":
            column = _column(node)
            return None if column is None else Comparison(column, "=", True)
        case "IsNull" | "IsNotNull" | "IsNaN":
            column = _column(node.children[0])
            return None if column is None else function_predicate(kind.lower(), column)
        case "In" | "InSet":
            return _membership(node)
    if kind in _COMPARISONS or kind in {"EqualNullSafe", "StartsWith"}:
        return _comparison(node)
    return None


def _membership(node: _Node) -> Predicate | None:
    value, *listed = node.children
    column = _column(value)
    if column is None:
        return None
    literals = _set_values(node, value) if node.kind == "InSet" else [_literal(literal) for literal in listed]
    return None if _NO_LITERAL in literals else IsIn(column, tuple(literals))


def _comparison(node: _Node) -> Predicate | None:
    left, right = node.children
    column, literal, swapped = _column(left), _literal(right), False
    if column is None:
        column, literal, swapped = _column(right), _literal(left), True
    if column is None or literal is _NO_LITERAL:
        return None
    if node.kind == "StartsWith":
        return StartsWith(column, literal) if isinstance(literal, str) and not swapped else None
    if node.kind == "EqualNullSafe":
        return null_safe_equal(column, literal, is_null=literal is None)
    operator = _COMPARISONS[node.kind]
    return Comparison(column, MIRRORED[operator] if swapped else operator, literal)


def _column(node: _Node) -> str | None:
    """The full name of a column or of a field inside structs."""
    match node.kind:
        case "AttributeReference":
            return str(node.fields["name"])
        case "GetStructField":
            around = _column(node.children[0])
            return None if around is None else f"{around}.{node.java().extractFieldName()}"
    return None


class _NoLiteral:
    """An expression that is no literal, or one of a type that we do not compare."""


_NO_LITERAL = _NoLiteral()


def _literal(node: _Node) -> Any:
    if node.kind != "Literal":
        return _NO_LITERAL
    text, type_ = node.fields.get("value"), _type_name(node)
    if text is None:
        return None
    if type_ == "binary":
        return bytes(node.java().value())
    return _plain(str(node.java().value()) if type_ in _SHOWN_OTHERWISE else str(text), type_)


def _set_values(node: _Node, value: _Node) -> list[Any]:
    """The values of a set, fetched as one text."""
    type_, values = _type_name(value), node.java().hset()
    if type_ == "binary":
        return [None if one is None else bytes(one) for one in scala_items(values)]
    texts: list[str | None] = [*str(values.mkString(_BETWEEN)).split(_BETWEEN)]
    if len(texts) != int(values.size()) or values.contains(None):
        texts = [None if one is None else str(one) for one in scala_items(values)]
    return [None if text is None else _plain(text, type_) for text in texts]


def _type_name(node: _Node) -> str:
    """The name of a type, that of decimals without their digits."""
    name = node.fields.get("dataType")
    return str(node.java().dataType().typeName() if name is None else name).partition("(")[0]


def _plain(text: str, type_: str) -> Any:
    """A value of Catalyst as our filters take it."""
    return _VALUES[type_](text) if type_ in _VALUES else _NO_LITERAL
