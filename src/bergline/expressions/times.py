"""Dates and times in SQL literals, with full precision, in the formats that Spark accepts.

Months, days, hours, minutes and seconds may have one digit, and trailing ones may be missing; a zone is `Z`, `UTC`,
`GMT` or an offset such as `+01:00`. Region-based zones are rejected: their meaning changes over time.
"""

import re
from fractions import Fraction

import msgspec

from bergline.format.encoding.iso import check_day, days_of, render_time, render_timestamp

NANOS_PER_DAY = 86_400_000_000_000
_NANOS_PER_SECOND = 1_000_000_000
_MAX_OFFSET = 18 * 3600
_DATE = r"(?P<year>[+-]?[0-9]{4,6})(?:-(?P<month>[0-9]{1,2})(?:-(?P<day>[0-9]{1,2}))?)?"
_TIME = (
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{0,1000}))?)?)?"
)
_OFFSET = r"(?P<sign>[+-])(?P<hours>[0-9]{1,2})(?::?(?P<minutes>[0-9]{2}))?"
_ZONE = rf" ?(?:Z|(?:UTC|GMT|UT)(?:{_OFFSET})?|{_OFFSET.replace('?P<', '?P<plain_')})"
TIME_HINT = "dates and times are written like 2020-02-29 10:30:00.5; a zone is Z, UTC, GMT or an offset such as +01:00"
_DAY_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_INSTANT_TEXT = re.compile(rf"{_DATE}(?:[T ]{_TIME}(?:{_ZONE})?)?", re.IGNORECASE)


class Instant(msgspec.Struct, frozen=True):
    """A point in time in nanoseconds since 1970, possibly fractional."""

    nanoseconds: Fraction

    def __repr__(self) -> str:
        return f"`{render_timestamp(int(self.nanoseconds // 1), per_second=_NANOS_PER_SECOND, zone=False)}`"


class TimeOfDay(msgspec.Struct, frozen=True):
    """A time of day in nanoseconds since midnight, possibly fractional."""

    nanoseconds: Fraction

    def __repr__(self) -> str:
        return f"`{render_time(int(self.nanoseconds // 1), per_second=_NANOS_PER_SECOND)}`"


def parse_day(text: str) -> Instant:
    """The start of a date; ValueError for other text."""
    return Instant(_days(_matched(_DAY_TEXT, text)))


def parse_instant(text: str) -> Instant:
    """A date with or without a time; without a zone it counts as UTC. ValueError for other text."""
    match = _matched(_INSTANT_TEXT, text)
    time = _time_of_day(match) if match["hour"] else Fraction(0)
    return Instant(_days(match) + time - _offset(match) * _NANOS_PER_SECOND)


def parse_time_of_day(text: str) -> TimeOfDay:
    """A time without a zone; ValueError for other text."""
    return TimeOfDay(_time_of_day(_matched(_TIME_TEXT, text)))


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return match


def _days(match: re.Match[str]) -> Fraction:
    year, month, day = int(match["year"]), int(match["month"] or 1), int(match["day"] or 1)
    check_day(year, month, day, match[0])
    return Fraction(days_of(year, month, day) * NANOS_PER_DAY)


def _time_of_day(match: re.Match[str]) -> Fraction:
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004
        raise ValueError(match[0])
    digits = match["fraction"] or "0"
    return (hour * 3600 + minute * 60 + second + Fraction(int(digits), 10 ** len(digits))) * _NANOS_PER_SECOND


def _offset(match: re.Match[str]) -> int:
    """Seconds east of UTC."""
    prefix = "plain_" if match["plain_sign"] else ""
    hours, minutes = int(match[f"{prefix}hours"] or 0), int(match[f"{prefix}minutes"] or 0)
    seconds = hours * 3600 + minutes * 60
    if minutes > 59 or seconds > _MAX_OFFSET:  # noqa: PLR2004
        raise ValueError(match[0])
    return -seconds if match[f"{prefix}sign"] == "-" else seconds
