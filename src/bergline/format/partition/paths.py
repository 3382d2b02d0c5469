"""Partition values as text in paths, formatted as in Java so that all writers use the same directories."""

import base64
import math
import struct
from typing import Any
from urllib.parse import quote_plus

from bergline.format.encoding import iso
from bergline.format.partition.transforms import TimeTransform, Transform
from bergline.format.types.types import (
    DATE,
    FLOAT,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    IcebergType,
)

_MICROS, _NANOS = 10**6, 10**9
_TIMESTAMPS: dict[IcebergType, tuple[int, bool]] = {
    TIMESTAMP: (_MICROS, False),
    TIMESTAMPTZ: (_MICROS, True),
    TIMESTAMP_NS: (_NANOS, False),
    TIMESTAMPTZ_NS: (_NANOS, True),
}
_PLAIN_FROM, _PLAIN_BELOW = 1e-3, 1e7


def render_partition_value(transform: Transform, type_: IcebergType, value: Any) -> str:
    """A partition value as text; `type_` is the type of the partition field."""
    if value is None:
        return "null"
    match transform:
        case TimeTransform("year"):
            return f"{1970 + value:04d}"
        case TimeTransform("month"):
            return f"{1970 + value // 12:04d}-{value % 12 + 1:02d}"
        case TimeTransform("hour"):
            return f"{_date(value // 24)}-{value % 24:02d}"
    if type_ == DATE:
        return _date(value)
    if type_ == TIME:
        return _time(value)
    if type_ in _TIMESTAMPS:
        per_second, zone = _TIMESTAMPS[type_]
        return iso.render_timestamp(value, per_second=per_second, zone=zone)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return _float(value, narrow=type_ == FLOAT)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def unknown_text(value: Any) -> str | None:
    """The value of an unknown transform, which the specification treats as text."""
    if value is None or isinstance(value, str):
        return value
    return value.hex() if isinstance(value, bytes) else str(value)


def escape(text: str) -> str:
    """Escape a path segment as Java's URLEncoder does."""
    return quote_plus(text, safe="*", errors="replace").replace("~", "%7E")


def _date(days: int) -> str:
    year, month, day = iso.civil_date(days)
    return f"{year:04d}-{month:02d}-{day:02d}"


def _time(micros: int) -> str:
    """`22:31`, `22:31:08`, `22:31:08.500` or `22:31:08.500001`: Java's shortest."""
    text = iso.render_time(micros, per_second=_MICROS)
    whole, _, digits = text.partition(".")
    if digits:
        return f"{whole}.{digits.ljust(3 if len(digits) <= 3 else 6, '0')}"  # noqa: PLR2004
    return whole.removesuffix(":00")


def _float(value: float, *, narrow: bool) -> str:
    """Java's text of a float or double: decimal from 0.001 to 10,000,000, otherwise with an exponent."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    digits, exponent = _shortest(value, narrow=narrow)
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    if _PLAIN_FROM <= abs(value) < _PLAIN_BELOW:
        padded = digits.ljust(exponent + 1, "0") if exponent >= 0 else "0" * -exponent + digits
        point = max(exponent, 0) + 1
        return f"{sign}{padded[:point]}.{padded[point:] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _packed(pattern: str, value: float) -> bytes | None:
    """The number's bytes; None if it rounds up beyond the largest float."""
    try:
        return struct.pack(pattern, value)
    except OverflowError:
        return None


def _shortest(value: float, *, narrow: bool) -> tuple[str, int]:
    """The shortest digits that identify this number, and the exponent of the first."""
    pattern = "<f" if narrow else "<d"
    packed = _packed(pattern, value)
    # Java never uses fewer than two digits
    texts = (f"{abs(value):.{n}e}" for n in range(1, 17))
    text = next(t for t in texts if _packed(pattern, math.copysign(float(t), value)) == packed)
    mantissa, _, exponent = text.partition("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)
