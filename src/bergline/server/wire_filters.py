"""Filters as the protocol has them, for choosing files: what cannot be said in our words keeps every file.

Iceberg's filters have two values: `not-eq` holds where a column is null. So negation goes down to the columns first,
and each negated test holds for null too.
"""

import datetime as dt
from fractions import Fraction
from typing import Any

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.predicate import (
    ALWAYS_FALSE,
    ALWAYS_TRUE,
    MAX_DEPTH,
    And,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from bergline.expressions.times import Instant
from bergline.format.schema import Schema
from bergline.format.types import FixedType, IcebergType, PrimitiveType

_NEGATED = {
    "eq": "not-eq",
    "lt": "gt-eq",
    "gt": "lt-eq",
    "in": "not-in",
    "starts-with": "not-starts-with",
    "is-null": "not-null",
    "is-nan": "not-nan",
}
_NEGATED |= {b: a for a, b in _NEGATED.items()}
_COMPARED: dict[str, Any] = {"eq": "=", "not-eq": "!=", "lt": "<", "lt-eq": "<=", "gt": ">", "gt-eq": ">="}
_EPOCH = dt.date(1970, 1, 1)
_NANOS = {"timestamp": 1000, "timestamptz": 1000, "timestamp_ns": 1, "timestamptz_ns": 1}


def read_filter(wire: Any, schema: Schema) -> Predicate:
    """The filter in decoded JSON; InvalidInputError for what is none."""
    return ALWAYS_TRUE if wire is None else _read(wire, schema, negated=False, depth=0)


def _read(wire: Any, schema: Schema, *, negated: bool, depth: int) -> Predicate:
    if depth > MAX_DEPTH:
        raise UnsupportedError(f"expected a filter nested at most {MAX_DEPTH} levels deep, found a deeper one")
    if isinstance(wire, bool):
        return ALWAYS_TRUE if wire is not negated else ALWAYS_FALSE
    if not isinstance(wire, dict) or not isinstance(kind := wire.get("type"), str):
        raise InvalidInputError(f"expected a filter with a type, found {wire!r:.80}")
    kind = kind.lower().replace("_", "-")
    match kind:
        case "true" | "false":
            return _read(kind == "true", schema, negated=negated, depth=depth)
        case "literal":
            return _read(bool(wire.get("value")), schema, negated=negated, depth=depth)
        case "not":
            return _read(wire.get("child"), schema, negated=not negated, depth=depth + 1)
        case "and" | "or":
            left, right = (_read(wire.get(k), schema, negated=negated, depth=depth + 1) for k in ("left", "right"))
            return And(left, right) if (kind == "and") is not negated else Or(left, right)
    if kind not in _NEGATED:
        raise InvalidInputError(f"expected a known type of filter, found `{kind[:40]}`")
    return _test(_NEGATED[kind] if negated else kind, wire, schema)


def _test(kind: str, wire: dict[str, Any], schema: Schema) -> Predicate:
    column = _column(wire, schema)
    if column is None:
        return ALWAYS_TRUE
    type_ = schema.find(column).type
    match kind:
        case "is-null":
            return IsNull(column)
        case "not-null":
            return Not(IsNull(column))
        case "is-nan":
            return IsNan(column)
        case "not-nan":
            return ALWAYS_TRUE
        case "in" | "not-in":
            values = wire.get("values")
            listed = values.get("values") if isinstance(values, dict) else values
            if not isinstance(listed, list):
                raise InvalidInputError(f"expected a list of values for `{kind}`, found {values!r:.80}")
            among = IsIn(column, tuple(_literal(value, type_) for value in listed))
            return among if kind == "in" else Or(Not(among), IsNull(column))
        case "starts-with" | "not-starts-with":
            prefix = _literal(wire.get("value", wire.get("right")), type_)
            starts = StartsWith(column, prefix)
            return starts if kind == "starts-with" else Or(Not(starts), IsNull(column))
    compared = Comparison(column, _COMPARED[kind], _literal(wire.get("value", wire.get("right")), type_))
    return Or(compared, IsNull(column)) if kind == "not-eq" else compared


def _column(wire: dict[str, Any], schema: Schema) -> str | None:
    """The column that a test looks at; None where it looks at something made of one."""
    term = wire.get("term", wire.get("child", wire.get("left")))
    if isinstance(term, dict):
        if term.get("type") != "reference":
            return None
        term = term.get("name", term.get("term", term.get("id")))
    if isinstance(term, int) and not isinstance(term, bool) and term in schema.names_by_id:
        term = schema.names_by_id[term]
    if not isinstance(term, str):
        raise InvalidInputError(f"expected the name of a column in a filter, found {term!r:.80}")
    schema.find(term)
    return term


def _literal(wire: Any, type_: IcebergType) -> Any:
    """A literal that `bind` understands: days and microseconds as times, hexadecimal text as bytes."""
    if isinstance(wire, dict):
        wire = wire.get("value")
    if wire is None or isinstance(wire, dict | list):
        raise InvalidInputError(f"expected a literal in a filter, found {wire!r:.80}")
    match type_, wire:
        case PrimitiveType("date"), int() if not isinstance(wire, bool):
            return _date(wire)
        case PrimitiveType(name), int() if name in _NANOS and not isinstance(wire, bool):
            return Instant(Fraction(wire * _NANOS[name]))
        case PrimitiveType("binary") | FixedType(), str():
            try:
                return bytes.fromhex(wire)
            except ValueError as error:
                raise InvalidInputError(f"expected hexadecimal text, found `{wire[:40]}`") from error
    return wire


def _date(days: int) -> dt.date:
    try:
        return _EPOCH + dt.timedelta(days=days)
    except OverflowError as error:
        raise InvalidInputError(f"expected days in the calendar, found {days}") from error
