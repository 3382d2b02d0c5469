"""Arithmetic with the result types of Spark's ANSI mode; overflow and division by zero are errors."""

import math
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.file.constants import plain_to_arrow
from bergline.errors import InvalidInputError
from bergline.format.types.types import DOUBLE, INT, LONG, UNKNOWN, DecimalType, IcebergType
from bergline.table.row_expressions.casts import EXACT, FLOATING, WHOLE, by_value, is_number, retyped, rounded
from bergline.table.row_expressions.rows import RowExpression, Rows, places_of

Operator = Literal["+", "-", "*", "/", "%", "div"]
_MOST_DIGITS: Final = 38
_ANY_DOUBLE: Final = Context(prec=800)
"""Enough digits for the shortest form of any double, at any scale."""
_LEAST_SCALE: Final = 6
_Kernels = dict[str, Callable[[Any, Any], Any]]
_CHECKED: Final[_Kernels] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
_KERNELS: Final[_Kernels] = {**_CHECKED, "/": pc.divide, "div": pc.divide_checked}


def binary_arithmetic(operator: Operator, left: RowExpression, right: RowExpression, text: str) -> RowExpression:
    """`left operator right`, of the type that Spark gives it."""
    for operand in (left, right):
        if not is_number(operand.type) and operand.type != UNKNOWN:
            raise InvalidInputError(f"expected a number, found `{operand.text}` of type `{operand.type}` in `{text}`")
    left, right = _known(left, right), _known(right, left)
    if any(isinstance(e.type, DecimalType) for e in (left, right)) and not _any_floating(left, right):
        return _decimal_arithmetic(operator, left, right, text)
    common = common_number(left.type, right.type)
    if operator == "/":
        common = DOUBLE
    result = LONG if operator == "div" else common
    if operator == "div" and _any_floating(left, right):
        raise InvalidInputError(f"expected whole numbers for DIV, found others in `{text}`")
    kernel = _kernel(operator, common)
    left, right = retyped(left, common), retyped(right, common)

    def run(rows: Rows) -> pa.Array:
        values = (left.evaluate(rows), right.evaluate(rows))
        if operator in {"/", "%", "div"}:
            _check_divisor(*values, text)
        try:
            found = kernel(*values)
        except pa.ArrowException as error:
            raise _overflow(common, text) from error
        return pc.cast(found, pa.int64()) if operator == "div" else found

    return RowExpression(result, run, places_of(left, right), text)


def negated(value: RowExpression, text: str) -> RowExpression:
    """`-value`."""
    if not is_number(value.type) and value.type != UNKNOWN:
        raise InvalidInputError(f"expected a number, found `{value.text}` of type `{value.type}` in `{text}`")
    return RowExpression(value.type, lambda rows: _checked(pc.negate_checked, value, rows, text), value.places, text)


def absolute(value: RowExpression, text: str) -> RowExpression:
    """`abs(value)`."""
    if not is_number(value.type):
        raise InvalidInputError(f"expected a number, found `{value.text}` of type `{value.type}` in `{text}`")
    return RowExpression(value.type, lambda rows: _checked(pc.abs_checked, value, rows, text), value.places, text)


def rounded_number(value: RowExpression, scale: int, text: str) -> RowExpression:
    """`round(value, scale)`, half away from zero as in Spark: doubles by shortest text, decimals get the scale."""
    if value.type in WHOLE and scale >= 0:
        return value
    if value.type in FLOATING:

        def run(rows: Rows) -> pa.Array:
            return by_value(value.evaluate(rows), value.type, lambda number: _half_up(number, scale), text)

        return RowExpression(value.type, run, value.places, text)
    if not isinstance(value.type, DecimalType) or scale < 0:
        raise InvalidInputError(f"expected a decimal, float or double to round, found `{value.type}` in `{text}`")
    whole_digits = value.type.precision - value.type.scale
    kept = min(scale, value.type.scale)
    return retyped(value, _adjusted(whole_digits + kept + 1, kept))


def common_number(left: IcebergType, right: IcebergType) -> IcebergType:
    """The common type of two numbers; whole numbers and decimals become doubles next to floats."""
    if left == right:
        return left
    if left in FLOATING or right in FLOATING:
        return DOUBLE
    if left in WHOLE and right in WHOLE:
        return LONG
    first, second = as_decimal(left), as_decimal(right)
    scale = max(first.scale, second.scale)
    digits = max(first.precision - first.scale, second.precision - second.scale)
    return DecimalType(min(digits + scale, _MOST_DIGITS), max(min(scale, _MOST_DIGITS - digits), 0))


def as_decimal(type_: IcebergType, literal: Any = None) -> DecimalType:
    """The decimal type that holds a whole number; a literal needs only its own digits."""
    if isinstance(type_, DecimalType):
        return type_
    if isinstance(literal, int):
        return DecimalType(len(str(abs(literal))), 0)
    return DecimalType(10 if type_ == INT else 20, 0)


def exact_decimal(number: Decimal, text: str) -> DecimalType:
    """The decimal type with exactly the digits of a number; InvalidInputError if there is none."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int):
        raise InvalidInputError(f"expected a finite number, found {text}")
    scale = max(-exponent, 0)
    precision = max(len(digits) + max(exponent, 0), scale, 1)
    if precision > _MOST_DIGITS:
        raise InvalidInputError(f"expected a number of at most 38 digits, found {text}")
    return DecimalType(precision, scale)


def _known(value: RowExpression, other: RowExpression) -> RowExpression:
    """NULL takes the type of the other operand."""
    if value.type != UNKNOWN:
        return value
    return retyped(value, INT if other.type == UNKNOWN else other.type)


def _any_floating(*values: RowExpression) -> bool:
    return any(v.type in FLOATING for v in values)


def _kernel(operator: Operator, common: IcebergType) -> Callable[[Any, Any], Any]:
    if operator == "%":
        return _float_remainder if common in FLOATING else _remainder
    return _KERNELS[operator]


def _remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    """The remainder of whole numbers has the sign of the dividend; the lowest number by -1 leaves nothing."""
    right = pc.if_else(pc.equal(right, -1), pa.scalar(1, right.type), right)
    return pc.subtract(left, pc.multiply(pc.divide(left, right), right))


def _float_remainder(left: pa.Array, right: pa.Array) -> pa.Array:
    pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
    return pa.array([None if a is None or b is None else _fmod(a, b) for a, b in pairs], left.type)


def _fmod(left: float, right: float) -> float:
    return math.nan if math.isinf(left) else math.fmod(left, right)


def _check_divisor(left: pa.Array, right: pa.Array, text: str) -> None:
    nothing = Decimal(0) if pa.types.is_decimal(right.type) else 0
    zero = pc.and_(pc.equal(right, pa.scalar(nothing, right.type)), pc.is_valid(left))
    if pc.any(zero).as_py():
        raise _division_by_zero(text)


def _checked(kernel: Callable[[pa.Array], pa.Array], value: RowExpression, rows: Rows, text: str) -> pa.Array:
    try:
        return kernel(value.evaluate(rows))
    except pa.ArrowException as error:
        raise _overflow(value.type, text) from error


def _decimal_arithmetic(operator: Operator, left: RowExpression, right: RowExpression, text: str) -> RowExpression:
    first, second = (as_decimal(e.type, e.literal) for e in (left, right))
    result = LONG if operator == "div" else _decimal_result(operator, first, second)
    left, right = retyped(left, first), retyped(right, second)
    compute = _DECIMAL_OPERATIONS[operator]

    def run(rows: Rows) -> pa.Array:
        values = (left.evaluate(rows), right.evaluate(rows))
        if operator in _CHECKED and _natural_digits(operator, first, second) <= _MOST_DIGITS:
            return _CHECKED[operator](*values)
        if operator in {"/", "%", "div"}:
            _check_divisor(*values, text)
        found = []
        for a, b in zip(*(v.to_pylist() for v in values), strict=True):
            try:
                found.append(None if a is None or b is None else _fitting(compute(a, b), result))
            except ArithmeticError as error:
                raise _overflow(result, text) from error
        return plain_to_arrow(result, found)

    return RowExpression(result, run, places_of(left, right), text)


_DECIMAL_OPERATIONS: Final[dict[Operator, Callable[[Decimal, Decimal], Decimal]]] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": EXACT.divide,
    "%": EXACT.remainder,
    "div": EXACT.divide_int,
}


def _fitting(number: Decimal, result: IcebergType) -> Decimal | int:
    if isinstance(result, DecimalType):
        return rounded(number, result)
    if not -(2**63) <= number < 2**63:
        raise OverflowError
    return int(number)


def _natural_digits(operator: Operator, first: DecimalType, second: DecimalType) -> int:
    if operator == "*":
        return first.precision + second.precision + 1
    scale = max(first.scale, second.scale)
    return max(first.precision - first.scale, second.precision - second.scale) + scale + 1


def _decimal_result(operator: Operator, first: DecimalType, second: DecimalType) -> DecimalType:
    """Spark's rules, which give integer digits precedence, but keep at least six digits of the scale."""
    scale = max(first.scale, second.scale)
    match operator:
        case "+" | "-":
            return _adjusted(_natural_digits(operator, first, second), scale)
        case "*":
            return _adjusted(_natural_digits(operator, first, second), first.scale + second.scale)
        case "/":
            scale = max(_LEAST_SCALE, first.scale + second.precision + 1)
            return _adjusted(first.precision - first.scale + second.scale + scale, scale)
        case _:
            return _adjusted(min(first.precision - first.scale, second.precision - second.scale) + scale, scale)


def _adjusted(precision: int, scale: int) -> DecimalType:
    if precision <= _MOST_DIGITS:
        return DecimalType(max(precision, 1), scale)
    return DecimalType(_MOST_DIGITS, max(_MOST_DIGITS - (precision - scale), min(scale, _LEAST_SCALE)))


def _half_up(number: float, scale: int) -> float:
    """The number rounded by its shortest text; zero has no sign."""
    exact = Decimal(repr(number))
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or exponent >= -scale:  # NaN, infinite, or without digits to round
        return number + 0.0
    return float(exact.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _ANY_DOUBLE)) + 0.0


def _overflow(type_: IcebergType, text: str) -> InvalidInputError:
    return InvalidInputError(f"expected a result that fits `{type_}`, found an overflow in `{text}`")


def _division_by_zero(text: str) -> InvalidInputError:
    return InvalidInputError(
        f"expected a divisor other than zero, found a division by zero in `{text}`",
        hints=["nullif(x, 0) makes it null"],
    )
