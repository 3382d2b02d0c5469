"""Literals of filters in the protocol's JSON, as `bind` understands them."""

from fractions import Fraction
from typing import Any

from bergline.errors import InvalidInputError
from bergline.expressions.times import NANOS_PER_DAY, Instant, TimeOfDay
from bergline.format.types import FixedType, IcebergType, PrimitiveType

_MICRO = 1000
_NOT_NUMBERS = {"NaN", "Infinity", "-Infinity"}


def read_literal(wire: Any, type_: IcebergType, place: str) -> Any:
    """A literal for a column of the type; InvalidInputError with its place for what is none.

    Whole numbers are days for dates and, as in Java, microseconds for times of every precision; bytes are hexadecimal.
    """
    if isinstance(wire, dict):
        wire, place = wire.get("value"), f"{place}.value"
    if wire is None or isinstance(wire, dict | list):
        raise InvalidInputError(f"expected a literal, found {wire!r:.80} at {place}")
    match type_, wire:
        case _, bool():
            return wire
        case PrimitiveType("date"), int():
            return Instant(Fraction(wire * NANOS_PER_DAY))
        case PrimitiveType("time"), int():
            return TimeOfDay(Fraction(wire * _MICRO))
        case PrimitiveType("timestamp" | "timestamptz" | "timestamp_ns" | "timestamptz_ns"), int():
            return Instant(Fraction(wire * _MICRO))
        case PrimitiveType("float" | "double"), str() if wire in _NOT_NUMBERS:
            return float(wire)
        case PrimitiveType("binary") | FixedType(), str():
            try:
                return bytes.fromhex(wire)
            except ValueError as error:
                raise InvalidInputError(f"expected hexadecimal text, found `{wire[:40]}` at {place}") from error
    return wire
