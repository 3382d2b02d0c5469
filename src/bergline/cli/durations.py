"""Durations and timestamps for people."""

import datetime as dt
import time

from bergline.arguments import DURATION, parse_duration
from bergline.errors import InvalidInputError
from bergline.sql.text.timestamps import moment_ms, parse_moment


def parse_milliseconds(text: str | None) -> int | None:
    """The milliseconds of a duration, if one is given."""
    return None if text is None else 1000 * parse_duration(text)


def parse_time_ms(text: str, now_ms: int) -> int:
    """A time like `2026-01-31T12:00Z`, in UTC unless it has a zone, or an age like `7d`, in milliseconds since 1970."""
    try:
        if DURATION.fullmatch(text):
            return max(now_ms - 1000 * parse_duration(text), 0)
        found = moment_ms(parse_moment(text), "UTC")
        dt.datetime.fromtimestamp(found / 1000, dt.UTC)  # raises beyond the years 1 to 9999
    except (OverflowError, ValueError):
        raise InvalidInputError(
            f"expected a time like 2026-01-31T12:00Z or an age like 7d, 12h or 30m, found `{text}`"
        ) from None
    return found


def parse_time(text: str | None) -> dt.datetime | None:
    """The same as a time with its zone, if one is given."""
    if text is None:
        return None
    return dt.datetime.fromtimestamp(parse_time_ms(text, time.time_ns() // 1_000_000) / 1000, dt.UTC)


def render_time(milliseconds: int | None) -> str | None:
    """A timestamp in UTC, to the second."""
    if milliseconds is None:
        return None
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat(timespec="seconds")
