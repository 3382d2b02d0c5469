"""Projection of a leaf predicate through a partition transform: true for the partition of every matching row.

Every transform maps null, and only null, to null, so a projected predicate is unknown for a null partition value just
as the original is for null.
"""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    ColumnPredicate,
    Comparison,
    IsIn,
    IsNan,
    IsNull,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from bergline.format.partition.transforms import (
    Bucket,
    Identity,
    TimeTransform,
    Transform,
    Truncate,
    UnknownTransform,
    Void,
)
from bergline.format.types.single_values import scaled, unscaled
from bergline.format.types.types import DATE, INT, LONG, DecimalType, IcebergType

_SMALLEST: dict[IcebergType, int] = {INT: -(2**31), LONG: -(2**63)}


def project_leaf(
    transform: Transform, source: IcebergType, name: str, leaf: ColumnPredicate, negated: bool
) -> Predicate:
    """What a leaf, or its negation, implies for the partition field `name`; always true if it implies nothing."""
    match transform, leaf:
        case ((Void() | UnknownTransform()), _):
            return ALWAYS_TRUE
        case Identity(), _:
            return _signed(msgspec.structs.replace(leaf, column=name), negated)
        case _, IsNull():
            return _signed(IsNull(name), negated)
        case Bucket(), Comparison(_, "=", literal):
            return Comparison(name, "=", transform.apply(source, literal))
        case Bucket(), IsIn(_, literals) if not negated:
            return IsIn(name, _each(literals, lambda v: transform.apply(source, v)))
        case Truncate(width), _ if source in _SMALLEST:
            return _truncated_integer(width, source, name, leaf, negated)
        case Truncate(), _ if isinstance(source, DecimalType):
            return _monotonic(transform, source, name, leaf, negated)
        case Truncate(width), _:
            return _truncated_text(width, name, leaf, negated)
        case TimeTransform(), _:
            return _time(transform, source, name, leaf, negated)
    return ALWAYS_TRUE


def _monotonic(transform: Transform, source: IcebergType, name: str, leaf: ColumnPredicate, negated: bool) -> Predicate:
    """Project through a monotonic transform."""
    match leaf:
        case Comparison(_, "=", literal):
            return Comparison(name, "=", transform.apply(source, literal))
        case Comparison(_, "<" | "<=" as op, literal):
            return Comparison(name, "<=", transform.apply(source, _next(source, literal, -1) if op == "<" else literal))
        case Comparison(_, ">" | ">=" as op, literal):
            return Comparison(name, ">=", transform.apply(source, _next(source, literal, 1) if op == ">" else literal))
        case IsIn(_, literals) if not negated:
            return IsIn(name, _each(literals, lambda v: transform.apply(source, v)))
    return ALWAYS_TRUE


def _next(source: IcebergType, value: Any, step: int) -> Any:
    """The adjacent value; it may exceed the type's range."""
    if isinstance(source, DecimalType):
        return scaled(unscaled(value, source.scale) + step, source.scale)
    return value + step


def _truncated_integer(width: int, source: IcebergType, name: str, leaf: ColumnPredicate, negated: bool) -> Predicate:
    """Project through truncated integers, which wrap around: the smallest values land at the top of the range.

    Java writes such partition values too, but misses them in its own projections.
    """
    smallest = _SMALLEST[source]
    match leaf:
        case Comparison(_, "<" | "<=" as op, literal):
            last = literal - (op == "<")
            floor = last - last % width
            found = Comparison(name, "<=", floor) if floor >= smallest else IsIn(name, ())
            wrapped = Truncate(width).apply(source, smallest)
            return Or(found, Comparison(name, "=", wrapped)) if smallest % width and last >= smallest else found
        case Comparison(_, ">" | ">=" as op, literal):
            first = literal + (op == ">")
            floor = first - first % width
            if first > -smallest - 1:
                return IsIn(name, ())
            return Comparison(name, ">=", floor) if floor >= smallest else Not(IsIn(name, ()))
    return _monotonic(Truncate(width), source, name, leaf, negated)


def _truncated_text(width: int, name: str, leaf: ColumnPredicate, negated: bool) -> Predicate:
    """Project through truncated text or bytes; a value shorter than the width is the only one in its partition."""
    match leaf:
        case Comparison(_, "<", literal) if len(literal) <= width:
            return Comparison(name, "<", literal)
        case Comparison(_, ">", literal) if len(literal) < width:
            return Comparison(name, ">", literal)
        case Comparison(_, "!=", literal):
            return Comparison(name, "!=", literal) if len(literal) < width else ALWAYS_TRUE
        case Comparison(_, op, literal):
            closed = {"<": "<=", ">": ">="}
            return Comparison(name, closed.get(op, op), literal[:width])  # type: ignore[arg-type]
        case IsIn(_, literals):
            if negated:
                return Not(IsIn(name, tuple(v for v in literals if len(v) < width)))
            return IsIn(name, _each(literals, lambda v: v[:width]))
        case StartsWith(_, prefix):
            if len(prefix) <= width:
                return _signed(StartsWith(name, prefix), negated)
            return ALWAYS_TRUE if negated else Comparison(name, "=", prefix[:width])
        case IsNan() | IsNull():
            return ALWAYS_TRUE
        case _:
            assert_never(leaf)


def _time(transform: TimeTransform, source: IcebergType, name: str, leaf: ColumnPredicate, negated: bool) -> Predicate:
    """Project through year, month, day or hour; before 1970 the adjacent partitions are included.

    Java up to 0.10 rounded values before 1970 up instead of down, which newer versions allow for in their projections.
    Those newer versions put a timestamp in the last fraction of the first second of a unit one unit too early.
    """
    early = 0 if source == DATE else 1
    late = 0 if source == DATE and transform.unit == "day" else 1
    match _monotonic(transform, source, name, leaf, negated):
        case Comparison(_, "<=", value) if value < 0:
            return Comparison(name, "<=", value + late)
        case Comparison(_, ">=", value) if value < 0:
            return Comparison(name, ">=", value - early)
        case Comparison(_, "=", value) if value < 0 and late:
            return IsIn(name, tuple(range(value - early, value + late + 1)))
        case IsIn(_, values):
            around = (range(v - early, v + late + 1) if v < 0 else (v,) for v in values)
            return IsIn(name, tuple(dict.fromkeys(v for near in around for v in near)))
        case projected:
            return projected


def _each(literals: tuple[Any, ...], transform: Callable[[Any], Any]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(transform(v) for v in literals))


def _signed(leaf: ColumnPredicate, negated: bool) -> Predicate:
    return Not(leaf) if negated else leaf
