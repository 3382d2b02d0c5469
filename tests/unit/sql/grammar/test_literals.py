"""Literals as defaults of columns."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from bergline.errors import InvalidInputError, SqlSyntaxError, UnsupportedError
from bergline.format.types.types import DOUBLE, INT, STRING, TIMESTAMP, TIMESTAMPTZ
from bergline.sql.grammar.literals import default_value, parse_literal
from bergline.sql.text.cursor import Cursor
from bergline.sql.text.timestamps import Moment
from bergline.sql.text.tokens import SqlText

NOON = dt.datetime(2026, 1, 2, 12)  # noqa: DTZ001


def literal(text: str) -> Any:
    return parse_literal(Cursor(SqlText(text)))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-5", -5),
        ("1.50", Decimal("1.50")),
        ("7L", 7),
        ("-2BD", Decimal(-2)),
        ("3D", 3.0),
        ("'a' 'b'", "ab"),
        ("true", True),
        ("NULL", None),
        ("X'00ff'", b"\x00\xff"),
        ("DATE '2026-01-02'", dt.date(2026, 1, 2)),
        ("TIMESTAMP_NTZ '2026-01-02 12:00:00'", Moment(NOON)),
    ],
)
def test_literal_is_a_python_value(text: str, value: object) -> None:
    found = literal(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("now()", UnsupportedError),
        ("-'a'", SqlSyntaxError),
        ("5X", SqlSyntaxError),
        ("DATE 'soon'", InvalidInputError),
        ("X'0'", InvalidInputError),
    ],
)
def test_what_is_no_literal_is_refused(text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        literal(text)


def test_default_fits_the_type_of_its_column() -> None:
    def value(literal: object, type_: object, version: int = 3) -> object:
        return default_value(literal, type_, "Europe/Berlin", format_version=version)  # type: ignore[arg-type]

    assert value(Moment(NOON), TIMESTAMPTZ) == dt.datetime(2026, 1, 2, 11, tzinfo=dt.UTC)
    assert value(Moment(NOON), TIMESTAMP) == NOON
    assert value(1, DOUBLE) == 1.0
    assert value(Decimal(2), INT) == 2
    assert value("x", STRING) == "x"
    assert value(None, STRING, 1) is None
    with pytest.raises(InvalidInputError, match=r"expected a `int` value as a default, found 1\.5"):
        value(Decimal("1.5"), INT)
    with pytest.raises(InvalidInputError, match="expected no default in format version 2"):
        value(1, INT, 2)
