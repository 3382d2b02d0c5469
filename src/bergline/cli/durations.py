"""Durations and timestamps for people."""

import datetime as dt
import re

from bergline.errors import InvalidInputError

_DURATION = re.compile(r"(?P<number>[0-9]{1,6})(?P<unit>[mhd])")
_SECONDS = {"m": 60, "h": 3600, "d": 86_400}


def parse_duration(text: str) -> int:
    """The seconds of `90d`, `12h` or `30m`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise InvalidInputError(f"expected a duration like 90d, 12h or 30m, found `{text}`")
    return int(match["number"]) * _SECONDS[match["unit"]]


def parse_milliseconds(text: str | None) -> int | None:
    """The milliseconds of a duration, if one is given."""
    return None if text is None else 1000 * parse_duration(text)


def render_time(milliseconds: int | None) -> str | None:
    """A timestamp in UTC, to the second."""
    if milliseconds is None:
        return None
    return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat(timespec="seconds")
