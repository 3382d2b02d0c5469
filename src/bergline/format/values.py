"""Single values as bytes: the encoding of bounds and partition summaries."""

import struct
import uuid
from decimal import Context, Decimal
from typing import Any

from bergline.errors import FormatError
from bergline.format.types import DecimalType, FixedType, IcebergType, PrimitiveType

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
# a bound written before int became long, or float became double, is still four bytes
_NARROW = {"long": "<i", "double": "<f"}
_NARROW_LENGTH = 4
# the default context would round to 28 digits; Iceberg's decimals have up to 38
_EXACT = Context(prec=76)


def encode_value(type_: IcebergType, value: Any) -> bytes:
    """The specification's binary form of a non-null value."""
    match type_:
        case PrimitiveType("boolean"):
            return b"\x01" if value else b"\x00"
        case PrimitiveType("string"):
            return bytes(value.encode())
        case PrimitiveType("uuid"):
            return value.bytes if isinstance(value, uuid.UUID) else bytes(value)
        case PrimitiveType("binary") | FixedType():
            return bytes(value)
        case DecimalType(_, scale):
            return signed_bytes(unscaled(value, scale))
        case PrimitiveType(name) if name in _FORMATS:
            return struct.pack(_FORMATS[name], value)
    raise FormatError(f"expected a primitive type for a bound, found `{type_}`")


def decode_value(type_: IcebergType, data: bytes) -> Any:
    """The value of its binary form, also where the type was narrower when it was written."""
    try:
        match type_:
            case PrimitiveType("boolean"):
                return data != b"\x00"
            case PrimitiveType("string"):
                return data.decode()
            case PrimitiveType("uuid"):
                return uuid.UUID(bytes=data)
            case PrimitiveType("binary") | FixedType():
                return data
            case DecimalType(_, scale):
                return scaled(int.from_bytes(data, "big", signed=True), scale)
            case PrimitiveType(name) if name in _FORMATS:
                narrow = len(data) == _NARROW_LENGTH
                return struct.unpack(_NARROW.get(name, _FORMATS[name]) if narrow else _FORMATS[name], data)[0]
    except (struct.error, ValueError) as error:
        raise FormatError(f"expected a `{type_}`, found {len(data)} bytes {data[:20].hex()}") from error
    raise FormatError(f"expected a primitive type for a bound, found `{type_}`")


def unscaled(value: Decimal, scale: int) -> int:
    """A decimal as a whole number of its smallest unit."""
    return int(value.scaleb(scale, _EXACT))


def scaled(units: int, scale: int) -> Decimal:
    """The decimal of a whole number of its smallest unit."""
    return Decimal(units).scaleb(-scale, _EXACT)


def signed_bytes(number: int) -> bytes:
    """The shortest big-endian two's complement."""
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)


def truncate_lower(value: Any, length: int) -> Any:
    """A prefix is a lower bound of text or bytes."""
    return value[:length]


def truncate_upper(value: Any, length: int) -> Any | None:
    """A prefix with its last unit raised is an upper bound; None where no unit can be raised."""
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
