"""Literals: the defaults of columns."""

import datetime as dt
from decimal import Decimal
from typing import Any

from bergline.arguments import shown
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.format.types.types import DOUBLE, FLOAT, INT, LONG, TIMESTAMPTZ, IcebergType
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.timestamps import Moment, in_zone, parse_moment
from bergline.sql.text.tokens import TokenKind

_DEFAULTS_SINCE = 3
_SUFFIXES = {"L": int, "S": int, "Y": int, "D": float, "F": float, "BD": Decimal}


def parse_literal(cursor: Cursor) -> Any:
    """A literal: text, numbers, booleans, null, bytes, dates, and Moment for times, whose zone is not known yet."""
    negative = cursor.accept_symbol("-")
    token = cursor.token
    if token.kind is TokenKind.NUMBER:
        cursor.advance()
        number: Any = int(token.text) if token.text.isdecimal() else Decimal(token.text)
        return -number if negative else number
    if token.kind is TokenKind.WORD and token.text[0].isdigit():
        return _suffixed(cursor, negative=negative)
    if negative:
        cursor.fail("a number")
    if token.kind is TokenKind.STRING:
        return cursor.expect_text("text")
    for word, value in {"TRUE": True, "FALSE": False, "NULL": None}.items():
        if cursor.accept(word):
            return value
    if cursor.following.kind is TokenKind.STRING:
        if cursor.accept("DATE"):
            return _date(cursor.expect_text("a date in quotes"))
        if cursor.accept("TIMESTAMP") or cursor.accept("TIMESTAMP_NTZ") or cursor.accept("TIMESTAMP_LTZ"):
            return Moment(parse_moment(cursor.expect_text("a time in quotes")))
        if cursor.accept("X"):
            return _bytes(cursor.expect_text("digits in quotes"))
    raise UnsupportedError(
        f"expected a literal as the default of a column, found `{cursor.rest().text[:40]}`",
        hints=["text, a number, true, false, null, DATE '…', TIMESTAMP '…' or X'…'"],
    )


def default_value(literal: Any, type_: IcebergType, time_zone: str, *, format_version: int) -> Any:
    """A literal as the Python value that a column of this type takes; refused below format version 3."""
    if literal is not None and format_version < _DEFAULTS_SINCE:
        raise InvalidInputError(
            f"expected no default in format version {format_version}, found {shown(literal)}",
            hints=["defaults need format version 3: set the property format-version"],
            condition="UNSUPPORTED_FEATURE.TABLE_OPERATION",
        )
    match literal:
        case Moment(dt.datetime() as moment):
            return in_zone(moment, time_zone) if type_ == TIMESTAMPTZ else moment.replace(tzinfo=None)
        case int() | Decimal() if not isinstance(literal, bool) and type_ in (FLOAT, DOUBLE):
            return float(literal)
        case Decimal() if type_ in (INT, LONG):
            if literal != int(literal):
                raise InvalidInputError(f"expected a `{type_}` value as a default, found {literal}")
            return int(literal)
    return literal


def _suffixed(cursor: Cursor, *, negative: bool) -> Any:
    text = cursor.token.text.upper()
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        digits = text.removesuffix(suffix)
        if digits != text and digits.isdecimal():
            cursor.advance()
            number: Any = _SUFFIXES[suffix](digits)
            return -number if negative else number
    return cursor.fail("a number")


def _date(text: str) -> dt.date:
    try:
        return dt.date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInputError(f"expected a date like `2026-01-31`, found `{text}`") from None


def _bytes(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise InvalidInputError(f"expected pairs of digits from 0 to F, found X'{text}'") from None
