"""ISO 8601 dates and times of any year, as days, microseconds and nanoseconds since 1970.

Python's datetime ends at the year 9999 and at microseconds; the specification does not.
"""

import re

from bergline.errors import InvalidInputError

_NANOS_PER_SECOND = 1_000_000_000
_SECONDS_PER_DAY = 86_400
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_FEBRUARY = 2
_FOUR_DIGITS = 9999
_DATE = r"(?P<year>[+-]?[0-9]{4,10})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{0,9}))?)?"
_DATE_TEXT = re.compile(_DATE)
_TIME_TEXT = re.compile(_TIME)
_TIMESTAMP_TEXT = re.compile(f"{_DATE}[Tt]{_TIME}(?P<zone>\\+00:00|[Zz])?")


def civil_date(days: int) -> tuple[int, int, int]:
    """Year, month and day of days since 1970."""
    # count from 1 March of year 0, so that leap days end a year; 146,097 days are 400 years
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1_460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    month_from_march = (5 * day_of_year + 2) // 153
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9  # noqa: PLR2004
    day = day_of_year - (153 * month_from_march + 2) // 5 + 1
    return era * 400 + year_of_era + (month <= _FEBRUARY), month, day


def days_of(year: int, month: int, day: int) -> int:
    """Days since 1970 of a date."""
    year -= month <= _FEBRUARY
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def check_day(year: int, month: int, day: int, text: str) -> None:
    """Refuse a date that does not exist; `text` is for the message."""
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS_IN_MONTH[month - 1] + (leap and month == _FEBRUARY):  # noqa: PLR2004
        raise InvalidInputError(f"expected a day of the calendar, found `{text[:40]}`")


def render_date(days: int) -> str:
    """`2017-11-16`; years past 9999 with a plus."""
    year, month, day = civil_date(days)
    if year > _FOUR_DIGITS:
        return f"+{year}-{month:02d}-{day:02d}"
    return f"{'-' if year < 0 else ''}{abs(year):04d}-{month:02d}-{day:02d}"


def render_time(value: int, *, per_second: int) -> str:
    """`22:31:08.1234`: always with seconds, and with as many fractional digits as needed."""
    seconds, fraction = divmod(value, per_second)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    digits = f"{fraction * (_NANOS_PER_SECOND // per_second):09d}".rstrip("0")
    return f"{text}.{digits}" if digits else text


def render_timestamp(value: int, *, per_second: int, zone: bool) -> str:
    """`2017-11-16T22:31:08`, with `+00:00` for timestamps with time zone."""
    days, rest = divmod(value, per_second * _SECONDS_PER_DAY)
    return f"{render_date(days)}T{render_time(rest, per_second=per_second)}{'+00:00' if zone else ''}"


def parse_date(text: str) -> int:
    """Days since 1970 of a date in ISO form."""
    match = _DATE_TEXT.fullmatch(text)
    if match is None:
        raise InvalidInputError(f"expected a date like 2017-11-16, found `{text[:40]}`")
    return _days(match)


def parse_time(text: str, *, per_second: int) -> int:
    """Units since midnight of a time in ISO form."""
    match = _TIME_TEXT.fullmatch(text)
    if match is None:
        raise InvalidInputError(f"expected a time like 22:31:08, found `{text[:40]}`")
    return _units_of_day(match, per_second)


def parse_timestamp(text: str, *, per_second: int, zone: bool) -> int:
    """Units since 1970; timestamps with time zone must end in `+00:00`, others must have no offset."""
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or (match["zone"] is not None) != zone:
        example = "2017-11-16T22:31:08+00:00" if zone else "2017-11-16T22:31:08 without a zone"
        raise InvalidInputError(f"expected a timestamp like {example}, found `{text[:40]}`")
    return _days(match) * _SECONDS_PER_DAY * per_second + _units_of_day(match, per_second)


def _days(match: re.Match[str]) -> int:
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    signed = match["year"][0] in "+-"
    if (year > _FOUR_DIGITS) != (match["year"][0] == "+") or (not signed and year > _FOUR_DIGITS):
        raise InvalidInputError(f"expected years past 9999 with a plus, found `{match[0][:40]}`")
    check_day(year, month, day, match[0])
    return days_of(year, month, day)


def _units_of_day(match: re.Match[str], per_second: int) -> int:
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"] or 0)
    if hour > 23 or minute > 59 or second > 59:  # noqa: PLR2004
        raise InvalidInputError(f"expected a time of the day, found `{match[0][:40]}`")
    units, lost = divmod(int((match["fraction"] or "").ljust(9, "0")), _NANOS_PER_SECOND // per_second)
    if lost:
        raise InvalidInputError(f"expected at most microseconds, found `{match[0][:40]}`")
    return (hour * 3600 + minute * 60 + second) * per_second + units
