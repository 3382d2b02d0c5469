"""SQL literals as Python values; NULL is None."""

import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any

from sqlglot import exp

from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.times import TIME_HINT, parse_day, parse_instant, parse_time_of_day

_WHOLE_NUMBER = re.compile(r"[0-9]{1,60}")
_INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL = [10, 0]  # Spark's meaning of DECIMAL without parameters
_SPECIAL_FLOATS = {
    "nan": float("nan"),
    **dict.fromkeys(("inf", "+inf", "infinity", "+infinity"), float("inf")),
    **dict.fromkeys(("-inf", "-infinity"), float("-inf")),
}


def is_literal(tree: Any) -> bool:
    """Whether an expression has the form of a literal; its value may still be unsupported."""
    return isinstance(
        tree, exp.Literal | exp.Boolean | exp.Null | exp.Neg | exp.Cast | exp.HexString | exp.RawString | exp.Concat
    )


def parse_literal(tree: Any, text: str) -> Any:
    """The literal's value; UnsupportedError if it is not a literal, InvalidInputError if the value is invalid."""
    match tree:
        case exp.Literal():
            return str(tree.this) if tree.is_string else _number(str(tree.this), text)
        case exp.RawString():
            return str(tree.this)
        case exp.Boolean():
            return bool(tree.this)
        case exp.Null():
            return None
        case exp.HexString():
            return _bytes(str(tree.this), text)
        case exp.Paren():
            return parse_literal(tree.this, text)
        case exp.Neg() if isinstance(tree.this, exp.Literal | exp.Cast | exp.Neg | exp.Paren):
            value = parse_literal(tree.this, text)
            if isinstance(value, int | Decimal | float) and not isinstance(value, bool):
                return value.copy_negate() if isinstance(value, Decimal) else -value
        case exp.Cast() if isinstance(tree.this, exp.Literal):
            return _typed(tree, str(tree.this.this), text)
    hints = ["for a quote inside text write \\', as in 'it\\'s'"] if isinstance(tree, exp.Concat) else []
    raise UnsupportedError(f"expected a literal, found `{render_sql(tree)}` in the filter `{text}`", hints=hints)


def render_sql(tree: Any) -> str:
    """An expression as SQL text, for messages."""
    return str(tree.sql(dialect="spark")) if isinstance(tree, exp.Expression) else str(tree)


def _typed(tree: exp.Cast, value: str, text: str) -> Any:
    """`DATE '…'`, `TIMESTAMP '…'`, `CAST('NaN' AS DOUBLE)`, and numbers with a suffix such as `5L`."""
    try:
        if (found := _typed_text(tree, value) if tree.this.is_string else _typed_number(tree, value)) is not None:
            return found
    except (ValueError, OverflowError, InvalidOperation) as error:
        kind = render_sql(tree.to).lower()
        raise InvalidInputError(
            f"expected a {kind}, found `{value}` in the filter `{text}`",
            hints=[TIME_HINT] if kind.startswith(("date", "time")) else [],
        ) from error
    raise UnsupportedError(f"expected a literal, found `{render_sql(tree)}` in the filter `{text}`")


def _typed_text(tree: exp.Cast, value: str) -> Any:
    if tree.is_type("date"):
        return parse_day(value)
    if tree.is_type("time"):
        return parse_time_of_day(value)
    if tree.is_type("timestamp", "timestamptz", "timestampntz"):
        return parse_instant(value)
    special = _SPECIAL_FLOATS.get(value.strip().lower())
    if special is not None and tree.is_type("float", "double"):
        return special
    return _decimal(tree, value) if tree.is_type("decimal") else None


def _typed_number(tree: exp.Cast, value: str) -> Any:
    for name, bits in _INTEGERS.items():
        if tree.is_type(name):
            return _within(int(value), bits)
    if tree.is_type("double"):
        return _finite(float(value))
    if tree.is_type("float"):
        return _finite(struct.unpack("<f", struct.pack("<f", float(value)))[0])
    return _decimal(tree, value) if tree.is_type("decimal") else None


def _within(number: int, bits: int) -> int:
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise OverflowError
    return number


def _finite(number: float) -> float:
    if math.isinf(number):
        raise OverflowError
    return number


def _decimal(tree: exp.Cast, value: str) -> Decimal | None:
    """The number if the type holds it exactly; nothing is rounded."""
    precision, scale = ([int(p.name) for p in tree.to.expressions] + _DECIMAL[len(tree.to.expressions) :])[:2]
    number = Decimal(value)
    exponent = number.as_tuple().exponent
    fits = isinstance(exponent, int) and exponent >= -scale and number.adjusted() < precision - scale
    return number if fits else None


def _number(value: str, text: str) -> int | Decimal:
    try:
        return int(value) if _WHOLE_NUMBER.fullmatch(value) else Decimal(value)
    except InvalidOperation as error:
        raise InvalidInputError(f"expected a number, found `{value}` in the filter `{text}`") from error


def _bytes(digits: str, text: str) -> bytes:
    try:
        return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0"))
    except ValueError as error:
        raise InvalidInputError(f"expected hexadecimal digits, found `{digits}` in the filter `{text}`") from error
