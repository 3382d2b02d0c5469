"""Bounding boxes of shapes in well-known binary."""

import math
import struct
from typing import Any

import pytest

from bergline.errors import InvalidInputError
from bergline.format.types.types import GeographyType, GeometryType
from bergline.format.types.wkb import Box, box_of

PLANE, GLOBE = GeometryType("OGC:CRS84"), GeographyType("OGC:CRS84", "spherical")


def shape(kind: int, *parts: Any, order: str = "<") -> bytes:
    """A shape of counts, coordinates and shapes."""
    data = struct.pack(f"{order}BI", order == "<", kind)
    for part in parts:
        data += (
            part if isinstance(part, bytes) else struct.pack(f"{order}{'I' if isinstance(part, int) else 'd'}", part)
        )
    return data


POINT = shape(1, 1.0, 2.0)
LINE = shape(2, 2, 1.0, 2.0, 3.0, -4.0, order=">")
POLYGON = shape(3, 2, 3, 0.0, 0.0, 9.0, 9.0, 0.0, 0.0, 0)


@pytest.mark.parametrize(
    ("data", "low", "high"),
    [
        (POINT, (1, 2, None, None), (1, 2, None, None)),
        (shape(1001, 1.0, 2.0, 3.0), (1, 2, 3, None), (1, 2, 3, None)),
        (shape(2001, 1.0, 2.0, 3.0), (1, 2, None, 3), (1, 2, None, 3)),
        (shape(3001, 1.0, 2.0, 3.0, 4.0, order=">"), (1, 2, 3, 4), (1, 2, 3, 4)),
        (LINE, (1, -4, None, None), (3, 2, None, None)),
        (POLYGON, (0, 0, None, None), (9, 9, None, None)),
        (shape(4, 2, POINT, shape(1, -5.0, 8.0)), (-5, 2, None, None), (1, 8, None, None)),
        (shape(5, 1, LINE), (1, -4, None, None), (3, 2, None, None)),
        (shape(6, 1, POLYGON), (0, 0, None, None), (9, 9, None, None)),
        (shape(7, 3, POINT, LINE, shape(7, 1, POLYGON)), (0, -4, None, None), (9, 9, None, None)),
        (shape(7, 2, POINT, shape(1, math.nan, math.nan)), (1, 2, None, None), (1, 2, None, None)),
    ],
)
def test_boxes_hold_every_coordinate(data: bytes, low: Any, high: Any) -> None:
    assert box_of(data).bounds(PLANE) == (low, high)


@pytest.mark.parametrize("data", [shape(1, math.nan, math.nan), shape(1, 1.0, math.nan), shape(2, 0), shape(7, 0)])
def test_empty_shapes_have_no_bounds(data: bytes) -> None:
    assert box_of(data).bounds(PLANE) is None


def test_only_points_bound_what_is_on_a_globe() -> None:
    assert box_of(shape(4, 1, POINT)).bounds(GLOBE) == ((1, 2, None, None), (1, 2, None, None))
    assert box_of(LINE).bounds(GLOBE) is None
    assert box_of(shape(1, 181.0, 0.0)).bounds(GLOBE) is None


def test_boxes_of_many_shapes_have_the_axes_that_all_have() -> None:
    box = Box()
    for data in (shape(1001, 1.0, 2.0, 3.0), shape(1, math.nan, math.nan), shape(3001, 0.0, 9.0, -3.0, 5.0)):
        box.add(box_of(data))
    assert box.bounds(PLANE) == ((0, 2, -3, None), (1, 9, 3, None))


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "no byte order"),
        (b"\x02" + POINT[1:], "no byte order"),
        (POINT[:3], "an end inside it"),
        (POINT[:-1], "an end inside it"),
        (POINT + b"\x00", "more bytes after the 21 of a shape"),
        (shape(8), "a shape of kind 8"),
        (shape(4001), "a shape of kind 4001"),
        (shape(1 | 0x20000000, 4326, 1.0, 2.0), "a shape of kind"),
        (shape(4, 1, LINE), "a shape of kind 2"),
        (shape(2, 2**32 - 1), "an end inside it"),
        (shape(7, 1) * 1000, "more than 32 levels"),
    ],
)
def test_other_bytes_are_refused(data: bytes, problem: str) -> None:
    with pytest.raises(InvalidInputError, match=f"expected well-known binary, found .*{problem}"):
        box_of(data)
