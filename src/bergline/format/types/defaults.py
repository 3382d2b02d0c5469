"""Column defaults, and their JSON single-value form in metadata.

Plain values are as elsewhere in the format; a struct is a dict by field name, a map a list of pairs.
"""

import math
import re
import reprlib
import struct
import uuid
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from bergline.errors import InvalidInputError
from bergline.format.encoding import iso
from bergline.format.types.types import (
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    PrimitiveType,
    StructType,
)

_MICROS, _NANOS = 1_000_000, 1_000_000_000
_INT_BITS = {"int": 32, "long": 64}
_TIMESTAMPS = {
    "timestamp": (_MICROS, False),
    "timestamptz": (_MICROS, True),
    "timestamp_ns": (_NANOS, False),
    "timestamptz_ns": (_NANOS, True),
}
_DAY_MICROS = 86_400 * _MICROS
_DECIMAL = re.compile(r"[+-]?[0-9]{0,60}(?:\.[0-9]{0,60})?(?:[eE][+-]?[0-9]{1,3})?")


def decode_default(type_: IcebergType, wire: Any, place: str = "$") -> Any:
    """Decode a JSON single value to a plain value; InvalidInputError names the path inside the value."""
    if wire is None:
        return None
    match type_:
        case StructType(fields) if isinstance(wire, dict):
            known = {str(f.id): f for f in fields}
            return {f.name: decode_default(f.type, wire[i], f"{place}.{i}") for i, f in known.items() if i in wire}
        case ListType(_, element, _) if isinstance(wire, list):
            return [decode_default(element, item, f"{place}[{n}]") for n, item in enumerate(wire)]
        case MapType(_, key, _, value, _):
            match wire:
                case {"keys": list(keys), "values": list(values)} if len(keys) == len(values):
                    left = [decode_default(key, k, f"{place}.keys[{n}]") for n, k in enumerate(keys)]
                    right = [decode_default(value, v, f"{place}.values[{n}]") for n, v in enumerate(values)]
                    return list(zip(left, right, strict=True))
    try:
        return _decode(type_, wire)
    except (InvalidInputError, InvalidOperation, ValueError, OverflowError) as error:
        reason = f": {error}" if isinstance(error, InvalidInputError) else ""
        raise InvalidInputError(f"expected a `{type_}` value, found {reprlib.repr(wire)} at {place}{reason}") from error


def encode_default(type_: IcebergType, value: Any, place: str = "$") -> Any:
    """Encode a plain value as the JSON single value stored in metadata."""
    if value is None:
        return None
    match type_:
        case StructType(fields) if isinstance(value, dict):
            present = [f for f in fields if value.get(f.name) is not None]
            return {str(f.id): encode_default(f.type, value[f.name], f"{place}.{f.name}") for f in present}
        case ListType(_, element, _) if isinstance(value, list | tuple):
            return [encode_default(element, item, f"{place}[{n}]") for n, item in enumerate(value)]
        case MapType(_, key, _, item, _) if (pairs := _pairs(value)) is not None:
            return {
                "keys": [encode_default(key, k, f"{place}.keys[{n}]") for n, (k, _) in enumerate(pairs)],
                "values": [encode_default(item, v, f"{place}.values[{n}]") for n, (_, v) in enumerate(pairs)],
            }
    try:
        wire = _encode(type_, value)
        _decode(type_, wire)
    except (InvalidInputError, InvalidOperation, ValueError, TypeError, OverflowError, AttributeError) as error:
        raise InvalidInputError(f"expected a `{type_}` value, found {reprlib.repr(value)} at {place}") from error
    return wire


def check_default(field: NestedField, wire: Any) -> None:
    """Refuse a default that is invalid for its column."""
    if isinstance(field.type, StructType):
        if wire not in (None, {}):
            raise InvalidInputError(
                f"expected null or {{}} as the default of struct `{field.name}`, found {reprlib.repr(wire)}: "
                "the fields inside have defaults of their own"
            )
        return
    if wire is not None and not has_defaults(field.type):
        raise InvalidInputError(
            f"expected no default for `{field.name}` of type `{field.type}`, found {reprlib.repr(wire)}"
        )
    try:
        decode_default(field.type, wire)
    except InvalidInputError as error:
        raise InvalidInputError(f"{error} in the default of `{field.name}`") from error


def has_defaults(type_: IcebergType) -> bool:
    """Whether a column of the type may have a default other than null."""
    return not isinstance(type_, GeometryType | GeographyType) and type_ not in _ONLY_NULL


def initial_value(field: NestedField) -> Any:
    """The plain value of a column in files written before it was added."""
    return _effective(field, lambda f: f.initial_default)


def write_value(field: NestedField) -> Any:
    """The plain value of a column for new rows without one."""
    return _effective(field, lambda f: f.write_default)


def _effective(field: NestedField, default: Callable[[NestedField], Any]) -> Any:
    wire = default(field)
    if wire is None or not isinstance(field.type, StructType):
        return decode_default(field.type, wire)
    given = decode_default(field.type, wire)
    return {f.name: given[f.name] if f.name in given else _effective(f, default) for f in field.type.fields}


def _decode(type_: IcebergType, wire: Any) -> Any:
    match type_, wire:
        case PrimitiveType("boolean"), bool():
            return wire
        case PrimitiveType("int" | "long" as name), int() if not isinstance(wire, bool):
            return _fitting(wire, _INT_BITS[name])
        case PrimitiveType("double"), float() | int() if not isinstance(wire, bool) and math.isfinite(wire):
            return float(wire)
        case PrimitiveType("float"), float() | int() if not isinstance(wire, bool) and math.isfinite(wire):
            return struct.unpack("<f", struct.pack("<f", wire))[0]
        case PrimitiveType("string"), str() if wire.encode() is not None:
            return wire
        case PrimitiveType("uuid"), str() if str(value := uuid.UUID(wire)) == wire.lower():
            return value
        case PrimitiveType("binary"), str():
            return bytes.fromhex(_no_spaces(wire))
        case FixedType(length), str() if len(wire) == length * 2:
            return bytes.fromhex(_no_spaces(wire))
        case DecimalType(precision, scale), str() if _DECIMAL.fullmatch(wire):
            return _decimal(wire, precision, scale)
        case PrimitiveType("date"), str():
            return _fitting(iso.parse_date(wire), 32)
        case PrimitiveType("time"), str():
            return iso.parse_time(wire, per_second=_MICROS)
        case PrimitiveType(name), str() if name in _TIMESTAMPS:
            per_second, zone = _TIMESTAMPS[name]
            return _fitting(iso.parse_timestamp(wire, per_second=per_second, zone=zone), 64)
    raise InvalidInputError("the JSON is of another kind")


def _encode(type_: IcebergType, value: Any) -> Any:
    match type_, value:
        case PrimitiveType("float"), float() | int() if not isinstance(value, bool):
            return _shortest_float(value)
        case PrimitiveType("double"), float() | int() if not isinstance(value, bool):
            return float(value)
        case PrimitiveType("boolean" | "int" | "long" | "string"), _:
            return value
        case PrimitiveType("uuid"), uuid.UUID():
            return str(value)
        case PrimitiveType("binary") | FixedType(), bytes():
            return value.hex()
        case DecimalType(), Decimal():
            return f"{value:f}"
        case PrimitiveType("date"), int():
            return iso.render_date(value)
        case PrimitiveType("time"), int() if 0 <= value < _DAY_MICROS:
            return iso.render_time(value, per_second=_MICROS)
        case PrimitiveType(name), int() if name in _TIMESTAMPS:
            per_second, zone = _TIMESTAMPS[name]
            return iso.render_timestamp(value, per_second=per_second, zone=zone)
    raise InvalidInputError("no JSON single value")


def _pairs(value: Any) -> list[Any] | None:
    """The entries of a map given as a dict or as pairs; None if it is neither."""
    pairs = list(value.items()) if isinstance(value, dict) else value
    if not isinstance(pairs, list | tuple) or any(not isinstance(p, list | tuple) or len(p) != 2 for p in pairs):  # noqa: PLR2004
        return None
    return list(pairs)


def _fitting(number: int, bits: int) -> int:
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise InvalidInputError(f"more than {bits} bits")
    return number


def _decimal(text: str, precision: int, scale: int) -> Decimal:
    number = Decimal(text)
    digits, exponent = number.as_tuple().digits, number.as_tuple().exponent
    if exponent != -scale:
        raise InvalidInputError(f"{scale} digits after the point are needed")
    if len(digits) > precision:
        raise InvalidInputError(f"more than {precision} digits")
    return number


def _no_spaces(text: str) -> str:
    # bytes.fromhex would skip whitespace
    return "?" if any(c.isspace() for c in text) else text


def _shortest_float(value: float) -> float:
    """The shortest decimal of a 32-bit float, as other writers put it."""
    narrow = struct.pack("<f", value)
    return next(n for digits in range(1, 18) if struct.pack("<f", n := float(f"{value:.{digits}g}")) == narrow)


_ONLY_NULL = (PrimitiveType("unknown"), PrimitiveType("variant"))
