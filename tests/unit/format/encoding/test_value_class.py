"""The base of types and transforms."""

import pickle

import pytest

from bergline.format.encoding.value_class import ValueClass


class Point(ValueClass):
    __slots__ = ("x", "y")
    __match_args__ = ("x", "y")
    x: int
    y: int


class Other(Point):
    __slots__ = ()


def test_equal_by_class_and_fields() -> None:
    assert Point(1, 2) == Point(1, 2)
    assert Point(1, 2) != Point(2, 1)
    assert Point(1, 2) != Other(1, 2)
    assert len({Point(1, 2), Point(1, 2), Other(1, 2)}) == 2


def test_fields_cannot_be_changed() -> None:
    with pytest.raises(AttributeError, match="Point is immutable"):
        Point(1, 2).x = 5


def test_every_field_must_be_given() -> None:
    with pytest.raises(TypeError, match="Point takes"):
        Point(1)


def test_value_is_shown_copied_and_matched() -> None:
    point = Point(1, 2)
    assert repr(point) == "Point(1, 2)"
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301
    match point:
        case Point(x, y):
            assert (x, y) == (1, 2)
