"""Well-known binary, in which geometries and geographies are stored, and the bounding boxes of shapes."""

import math
import struct
from typing import Final

import msgspec

from bergline.errors import InvalidInputError
from bergline.format.types.single_values import Point
from bergline.format.types.types import GeographyType, GeometryType

_POINT, _LINE, _POLYGON, _MULTI_POINT, _MULTI_LINE, _MULTI_POLYGON, _COLLECTION = range(1, 8)
_PARTS: Final = {
    _MULTI_POINT: (_POINT,),
    _MULTI_LINE: (_LINE,),
    _MULTI_POLYGON: (_POLYGON,),
    _COLLECTION: tuple(range(1, 8)),
}
_AXES: Final = {0: "xy", 1: "xyz", 2: "xym", 3: "xyzm"}
_COUNT_BYTES, _COORDINATE_BYTES = 4, 8
_MOST_LEVELS = 32
_EARTH: Final = {"x": 180.0, "y": 90.0}


class Box(msgspec.Struct):
    """The least and the greatest coordinate of each axis of shapes; NaN, as in empty points, does not count."""

    low: dict[str, float] = {}
    high: dict[str, float] = {}
    axes: frozenset[str] = frozenset("xyzm")
    """The axes that all shapes have."""
    has_edges: bool = False

    def add(self, other: "Box") -> None:
        """Let the box hold another one too."""
        self.axes &= other.axes
        self.has_edges |= other.has_edges
        for axis, value in other.low.items():
            self.low[axis] = min(value, self.low.get(axis, value))
            self.high[axis] = max(other.high[axis], self.high.get(axis, value))

    def bounds(self, type_: GeometryType | GeographyType) -> tuple[Point, Point] | None:
        """Its corners; None if there are none, or if edges on a globe may lie outside of them."""
        if not {"x", "y"} <= self.low.keys():
            return None
        if isinstance(type_, GeographyType):
            outside = any(max(-self.low[axis], self.high[axis]) > most for axis, most in _EARTH.items())
            if self.has_edges or outside:
                return None
        return self._corner(self.low), self._corner(self.high)

    def _corner(self, values: dict[str, float]) -> Point:
        more = (values.get(axis) if axis in self.axes else None for axis in "zm")
        return (values["x"], values["y"], *more)


def box_of(data: bytes) -> Box:
    """The bounding box of a shape; InvalidInputError for other bytes than well-known binary."""
    shape = _Shape(data)
    try:
        shape.read_whole()
    except InvalidInputError as error:
        raise InvalidInputError(f"expected well-known binary, found {data[:20].hex()} ({error})") from error
    return shape.box


class _Shape:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.place = 0
        self.box = Box()

    def read_whole(self) -> None:
        """Read all bytes as one shape."""
        self._read(_PARTS[_COLLECTION], 0)
        if self.place != len(self._data):
            raise InvalidInputError(f"more bytes after the {self.place} of a shape")

    def _read(self, kinds: tuple[int, ...], level: int) -> None:
        """Read a shape of one of some kinds, and what is inside it."""
        if level > _MOST_LEVELS:
            raise InvalidInputError(f"more than {_MOST_LEVELS} levels")
        order = self._data[self.place : self.place + 1]
        if order not in {b"\x00", b"\x01"}:
            raise InvalidInputError("no byte order")
        self.place += 1
        endian = "<" if order == b"\x01" else ">"
        code = self._count(endian)
        dimensions, kind = divmod(code, 1000)
        if kind not in kinds or dimensions not in _AXES:
            raise InvalidInputError(f"a shape of kind {code}")
        axes = _AXES[dimensions]
        if kind in _PARTS:
            for _ in range(self._count(endian)):
                self._read(_PARTS[kind], level + 1)
        elif kind == _POINT:
            self._points(1, axes, endian)
        else:
            self.box.has_edges = True
            for _ in range(self._count(endian) if kind == _POLYGON else 1):
                self._points(self._count(endian), axes, endian)

    def _count(self, endian: str) -> int:
        if self.place + _COUNT_BYTES > len(self._data):
            raise InvalidInputError("an end inside it")
        (count,) = struct.unpack_from(f"{endian}I", self._data, self.place)
        self.place += _COUNT_BYTES
        return int(count)

    def _points(self, count: int, axes: str, endian: str) -> None:
        end = self.place + count * len(axes) * _COORDINATE_BYTES
        if end > len(self._data):
            raise InvalidInputError("an end inside it")
        numbers = struct.unpack_from(f"{endian}{count * len(axes)}d", self._data, self.place)
        self.place = end
        found = Box({}, {}, frozenset(axes))
        for position, axis in enumerate(axes):
            values = [number for number in numbers[position :: len(axes)] if not math.isnan(number)]
            if values:
                found.low[axis], found.high[axis] = min(values), max(values)
        if found.low:  # an empty shape has no axes
            self.box.add(found)
