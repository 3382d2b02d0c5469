"""Binary single-value encoding, used for bounds and partition summaries."""

import math
import reprlib
import struct
import uuid
from decimal import Context, Decimal
from typing import Any

from bergline.errors import FormatError, InvalidInputError
from bergline.format.types.types import DecimalType, FixedType, GeographyType, GeometryType, IcebergType, PrimitiveType

_FORMATS = {
    "int": "<i",
    "date": "<i",
    "long": "<q",
    "time": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
    "timestamp_ns": "<q",
    "timestamptz_ns": "<q",
    "float": "<f",
    "double": "<d",
}
# a bound written before a promotion from int, float or date still has four bytes
_NARROW = {
    "long": ("<i", 1),
    "double": ("<f", 1),
    "timestamp": ("<i", 86_400 * 10**6),
    "timestamp_ns": ("<i", 86_400 * 10**9),
}
_NARROW_LENGTH = 4
# the default context would round to 28 digits; Iceberg's decimals have up to 38
_EXACT = Context(prec=76)
_LONGEST_DECIMAL = 31
_Z = 2
_POINTS = {16: "<2d", 24: "<3d", 32: "<4d"}

Point = tuple[float | None, ...]
"""A corner of a geometry's or geography's bounding box: x, y, then z and m if present."""


def encode_value(type_: IcebergType, value: Any) -> bytes:
    """Encode a non-null value; for geometries and geographies, a corner of the bounding box."""
    try:
        match type_:
            case PrimitiveType("boolean"):
                return b"\x01" if value else b"\x00"
            case PrimitiveType("string"):
                return bytes(value.encode())
            case PrimitiveType("uuid"):
                return value.bytes if isinstance(value, uuid.UUID) else bytes(value)
            case PrimitiveType("binary" | "variant") | FixedType():
                return bytes(value)
            case DecimalType(_, scale):
                return signed_bytes(unscaled(value, scale))
            case GeometryType() | GeographyType():
                return _encode_point(value)
            case PrimitiveType(name) if name in _FORMATS:
                return struct.pack(_FORMATS[name], value)
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise InvalidInputError(f"expected a `{type_}` value, found {reprlib.repr(value)}") from error
    raise FormatError(f"expected a type that has bounds, found `{type_}`")


def decode_value(type_: IcebergType, data: bytes) -> Any:
    """Decode a value, even if it was written before its type was promoted."""
    try:
        match type_:
            case PrimitiveType("unknown"):
                return None
            case PrimitiveType("boolean") if len(data) == 1:
                return data != b"\x00"
            case PrimitiveType("string"):
                return data.decode()
            case PrimitiveType("uuid"):
                return uuid.UUID(bytes=data)
            case PrimitiveType("binary" | "variant") | FixedType():
                return data
            case DecimalType(_, scale) if 0 < len(data) <= _LONGEST_DECIMAL:
                return scaled(int.from_bytes(data, "big", signed=True), scale)
            case GeometryType() | GeographyType() if len(data) in _POINTS:
                return _decode_point(data)
            case PrimitiveType(name) if name in _NARROW and len(data) == _NARROW_LENGTH:
                narrow, units = _NARROW[name]
                return struct.unpack(narrow, data)[0] * units
            case PrimitiveType(name) if name in _FORMATS:
                return struct.unpack(_FORMATS[name], data)[0]
    except (struct.error, ValueError) as error:
        raise FormatError(f"expected a `{type_}`, found {len(data)} bytes {data[:20].hex()}") from error
    raise FormatError(f"expected a `{type_}` bound, found {len(data)} bytes {data[:20].hex()}")


def unscaled(value: Decimal, scale: int) -> int:
    """The unscaled integer of a decimal; InvalidInputError if it has more fractional digits."""
    shifted = value.scaleb(scale, _EXACT)
    if not shifted.is_finite() or (units := int(shifted)) != shifted:
        raise InvalidInputError(f"expected at most {scale} digits after the point, found {value}")
    return units


def scaled(units: int, scale: int) -> Decimal:
    """The decimal of an unscaled integer."""
    return Decimal(units).scaleb(-scale, _EXACT)


def signed_bytes(number: int) -> bytes:
    """The shortest big-endian two's complement encoding."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def _encode_point(value: Point) -> bytes:
    x, y, *rest = value
    if len(rest) == _Z and rest[1] is None:
        rest = rest[:1]
    if rest == [None]:
        rest = []
    # z cannot be omitted before m
    coordinates = [x, y, *(math.nan if c is None else c for c in rest)]
    return struct.pack(_POINTS[8 * len(coordinates)], *coordinates)


def _decode_point(data: bytes) -> Point:
    point: Point = struct.unpack(_POINTS[len(data)], data)
    if len(point) > _Z and math.isnan(point[_Z] or 0.0):
        return (*point[:_Z], None, *point[_Z + 1 :])
    return point


def truncate_lower(value: Any, length: int) -> Any:
    """Truncate a lower bound of text or bytes to a prefix."""
    return value[:length]


def truncate_upper(value: Any, length: int) -> Any | None:
    """Truncate an upper bound to a prefix with its last unit incremented; None if that is impossible."""
    if len(value) <= length:
        return value
    prefix = value[:length]
    while prefix:
        if isinstance(prefix, bytes):
            if prefix[-1] < 0xFF:  # noqa: PLR2004
                return prefix[:-1] + bytes([prefix[-1] + 1])
        elif (point := _next_code_point(ord(prefix[-1]))) is not None:
            return prefix[:-1] + chr(point)
        prefix = prefix[:-1]
    return None


def _next_code_point(point: int) -> int | None:
    if point == 0x10FFFF:  # noqa: PLR2004
        return None
    return 0xE000 if point == 0xD7FF else point + 1  # noqa: PLR2004  (surrogates are not characters)
