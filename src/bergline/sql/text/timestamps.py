"""Points in time as SQL writes them."""

import datetime as dt
import re
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from bergline.errors import InvalidInputError

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?", re.IGNORECASE)


class Moment(msgspec.Struct, frozen=True):
    """A point in time as written: a literal still without its zone, or None for now."""

    literal: dt.datetime | None


def parse_moment(text: str, condition: str | None = None) -> dt.datetime:
    """A time as SQL writes it; without a zone it is in the session's."""
    try:
        return dt.datetime.fromisoformat(text.strip())
    except ValueError:
        message = f"expected a time like `2026-01-31 12:00:00`, found `{text}`"
        raise InvalidInputError(message, condition=condition) from None


def timestamp_ms(value: int | str, time_zone: str) -> int:
    """Milliseconds since 1970 of what follows AS OF; numbers are seconds, text without a zone is in the session's."""
    if isinstance(value, int):
        return value * 1000
    return moment_ms(parse_moment(value, "INVALID_TIME_TRAVEL_TIMESTAMP_EXPR.INPUT"), time_zone)


def in_zone(moment: dt.datetime, time_zone: str) -> dt.datetime:
    """The moment with its zone; one without is in the session's."""
    return moment if moment.tzinfo else moment.replace(tzinfo=_zone(time_zone))


def moment_ms(moment: dt.datetime, time_zone: str) -> int:
    """Milliseconds since 1970; a time without a zone is in the session's."""
    return (in_zone(moment, time_zone) - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(milliseconds=1)


def _zone(text: str) -> dt.tzinfo:
    """A session's time zone: a name such as `Europe/Berlin`, or an offset such as `+05:30`, `GMT+8` or `Z`."""
    if match := _OFFSET.fullmatch(text):
        sign = -1 if match["sign"] == "-" else 1
        return dt.timezone(sign * dt.timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0)))
    try:
        return dt.UTC if text.upper() == "Z" else ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidInputError(f"expected a time zone like `Europe/Berlin` or `+05:30`, found `{text}`") from None
