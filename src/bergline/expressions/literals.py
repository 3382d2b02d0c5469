"""Positions of literals among the values of a column's type.

Literals mean what they mean in Spark and Java: numbers compare by value, whatever their types; dates compared with
timestamps are midnight; times without a zone count as UTC; text is parsed as Spark does for dates and times, as a
number for decimals and in the usual form for UUIDs. Text is not read as int, float, boolean or bytes: Spark and Java
disagree. Doubles compared with integers and decimals mean the number as written: `0.1D` is 0.1.
"""

import datetime as dt
import math
import uuid
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any, Literal

import msgspec

from bergline.arguments import shown
from bergline.errors import InvalidInputError
from bergline.expressions.times import (
    NANOS_PER_DAY,
    TIME_HINT,
    Instant,
    TimeOfDay,
    parse_day,
    parse_instant,
    parse_time_of_day,
)
from bergline.format.types.single_values import scaled
from bergline.format.types.types import DecimalType, FixedType, IcebergType, PrimitiveType

_EPOCH_DATE = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NANOS_PER_MICRO = 1000
_INT_RANGE = (-(2**31), 2**31 - 1)
_LONG_RANGE = (-(2**63), 2**63 - 1)
_RANGES = {"int": _INT_RANGE, "date": _INT_RANGE}
_MAX_DOUBLE = 1.7976931348623157e308
_MOST_DIGITS = 60
"""Numbers with more digits before the point exceed every type and are never expanded."""
_NANOS_PER_UNIT = {
    "date": NANOS_PER_DAY,
    "timestamp": _NANOS_PER_MICRO,
    "timestamptz": _NANOS_PER_MICRO,
    "timestamp_ns": 1,
    "timestamptz_ns": 1,
}


class LiteralPosition(msgspec.Struct, frozen=True):
    """A value of the type, and whether the literal equals it (0) or lies just above (1) or below (-1) it."""

    value: Any
    side: Literal[-1, 0, 1] = 0


def locate(literal: Any, type_: IcebergType, column: str) -> LiteralPosition:
    """The position of a literal, which need not be a value of the type; InvalidInputError if not comparable."""
    try:
        position = _locate(literal, type_)
    except (ValueError, OverflowError, InvalidOperation):
        position = None
    if position is None and isinstance(literal, bool):
        raise InvalidInputError(
            f"expected a `boolean` column as a condition, or to compare with {str(literal).lower()}, "
            f"found `{type_}` in column `{column}`",
            hints=["compare the column with a value, or write IS NOT NULL"],
        )
    if position is None:
        raise InvalidInputError(
            f"expected a `{type_}` to compare with column `{column}`, found {shown(literal)}",
            hints=_hints(literal, type_, column),
        )
    return position


def nan_hint(column: str) -> str:
    """A hint on how to filter for NaN."""
    return f"write isnan({column}), or double('NaN') as a literal"


def _hints(literal: Any, type_: IcebergType, column: str) -> list[str]:
    match type_, literal:
        case PrimitiveType("float" | "double"), str():
            if literal.strip().lower() == "nan":
                return [nan_hint(column)]
            return ["write numbers without quotes, and infinity as double('Infinity')"]
        case PrimitiveType("int" | "long"), str():
            return ["write numbers without quotes"]
        case PrimitiveType(name), str() if name == "time" or name in _NANOS_PER_UNIT:
            return [TIME_HINT]
    return []


def _locate(literal: Any, type_: IcebergType) -> LiteralPosition | None:
    match type_, literal:
        case PrimitiveType("boolean"), bool():
            return LiteralPosition(literal)
        case _, bool():
            return None
        case PrimitiveType("int" | "long" as name), int() | Decimal() | float():
            return _in_range(_exact(literal), _RANGES.get(name, _LONG_RANGE))
        case PrimitiveType("float" | "double"), int() | Decimal() | float():
            return _double(literal)
        case DecimalType(precision, scale), int() | Decimal() | float() | str():
            largest = 10**precision - 1
            units = _in_range(_shifted(_exact(literal), scale), (-largest, largest))
            return units and LiteralPosition(scaled(units.value, scale), units.side)
        case PrimitiveType("string"), str():
            return LiteralPosition(literal) if literal.isascii() or literal.encode() else None
        case PrimitiveType("uuid"), uuid.UUID() | str():
            return LiteralPosition(literal if isinstance(literal, uuid.UUID) else uuid.UUID(literal))
        case PrimitiveType("binary") | FixedType(), bytes():
            return LiteralPosition(literal)
        case PrimitiveType("time"), TimeOfDay() | dt.time() | str():
            return _time_of_day(literal)
        case PrimitiveType("date"), str():
            return _instant(parse_day(literal), "date")
        case PrimitiveType(name), Instant() | dt.date() | str() if name in _NANOS_PER_UNIT:
            return _instant(parse_instant(literal) if isinstance(literal, str) else literal, name)
    return None


def _exact(literal: Decimal | float | str) -> Decimal:
    """The number as written; overflowing doubles and NaN become infinite."""
    if not isinstance(literal, float):
        number = Decimal(literal)
        return number if number.is_finite() else Decimal("NaN")
    return Decimal("Infinity" if math.isnan(literal) else repr(literal))


def _shifted(number: Decimal, digits: int) -> Decimal:
    """A number times a power of ten, without rounding."""
    sign, coefficient, exponent = number.as_tuple()
    return Decimal((sign, coefficient, exponent + digits)) if isinstance(exponent, int) else number


def _in_range(number: Decimal, limits: tuple[int, int]) -> LiteralPosition | None:
    """The position of a number among the integers of a range."""
    low, high = limits
    if number.is_nan():
        return None
    if number.is_infinite() or (number and number.adjusted() > _MOST_DIGITS):
        return LiteralPosition(high, 1) if number > 0 else LiteralPosition(low, -1)
    return _whole(int(number.to_integral_value(ROUND_FLOOR)), number, (low, high))


def _whole(floor: int, number: Decimal | Fraction, limits: tuple[int, int]) -> LiteralPosition:
    low, high = limits
    if number < low:
        return LiteralPosition(low, -1)
    if number > high:
        return LiteralPosition(high, 1)
    return LiteralPosition(floor, 0 if number == floor else 1)


def _double(number: Decimal | float) -> LiteralPosition:
    """The position of a number among the doubles, rounded as Spark does; beyond the largest, below infinity."""
    try:
        value = float(number)
    except OverflowError:
        value = float("inf") if number > 0 else float("-inf")
    if value in {float("inf"), float("-inf")} and value != number:
        return LiteralPosition(_MAX_DOUBLE, 1) if number > 0 else LiteralPosition(-_MAX_DOUBLE, -1)
    return LiteralPosition(value)


def _time_of_day(literal: TimeOfDay | dt.time | str) -> LiteralPosition | None:
    match literal:
        case dt.time():
            if literal.tzinfo is not None:
                return None
            return _time_of_day(literal.isoformat())
        case str():
            return _time_of_day(parse_time_of_day(literal))
        case TimeOfDay(nanoseconds):
            micros = nanoseconds / _NANOS_PER_MICRO
            return LiteralPosition(int(micros // 1), 0 if micros.denominator == 1 else 1)


def _instant(literal: Instant | dt.date, type_name: str) -> LiteralPosition:
    """The position of a date or time among days, microseconds or nanoseconds."""
    units = _nanos(literal) / _NANOS_PER_UNIT[type_name]
    return _whole(int(units // 1), units, _RANGES.get(type_name, _LONG_RANGE))


def _nanos(literal: Instant | dt.date) -> Fraction:
    """Nanoseconds since 1970; a date is its midnight, a time without a zone counts as UTC."""
    if isinstance(literal, Instant):
        return literal.nanoseconds
    if not isinstance(literal, dt.datetime):
        return Fraction((literal - _EPOCH_DATE).days * NANOS_PER_DAY)
    aware = literal if literal.tzinfo else literal.replace(tzinfo=dt.UTC)
    return Fraction((aware - _EPOCH) // _MICROSECOND * _NANOS_PER_MICRO)
