"""Hypothesis strategies for plain values of every type and for bound predicates on them."""

import uuid
from decimal import Context, Decimal
from functools import cache
from typing import Any

from hypothesis import strategies as st

from bergline.expressions.predicate import Always, And, Comparison, IsIn, IsNan, IsNull, Not, Or, Predicate, StartsWith
from bergline.format.schema.schema import Schema
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)

ALL_TYPES: tuple[IcebergType, ...] = (
    *(BOOLEAN, INT, LONG, FLOAT, DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, TIMESTAMP_NS, TIMESTAMPTZ_NS),
    *(STRING, UUID, BINARY, FixedType(2), DecimalType(4, 1), DecimalType(38, 10)),
)
_CHARACTERS = st.sampled_from("ab\x00\x7f\u00e4\ud7ff\ue000\uffff\U00010000\U0010ffff")
_DAY = 86_400_000_000
_EXACT = Context(prec=76)


@cache
def plain_values(type_: IcebergType) -> st.SearchStrategy[Any]:
    """Values of a type, the nasty ones often; NaN among the floats."""
    if isinstance(type_, DecimalType):
        largest = 10**type_.precision - 1
        return _whole(largest, -largest).map(lambda n: Decimal(n).scaleb(-type_.scale, _EXACT))
    if isinstance(type_, FixedType):
        return st.sampled_from([b"\x00\x00", b"\x00\x01", b"\x7f\xff", b"\x80\x00", b"\xff\xff"])
    by_type: dict[IcebergType, st.SearchStrategy[Any]] = {
        BOOLEAN: st.booleans(),
        INT: _whole(2**31 - 1),
        LONG: _whole(2**63 - 1),
        FLOAT: _floats([0.5, -1.5, 3.4028234663852886e38, -1.401298464324817e-45, float("inf"), float("-inf")]),
        DOUBLE: _floats([0.1, -1.5, 1.7976931348623157e308, -5e-324, float("inf"), float("-inf")]),
        DATE: _whole(2**31 - 1) | st.integers(-800, 800),
        TIME: st.sampled_from([0, 1, _DAY - 1]) | st.integers(0, _DAY - 1),
        STRING: st.text(_CHARACTERS, max_size=4),
        UUID: st.sampled_from([0, 1, 2**63, 2**64, 2**127, 2**128 - 1]).map(lambda n: uuid.UUID(int=n)),
        BINARY: st.lists(st.sampled_from(b"\x00a\x7f\x80\xff"), max_size=4).map(bytes),
    }
    if type_ in by_type:
        return by_type[type_]
    return _instants(1000 if type_ in (TIMESTAMP_NS, TIMESTAMPTZ_NS) else 1)


@cache
def literals(type_: IcebergType) -> st.SearchStrategy[Any]:
    """What a bound predicate may compare a column with: never NaN."""
    return plain_values(type_).filter(lambda v: v == v)  # noqa: PLR0124


@cache
def column_tests(column: str, type_: IcebergType) -> st.SearchStrategy[Predicate]:
    """Bound tests of one column."""
    kinds: list[st.SearchStrategy[Any]] = [
        st.builds(Comparison, st.just(column), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), literals(type_)),
        st.builds(IsIn, st.just(column), st.lists(literals(type_), max_size=3).map(tuple)),
        st.just(IsNull(column)),
    ]
    if type_ == STRING:
        kinds.append(st.builds(StartsWith, st.just(column), plain_values(STRING)))
    if type_ in (FLOAT, DOUBLE):
        kinds.append(st.just(IsNan(column)))
    return st.one_of(kinds)


def bound_predicates(schema: Schema, max_leaves: int = 4) -> st.SearchStrategy[Predicate]:
    """Bound predicates on a schema's columns."""
    leaves = st.one_of(
        st.builds(Always, st.sampled_from([True, False, None])), *(column_tests(f.name, f.type) for f in schema.fields)
    )
    return st.recursive(
        leaves, lambda p: st.builds(Not, p) | st.builds(And, p, p) | st.builds(Or, p, p), max_leaves=max_leaves
    )


def _whole(high: int, low: int | None = None) -> st.SearchStrategy[int]:
    low = -high - 1 if low is None else low
    near = st.integers(-11, 11)
    ends = st.builds(
        lambda edge, off: edge + off if edge < 0 else edge - off, st.sampled_from([low, high]), st.integers(0, 3)
    )
    return near | ends | st.integers(low, high)


def _floats(values: list[float]) -> st.SearchStrategy[float]:
    return st.sampled_from([0.0, -0.0, float("nan"), *values])


def _instants(per_micro: int) -> st.SearchStrategy[int]:
    """Around 1970, at the edges of hours, days, months and years, and far away."""
    micros = st.builds(
        lambda hours, off: hours * 3_600_000_000 + off,
        st.sampled_from([0, 1, -1, 24, -24, 31 * 24, -31 * 24, 365 * 24, -365 * 24, -366 * 24]),
        st.sampled_from([0, 1, -1, 1_799_999_999]),
    )
    return (
        micros.map(lambda m: m * per_micro) | st.sampled_from([-(2**63), 2**63 - 1]) | st.integers(-(2**63), 2**63 - 1)
    )
