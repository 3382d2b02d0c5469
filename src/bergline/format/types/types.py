"""Column types and nested fields."""

import re
import reprlib
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.encoding.integers import Int
from bergline.format.encoding.value_class import ValueClass


class IcebergType(ValueClass):
    """PrimitiveType, DecimalType, FixedType, GeometryType, GeographyType, StructType, ListType or MapType."""

    __slots__ = ()

    @classmethod
    def from_json(cls, value: Any) -> "IcebergType":
        """Parse any type from decoded JSON."""
        return parse_type(value)

    def to_json(self) -> Any:
        """Text for primitives, an object for nested types."""
        return render_type(self)


class PrimitiveType(IcebergType):
    """A type without parameters, known by its name in the specification."""

    __slots__ = ("name",)
    __match_args__ = ("name",)
    name: str

    def __str__(self) -> str:
        return self.name


class DecimalType(IcebergType):
    """Fixed-point number."""

    __slots__ = ("precision", "scale")
    __match_args__ = ("precision", "scale")
    precision: int
    scale: int

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"


class FixedType(IcebergType):
    """Byte string of fixed length."""

    __slots__ = ("length",)
    __match_args__ = ("length",)
    length: int

    def __str__(self) -> str:
        return f"fixed[{self.length}]"


class GeometryType(IcebergType):
    """Shapes on a plane, in a coordinate reference system."""

    __slots__ = ("crs",)
    __match_args__ = ("crs",)
    crs: str

    def __str__(self) -> str:
        return f"geometry({self.crs})"

    # names of reference systems are case-insensitive
    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeometryType) and self.crs.upper() == other.crs.upper()

    def __hash__(self) -> int:
        return hash((GeometryType, self.crs.upper()))


class GeographyType(IcebergType):
    """Shapes on a globe; an algorithm defines the edges between points."""

    __slots__ = ("algorithm", "crs")
    __match_args__ = ("crs", "algorithm")
    crs: str
    algorithm: str

    def __str__(self) -> str:
        return f"geography({self.crs}, {self.algorithm})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GeographyType):
            return False
        return self.algorithm == other.algorithm and self.crs.upper() == other.crs.upper()

    def __hash__(self) -> int:
        return hash((GeographyType, self.crs.upper(), self.algorithm))


class NestedField(msgspec.Struct, frozen=True, rename="kebab", omit_defaults=True):
    """A named field of a struct, with an id that stays when the name changes."""

    id: Int
    name: str
    required: bool
    type: IcebergType
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None
    """Defaults as JSON single values as in metadata; None means none (see `defaults`)."""


class StructType(IcebergType):
    """Fields in order."""

    __slots__ = ("fields",)
    __match_args__ = ("fields",)
    fields: tuple[NestedField, ...]

    def __str__(self) -> str:
        return f"struct<{', '.join(f'{f.name}: {f.type}' for f in self.fields)}>"


class ListType(IcebergType):
    """Elements of one type."""

    __slots__ = ("element", "element_id", "element_required")
    __match_args__ = ("element_id", "element", "element_required")
    element_id: int
    element: IcebergType
    element_required: bool

    def __str__(self) -> str:
        return f"list<{self.element}>"


class MapType(IcebergType):
    """Keys of one type to values of another."""

    __slots__ = ("key", "key_id", "value", "value_id", "value_required")
    __match_args__ = ("key_id", "key", "value_id", "value", "value_required")
    key_id: int
    key: IcebergType
    value_id: int
    value: IcebergType
    value_required: bool

    def __str__(self) -> str:
        return f"map<{self.key}, {self.value}>"


BOOLEAN: Final = PrimitiveType("boolean")
INT: Final = PrimitiveType("int")
LONG: Final = PrimitiveType("long")
FLOAT: Final = PrimitiveType("float")
DOUBLE: Final = PrimitiveType("double")
DATE: Final = PrimitiveType("date")
TIME: Final = PrimitiveType("time")
TIMESTAMP: Final = PrimitiveType("timestamp")
TIMESTAMPTZ: Final = PrimitiveType("timestamptz")
STRING: Final = PrimitiveType("string")
UUID: Final = PrimitiveType("uuid")
BINARY: Final = PrimitiveType("binary")
TIMESTAMP_NS: Final = PrimitiveType("timestamp_ns")
TIMESTAMPTZ_NS: Final = PrimitiveType("timestamptz_ns")
UNKNOWN: Final = PrimitiveType("unknown")
VARIANT: Final = PrimitiveType("variant")
V3_PRIMITIVES: Final = (TIMESTAMP_NS, TIMESTAMPTZ_NS, UNKNOWN, VARIANT)

PRIMITIVES: Final = {
    t.name: t
    for t in (
        *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, STRING, UUID, BINARY),
        *V3_PRIMITIVES,
    )
}
DEFAULT_CRS: Final = "OGC:CRS84"
DEFAULT_ALGORITHM: Final = "spherical"
EDGE_ALGORITHMS: Final = (DEFAULT_ALGORITHM, "vincenty", "thomas", "andoyer", "karney")
MAX_DECIMAL_PRECISION: Final = 38


def walk_fields(fields: tuple[NestedField, ...], prefix: str = "") -> Iterator[tuple[str, NestedField]]:
    """All fields of all levels with their dotted names; list elements and map entries are `element`, `key`, `value`."""
    for field in fields:
        name = f"{prefix}{field.name}"
        yield name, field
        yield from walk_fields(child_fields(field.type), f"{name}.")


def nesting(type_: IcebergType) -> int:
    """The depth of nesting; 0 for primitives."""
    levels, inside = 0, child_fields(type_)
    while inside:
        levels, inside = levels + 1, tuple(c for f in inside for c in child_fields(f.type))
    return levels


def child_fields(type_: IcebergType) -> tuple[NestedField, ...]:
    """The direct child fields of a type; none for primitives."""
    match type_:
        case StructType(fields):
            return fields
        case ListType(element_id, element, required):
            return (NestedField(element_id, "element", required, element),)
        case MapType(key_id, key, value_id, value, required):
            return (NestedField(key_id, "key", True, key), NestedField(value_id, "value", required, value))
    return ()


_WITH_PARAMETERS = "decimal(p, s), fixed[n], geometry(crs), geography(crs, algorithm)"
MAX_NESTING: Final = 100
_DECIMAL = re.compile(r"decimal\(\s*([0-9]{1,10})\s*,\s*([0-9]{1,10})\s*\)", re.ASCII)
_FIXED = re.compile(r"fixed\[\s*([0-9]{1,10})\s*\]", re.ASCII)
_GEO = re.compile(r"(geometry|geography)\s*(?:\(([^()]*)\))?", re.ASCII | re.IGNORECASE)
_INT_RANGE = range(-(2**31), 2**31)


def parse_primitive(text: str) -> IcebergType:
    """Parse a primitive type."""
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
    """Parse a type from decoded JSON; InvalidInputError also if it is nested too deeply."""
    return _parse(wire, MAX_NESTING)


def render_type(type_: IcebergType) -> Any:
    """A type in JSON's types."""
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
        # errors further inside already name their path
        text, _, inner = text.partition(" at `fields")
        raise InvalidInputError(
            f"{text[:1].lower()}{text[1:]} at `{outer}{f'.fields{inner}' if inner else '`'}"
        ) from error


def _short(wire: Any) -> str:
    if not isinstance(wire, str):
        return reprlib.repr(wire)
    return wire if len(wire) <= 80 else f"{wire[:77]}..."  # noqa: PLR2004
