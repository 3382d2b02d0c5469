"""Sizes, ages and durations for people."""

from bergline.sizes import render_size

__all__ = ["render_age", "render_duration", "render_size"]

_SECOND = 1000
_MINUTE, _HOUR, _DAY = 60 * _SECOND, 3600 * _SECOND, 86_400 * _SECOND
# an age is given in the first unit in which it is less than this many
_AGES = (
    ("second", _SECOND, 60),
    ("minute", _MINUTE, 60),
    ("hour", _HOUR, 24),
    ("day", _DAY, 14),
    ("week", 7 * _DAY, 10),
    ("month", 365 * _DAY // 12, 24),
)
_YEAR = 365 * _DAY
_EXACT = (("day", _DAY), ("hour", _HOUR), ("minute", _MINUTE), ("second", _SECOND))


def render_age(then_ms: int, now_ms: int) -> str:
    """How long ago: `5 minutes ago`; a time in the future, from a clock that is ahead, is `in 5 minutes`."""
    distance = abs(now_ms - then_ms)
    if distance < _SECOND:
        return "now"
    unit, length = next(((u, n) for u, n, most in _AGES if distance < most * n), ("year", _YEAR))
    number = distance // length
    told = f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{told} ago" if then_ms <= now_ms else f"in {told}"


def render_duration(milliseconds: int) -> str:
    """A duration without rounding: `7 days`, `36 hours`, `1500 ms`."""
    for unit, length in _EXACT:
        if milliseconds and milliseconds % length == 0:
            number = milliseconds // length
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{milliseconds} ms"
