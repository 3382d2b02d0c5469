"""Where a literal stands among the values of a column's type.

Literals are taken as Spark and Java take them: numbers compare by value, whatever their types; dates are midnight where
they meet timestamps; times without a zone count as UTC; text is read as ISO 8601 for dates and times, as a number for
decimals and in the usual form for uuids. Text is not read as int, float, boolean or bytes: Spark and Java disagree.
"""

import datetime as dt
import re
import uuid
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import Any, Literal

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.types import DecimalType, FixedType, IcebergType, PrimitiveType
from bergline.format.values import scaled

_EPOCH_DATE = dt.date(1970, 1, 1)
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_NANOS_PER_DAY = 86_400_000_000_000
_FRACTION = re.compile(r"[.,](\d+)")
_INT_RANGE = (-(2**31), 2**31 - 1)
_LONG_RANGE = (-(2**63), 2**63 - 1)
_RANGES = {"int": _INT_RANGE, "date": _INT_RANGE}
_MAX_DOUBLE = 1.7976931348623157e308
_MOST_DIGITS = 60
"""Numbers of more digits before the point are beyond every type; they are never spelt out."""
_NANOS_PER_UNIT = {
    "date": _NANOS_PER_DAY,
    "timestamp": 1000,
    "timestamptz": 1000,
    "timestamp_ns": 1,
    "timestamptz_ns": 1,
}


class Position(msgspec.Struct, frozen=True):
    """A value of the type, and whether the literal equals it (0), or lies between it and the next one up or down."""

    value: Any
    side: Literal[-1, 0, 1] = 0


def locate(literal: Any, type_: IcebergType, column: str) -> Position:
    """The position of a literal, which need not be a value of the type; InvalidInputError where they do not compare."""
    try:
        position = _locate(literal, type_)
    except (ValueError, OverflowError, InvalidOperation):
        position = None
    if position is None:
        found = repr(literal)
        raise InvalidInputError(
            f"expected a `{type_}` to compare with column `{column}`, "
            f"found {found if len(found) <= 80 else f'{found[:77]}...'}"  # noqa: PLR2004
        )
    return position


def _locate(literal: Any, type_: IcebergType) -> Position | None:
    match type_, literal:
        case PrimitiveType("boolean"), bool():
            return Position(literal)
        case _, bool():
            return None
        case PrimitiveType("int" | "long" as name), int() | Decimal():
            return _in_range(Decimal(literal), _RANGES.get(name, _LONG_RANGE))
        case PrimitiveType("float" | "double"), int() | Decimal() | float():
            return _double(literal)
        case DecimalType(precision, scale), int() | Decimal() | str():
            sign, digits, exponent = Decimal(literal).as_tuple()
            if not isinstance(exponent, int):
                return None
            largest = 10**precision - 1
            units = _in_range(Decimal((sign, digits, exponent + scale)), (-largest, largest))
            return units and Position(scaled(units.value, scale), units.side)
        case PrimitiveType("string"), str():
            return Position(literal) if literal.isascii() or literal.encode() else None
        case PrimitiveType("uuid"), uuid.UUID() | str():
            return Position(literal if isinstance(literal, uuid.UUID) else uuid.UUID(literal))
        case PrimitiveType("binary") | FixedType(), bytes():
            return Position(literal)
        case PrimitiveType("time"), dt.time() | str():
            return _time_of_day(literal if isinstance(literal, dt.time) else dt.time.fromisoformat(literal))
        case PrimitiveType("date"), str():
            return Position((dt.date.fromisoformat(literal) - _EPOCH_DATE).days)
        case PrimitiveType(name), dt.date() | str() if name in _NANOS_PER_UNIT:
            return _instant(literal, name)
    return None


def _in_range(number: Decimal, limits: tuple[int, int]) -> Position | None:
    """A number among the whole numbers of a range."""
    low, high = limits
    if not number.is_finite():
        return None
    if number and number.adjusted() > _MOST_DIGITS:
        return Position(high, 1) if number > 0 else Position(low, -1)
    return _whole(int(number.to_integral_value(ROUND_FLOOR)), number, (low, high))


def _whole(floor: int, number: Decimal | int, limits: tuple[int, int]) -> Position:
    low, high = limits
    if number < low:
        return Position(low, -1)
    if number > high:
        return Position(high, 1)
    return Position(floor, 0 if number == floor else 1)


def _double(number: Decimal | float) -> Position:
    """A number among the doubles, rounded to the nearest as Spark does; beyond the largest it is less than infinity."""
    try:
        value = float(number)
    except OverflowError:
        value = float("inf") if number > 0 else float("-inf")
    if value in {float("inf"), float("-inf")} and value != number:
        return Position(_MAX_DOUBLE, 1) if number > 0 else Position(-_MAX_DOUBLE, -1)
    return Position(value)


def _time_of_day(value: dt.time) -> Position | None:
    if value.tzinfo is not None:
        return None
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return Position(seconds * 1_000_000 + value.microsecond)


def _instant(literal: dt.date | str, type_name: str) -> Position:
    """A date or time among days, microseconds or nanoseconds; text is cut to the column's unit as Spark cuts it."""
    unit = _NANOS_PER_UNIT[type_name]
    nanos = _nanos(literal)
    floor = nanos // unit
    limits = _RANGES.get(type_name, _LONG_RANGE)
    if isinstance(literal, str):
        return _whole(floor, floor, limits)
    position = _whole(floor, floor, limits)
    return position if position.side or nanos == floor * unit else Position(floor, 1)


def _nanos(literal: dt.date | str) -> int:
    """Nanoseconds since 1970; a date is its midnight, a time without a zone counts as UTC."""
    if isinstance(literal, str):
        fraction = _FRACTION.search(literal)
        finer = int(fraction[1].ljust(9, "0")[6:9]) if fraction else 0
        return _nanos(dt.datetime.fromisoformat(literal)) + finer
    if not isinstance(literal, dt.datetime):
        return (literal - _EPOCH_DATE).days * _NANOS_PER_DAY
    aware = literal if literal.tzinfo else literal.replace(tzinfo=dt.UTC)
    return (aware - _EPOCH) // _MICROSECOND * 1000
