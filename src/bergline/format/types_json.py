"""Types as JSON: text for primitives, objects for nested types.

Read as other writers spell them (any case, spaces around parameters), written in the specification's one form.
"""

import re
import reprlib
from typing import Any, Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.types import (
    DEFAULT_ALGORITHM,
    DEFAULT_CRS,
    EDGE_ALGORITHMS,
    MAX_DECIMAL_PRECISION,
    PRIMITIVES,
    DecimalType,
    FixedType,
    GeographyType,
    GeometryType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StructType,
)

_WITH_PARAMETERS = "decimal(p, s), fixed[n], geometry(crs), geography(crs, algorithm)"
MAX_NESTING: Final = 100
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*([0-9]{1,10})\s*\]", re.ASCII)
_GEO = re.compile(r"(geometry|geography)\s*(?:\(([^()]*)\))?", re.ASCII | re.IGNORECASE)
_INT_RANGE = range(-(2**31), 2**31)


def parse_primitive(text: str) -> IcebergType:
    """The type without fields that the specification writes as `text`."""
    if known := PRIMITIVES.get(text) or PRIMITIVES.get(lower := text.lower()):
        return known
    if match := _DECIMAL.fullmatch(lower):
        precision, scale = int(match[1]), int(match[2])
        if not 1 <= precision <= MAX_DECIMAL_PRECISION or scale > precision:
            raise InvalidInputError(f"expected precision 1 to 38 and a scale up to it, found `{text}`")
        return DecimalType(precision, scale)
    if (match := _FIXED.fullmatch(lower)) and int(match[1]) in _INT_RANGE:
        return FixedType(int(match[1]))
    if match := _GEO.fullmatch(text):
        return _parse_geo(match[1].lower(), match[2], text)
    raise InvalidInputError(
        f"expected a type, found `{_short(text)}`",
        hints=[f"known types are {', '.join(PRIMITIVES)}, {_WITH_PARAMETERS}, struct, list and map"],
    )


def parse_type(wire: Any) -> IcebergType:
    """A type from decoded JSON; InvalidInputError also where it is nested without end."""
    return _parse(wire, MAX_NESTING)


def render_type(type_: IcebergType) -> Any:
    """The JSON form of a type, as plain values."""
    match type_:
        case StructType(fields):
            return {"type": "struct", "fields": fields}
        case ListType(element_id, element, required):
            return {
                "type": "list",
                "element-id": element_id,
                "element": render_type(element),
                "element-required": required,
            }
        case MapType(key_id, key, value_id, value, required):
            return {
                "type": "map",
                "key-id": key_id,
                "key": render_type(key),
                "value-id": value_id,
                "value": render_type(value),
                "value-required": required,
            }
    return str(type_)


def _parse_geo(name: str, parameters: str | None, text: str) -> IcebergType:
    if parameters is None:
        return GeometryType(DEFAULT_CRS) if name == "geometry" else GeographyType(DEFAULT_CRS, DEFAULT_ALGORITHM)
    if name == "geometry":
        crs, algorithm = parameters.strip(), DEFAULT_ALGORITHM
    else:
        before, comma, after = parameters.partition(",")
        crs, algorithm = before.strip(), after.strip().lower() if comma else DEFAULT_ALGORITHM
    if not crs or algorithm not in EDGE_ALGORITHMS:
        raise InvalidInputError(
            f"expected a reference system, and for geography one of {', '.join(EDGE_ALGORITHMS)}, "
            f"found `{_short(text)}`"
        )
    return GeometryType(crs) if name == "geometry" else GeographyType(crs, algorithm)


def _parse(wire: Any, levels: int) -> IcebergType:
    if isinstance(wire, str):
        return parse_primitive(wire)
    if not levels:
        raise InvalidInputError(f"expected at most {MAX_NESTING} levels of nested types, found more")
    match wire:
        case {"type": "struct", "fields": list(fields)}:
            return StructType(tuple([_parse_field(f, n, levels) for n, f in enumerate(fields)]))
        case {"type": "list", "element-id": element_id, "element": element, "element-required": bool(required)}:
            return ListType(_id(element_id), _parse(element, levels - 1), required)
        case {
            "type": "map",
            "key-id": key_id,
            "key": key,
            "value-id": value_id,
            "value": value,
            "value-required": bool(required),
        }:
            return MapType(_id(key_id), _parse(key, levels - 1), _id(value_id), _parse(value, levels - 1), required)
    raise InvalidInputError(f"expected a type, found {_short(wire)}")


def _id(wire: Any) -> int:
    if type(wire) is not int or wire not in _INT_RANGE:
        raise InvalidInputError(f"expected a field id of 32 bits, found {_short(wire)}")
    return wire


def _parse_field(wire: Any, position: int, levels: int) -> NestedField:
    try:
        return msgspec.convert(wire, NestedField, dec_hook=lambda _, inner: _parse(inner, levels - 1))
    except msgspec.ValidationError as error:
        text, _, place = str(error).replace(", got ", ", found ").rpartition(" - at `$")
        text, place = (text, place) if text else (place, "`")
        outer = f"fields[{position}]{place.removesuffix('`')}"
        # what is wrong deeper inside names its own place already
        text, _, inner = text.partition(" at `fields")
        raise InvalidInputError(
            f"{text[:1].lower()}{text[1:]} at `{outer}{f'.fields{inner}' if inner else '`'}"
        ) from error


def _short(wire: Any) -> str:
    if not isinstance(wire, str):
        return reprlib.repr(wire)
    return wire if len(wire) <= 80 else f"{wire[:77]}..."  # noqa: PLR2004
