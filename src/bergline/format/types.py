"""The types of columns, and the fields that hold them."""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from bergline.format.integers import Int
from bergline.format.value_class import ValueClass


class IcebergType(ValueClass):
    """PrimitiveType, DecimalType, FixedType, GeometryType, GeographyType, StructType, ListType or MapType."""

    __slots__ = ()


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
    """Byte string of one length."""

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

    # the names of reference systems are the same in any case
    def __eq__(self, other: object) -> bool:
        return isinstance(other, GeometryType) and self.crs.upper() == other.crs.upper()

    def __hash__(self) -> int:
        return hash((GeometryType, self.crs.upper()))


class GeographyType(IcebergType):
    """Shapes on a globe; edges between points follow an algorithm."""

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
    """A named field of a struct, with the id that stays when the name changes."""

    id: Int
    name: str
    required: bool
    type: IcebergType
    doc: str | None = None
    initial_default: Any = None
    write_default: Any = None
    """Defaults as JSON single values, just as they stand in metadata; None means no value (see `defaults`)."""


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
    """Every field at every level with its dotted name; list elements and map entries as `element`, `key`, `value`."""
    for field in fields:
        name = f"{prefix}{field.name}"
        yield name, field
        yield from walk_fields(child_fields(field.type), f"{name}.")


def nesting(type_: IcebergType) -> int:
    """How many nested types stand around the innermost one; 0 for primitives."""
    levels, inside = 0, child_fields(type_)
    while inside:
        levels, inside = levels + 1, tuple(c for f in inside for c in child_fields(f.type))
    return levels


def child_fields(type_: IcebergType) -> tuple[NestedField, ...]:
    """The fields directly inside a type; none for primitives."""
    match type_:
        case StructType(fields):
            return fields
        case ListType(element_id, element, required):
            return (NestedField(element_id, "element", required, element),)
        case MapType(key_id, key, value_id, value, required):
            return (NestedField(key_id, "key", True, key), NestedField(value_id, "value", required, value))
    return ()
