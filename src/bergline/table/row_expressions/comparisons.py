"""Comparisons and logic in SQL's three-valued logic. NaN equals itself and is the greatest number, as in Spark."""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bergline.errors import InvalidInputError
from bergline.expressions.predicate import ComparisonOperator
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    TIMESTAMPTZ_NS,
    UNKNOWN,
    UUID,
    VARIANT,
    DecimalType,
    FixedType,
    IcebergType,
    child_fields,
)
from bergline.table.row_expressions.arithmetic import common_number, exact_decimal
from bergline.table.row_expressions.casts import FLOATING, decimal_from_text, is_number, is_time, retyped
from bergline.table.row_expressions.rows import RowExpression, Rows, literal_expression, places_of

_KERNELS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_NANOS: Final = (TIMESTAMP_NS, TIMESTAMPTZ_NS)
_ZONED: Final = (TIMESTAMPTZ, TIMESTAMPTZ_NS)
_TEXT_FITS: Final = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ, *_NANOS, UUID)


def comparison(operator: ComparisonOperator, left: RowExpression, right: RowExpression, text: str) -> RowExpression:
    """`left operator right`: unknown where one of them is null."""
    left, right = in_common_type([left, right], text)
    _check_ordered(left.type, operator, text)

    def run(rows: Rows) -> pa.Array:
        return compare(operator, left.evaluate(rows), right.evaluate(rows), left.type)

    return RowExpression(BOOLEAN, run, places_of(left, right), text)


def null_safe_equality(left: RowExpression, right: RowExpression, text: str) -> RowExpression:
    """`left <=> right`: null equals null and nothing else."""
    left, right = in_common_type([left, right], text)

    def run(rows: Rows) -> pa.Array:
        return same_values(left.evaluate(rows), right.evaluate(rows), left.type)

    return RowExpression(BOOLEAN, run, places_of(left, right), text)


def is_null(value: RowExpression, text: str) -> RowExpression:
    """`value IS NULL`."""
    return RowExpression(BOOLEAN, lambda rows: pc.is_null(value.evaluate(rows)), value.places, text)


def is_truth(value: RowExpression, truth: bool, text: str) -> RowExpression:
    """`value IS TRUE` or `value IS FALSE`."""
    value = condition(value, text)

    def run(rows: Rows) -> pa.Array:
        found = value.evaluate(rows)
        return pc.fill_null(found if truth else pc.invert(found), False)

    return RowExpression(BOOLEAN, run, value.places, text)


def is_nan(value: RowExpression, text: str) -> RowExpression:
    """`isnan(value)`, false for null."""
    if value.type not in FLOATING:
        raise InvalidInputError(f"expected a `float` or `double` that may be NaN, found `{value.type}` in `{text}`")
    return RowExpression(BOOLEAN, lambda rows: pc.fill_null(pc.is_nan(value.evaluate(rows)), False), value.places, text)


def negation(value: RowExpression, text: str) -> RowExpression:
    """`NOT value`."""
    value = condition(value, text)
    return RowExpression(BOOLEAN, lambda rows: pc.invert(value.evaluate(rows)), value.places, text)


def conjunction(parts: Sequence[RowExpression], text: str) -> RowExpression:
    """`a AND b AND …`; a part is evaluated only where those before it are not false."""
    return _chain([condition(part, text) for part in parts], pc.and_kleene, False, text)


def disjunction(parts: Sequence[RowExpression], text: str) -> RowExpression:
    """`a OR b OR …`; a part is evaluated only where those before it are not true."""
    return _chain([condition(part, text) for part in parts], pc.or_kleene, True, text)


def membership(value: RowExpression, options: Sequence[RowExpression], text: str) -> RowExpression:
    """`value IN (a, b, …)`."""
    return disjunction([comparison("=", value, option, text) for option in options], text)


def like(value: RowExpression, pattern: str, text: str) -> RowExpression:
    """`value LIKE pattern`, where a backslash escapes."""
    if value.type not in (STRING, UNKNOWN):
        raise InvalidInputError(f"expected text for LIKE, found `{value.type}` in `{text}`")
    value = retyped(value, STRING)
    return RowExpression(BOOLEAN, lambda rows: pc.match_like(value.evaluate(rows), pattern), value.places, text)


def condition(value: RowExpression, text: str) -> RowExpression:
    """The value as a condition; InvalidInputError if it is not boolean."""
    if value.type not in (BOOLEAN, UNKNOWN):
        raise InvalidInputError(
            f"expected a condition, found `{value.text}` of type `{value.type}` in `{text}`",
            hints=["compare it with a value, or write IS NOT NULL"],
        )
    return retyped(value, BOOLEAN)


def in_common_type(values: Sequence[RowExpression], text: str) -> list[RowExpression]:
    """The values in a common type for comparison; InvalidInputError if there is none."""
    known = [v for v in values if v.type != UNKNOWN]
    # text in quotes is read as the other side's type
    typed = [v for v in known if not (v.type == STRING and v.is_literal)] or known
    if not typed:
        return list(values)
    common = reduce(lambda found, value: _common(found, value, text), typed[1:], typed[0].type)
    if isinstance(common, DecimalType) and len(typed) < len(known):
        return _in_common_decimal([_text_as_decimal(v, text) if v.type == STRING else v for v in values], text)
    for value in known:
        if value.type == STRING and common != STRING and common not in _TEXT_FITS:
            hints = ["write numbers without quotes"] if is_number(common) else []
            raise InvalidInputError(f"expected `{common}` to compare, found text in `{text}`", hints=hints)
    return [retyped(value, common) for value in values]


def compare(operator: str, left: pa.Array, right: pa.Array, type_: IcebergType) -> pa.Array:
    """Compare values of one type; null where one of them is."""
    left, right = _comparable(left, type_), _comparable(right, type_)
    found = _KERNELS[operator](left, right)
    if type_ not in FLOATING:
        return found
    nan, other = pc.is_nan(left), pc.is_nan(right)
    match operator:
        case "=" | ">=" | "<=":
            both = pc.and_(nan, other)
            beyond = {"=": both, ">=": nan, "<=": other}[operator]
            return pc.or_(found, beyond)
        case "!=":
            return pc.and_(found, pc.invert(pc.and_(nan, other)))
        case ">":
            return pc.or_(found, pc.and_(nan, pc.invert(other)))
        case _:
            return pc.or_(found, pc.and_(other, pc.invert(nan)))


def same_values(left: pa.Array, right: pa.Array, type_: IcebergType) -> pa.Array:
    """Whether values are the same, null and null included; structs, lists, maps and variants are compared whole."""
    if child_fields(type_) or type_ == VARIANT:
        return pa.array([a == b for a, b in zip(left.to_pylist(), right.to_pylist(), strict=True)], pa.bool_())
    if type_ == UNKNOWN:
        return pa.repeat(True, len(left))
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    return pc.or_(both_null, pc.fill_null(compare("=", left, right, type_), False))


def _chain(parts: Sequence[RowExpression], join: Callable[[Any, Any], Any], settled: bool, text: str) -> RowExpression:
    if len(parts) == 1:
        return parts[0]

    def run(rows: Rows) -> pa.Array:
        found = parts[0].evaluate(rows)
        for part in parts[1:]:
            open_ = pc.invert(pc.fill_null(pc.equal(found, settled), False))
            reached = pc.indices_nonzero(open_).cast(pa.int64())
            values = part.evaluate(rows.take(reached))
            spread = _spread(values, open_, settled)
            found = join(found, spread)
        return found

    return RowExpression(BOOLEAN, run, places_of(*parts), text)


def _spread(values: pa.Array, mask: pa.Array, rest: bool) -> pa.Array:
    """Values at the positions of a mask, and another value everywhere else."""
    if len(values) == len(mask):
        return values
    base = pa.repeat(pa.scalar(rest), len(mask))
    return pc.replace_with_mask(base, mask, values)


def _in_common_decimal(values: Sequence[RowExpression], text: str) -> list[RowExpression]:
    """Text is not rounded to a column's scale: if no decimal type holds all digits, values are doubles, as in Spark."""
    known = [v for v in values if v.type != UNKNOWN]
    common = reduce(lambda found, value: _common(found, value, text), known[1:], known[0].type)
    read = [v.type for v in known if isinstance(v.type, DecimalType)]
    if isinstance(common, DecimalType):
        whole = common.precision - common.scale
        if any(t.scale > common.scale or t.precision - t.scale > whole for t in read):
            common = DOUBLE
    return [retyped(value, common) for value in values]


def _text_as_decimal(value: RowExpression, text: str) -> RowExpression:
    try:
        number = decimal_from_text(value.literal)
    except ValueError as error:
        raise InvalidInputError(f"expected a number to compare, found {value.text} in `{text}`") from error
    return literal_expression(exact_decimal(number, value.text), number, value.text)


def _common(type_: IcebergType, value: RowExpression, text: str) -> IcebergType:
    other = value.type
    if type_ == other:
        return type_
    if is_number(type_) and is_number(other):
        return common_number(type_, other)
    if is_time(type_) and is_time(other):
        return _common_time(type_, other)
    binaries = (type_ == BINARY or isinstance(type_, FixedType)) and (other == BINARY or isinstance(other, FixedType))
    if binaries:
        return BINARY
    if {type_, other} == {UUID, STRING}:
        return UUID
    raise InvalidInputError(f"expected values of one type, found `{type_}` and `{other}` in `{text}`")


def _common_time(first: IcebergType, second: IcebergType) -> IcebergType:
    either = (first, second)
    zoned, nanos = any(t in _ZONED for t in either), any(t in _NANOS for t in either)
    if zoned:
        return TIMESTAMPTZ_NS if nanos else TIMESTAMPTZ
    return TIMESTAMP_NS if nanos else TIMESTAMP


def _comparable(values: pa.Array, type_: IcebergType) -> pa.Array:
    if type_ == UUID:
        return values.cast(pa.binary(16)).cast(pa.binary())
    return values.cast(pa.binary()) if isinstance(type_, FixedType) else values


def _check_ordered(type_: IcebergType, operator: str, text: str) -> None:
    if child_fields(type_) or type_ == VARIANT:
        raise InvalidInputError(
            f"expected values without fields or elements for {operator}, found `{type_}` in `{text}`",
            hints=["<=> compares structs and lists whole"] if operator == "=" else [],
        )
