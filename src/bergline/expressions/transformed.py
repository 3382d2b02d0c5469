"""One test of a column as a test of a partition field: true for the partition of every row that satisfies the first.

Null is the partition value of null and of nothing else, whatever the transform, so that projected tests are unknown for
a null partition value just as the tests themselves are.
"""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec

from bergline.expressions.predicate import (
    ALWAYS_TRUE,
    ColumnTest,
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


def project_test(transform: Transform, source: IcebergType, name: str, test: ColumnTest, negated: bool) -> Predicate:
    """What a test, or its negation, implies for the partition field `name`; always true where nothing follows."""
    match transform, test:
        case ((Void() | UnknownTransform()), _):
            return ALWAYS_TRUE
        case Identity(), _:
            return _signed(msgspec.structs.replace(test, column=name), negated)
        case _, IsNull():
            return _signed(IsNull(name), negated)
        case Bucket(), Comparison(_, "=", literal):
            return Comparison(name, "=", transform.apply(source, literal))
        case Bucket(), IsIn(_, literals) if not negated:
            return IsIn(name, _each(literals, lambda v: transform.apply(source, v)))
        case Truncate(width), _ if source in _SMALLEST:
            return _truncated_whole(width, source, name, test, negated)
        case Truncate(), _ if isinstance(source, DecimalType):
            return _stepped(transform, source, name, test, negated)
        case Truncate(width), _:
            return _truncated_text(width, name, test, negated)
        case TimeTransform(), _:
            return _time(transform, source, name, test, negated)
    return ALWAYS_TRUE


def _stepped(transform: Transform, source: IcebergType, name: str, test: ColumnTest, negated: bool) -> Predicate:
    """Through a transform that never decreases where its source increases."""
    match test:
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
    """The neighbour of a value; it may lie outside the type."""
    if isinstance(source, DecimalType):
        return scaled(unscaled(value, source.scale) + step, source.scale)
    return value + step


def _truncated_whole(width: int, source: IcebergType, name: str, test: ColumnTest, negated: bool) -> Predicate:
    """Whole numbers, which wrap around: the smallest ones land in a partition at the top of the range.

    Java writes such partition values too, but forgets them in its own projections.
    """
    smallest = _SMALLEST[source]
    match test:
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
    return _stepped(Truncate(width), source, name, test, negated)


def _truncated_text(width: int, name: str, test: ColumnTest, negated: bool) -> Predicate:
    """Text or bytes cut to a prefix; a value shorter than the width is alone in its partition."""
    match test:
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
            assert_never(test)


def _time(transform: TimeTransform, source: IcebergType, name: str, test: ColumnTest, negated: bool) -> Predicate:
    """Years, months, days, hours; before 1970 also the neighbours of the right partition.

    Java up to 0.10 rounded values before 1970 up instead of down, as its newer versions allow for in their projections.
    They themselves put a timestamp in the last fraction of the first second of a unit one unit too early.
    """
    early = 0 if source == DATE else 1
    late = 0 if source == DATE and transform.unit == "day" else 1
    match _stepped(transform, source, name, test, negated):
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


def _signed(test: ColumnTest, negated: bool) -> Predicate:
    return Not(test) if negated else test
