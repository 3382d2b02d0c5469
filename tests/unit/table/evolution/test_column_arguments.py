"""Columns as callers describe them."""

import datetime as dt
from decimal import Decimal

import pyarrow as pa
import pytest

from bergline.errors import InvalidInputError
from bergline.format.types.types import DATE, LONG, STRING, DecimalType
from bergline.table.evolution.column_arguments import column_schema, column_type, plain_default


@pytest.mark.parametrize("given", ["long", "LONG", LONG, pa.int64()])
def test_type_is_text_a_format_type_or_an_arrow_type(given: object) -> None:
    assert column_type(given, "c") == LONG  # type: ignore[arg-type]


def test_what_is_no_type_or_schema_is_refused_with_a_hint_for_frames() -> None:
    with pytest.raises(InvalidInputError, match="expected a type like `long` for column `c`, found 7"):
        column_type(7, "c")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match=r"expected a pyarrow\.Schema, found list"):
        column_schema([])  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError) as error:
        column_schema(type("Frame", (), {"columns": ()})())
    assert "frame.to_arrow().schema" in error.value.hints[0]


def test_arrow_schema_becomes_a_format_schema_once() -> None:
    schema = column_schema(pa.schema([("id", pa.int64())]))
    assert schema.find("id").type == LONG
    assert column_schema(schema) is schema


@pytest.mark.parametrize(
    ("type_", "value", "plain"),
    [
        (DATE, dt.date(1970, 1, 3), 2),
        (DecimalType(9, 2), Decimal("1.5"), Decimal("1.50")),
        (STRING, "a", "a"),
        (LONG, None, None),
    ],
)
def test_default_is_a_plain_value_of_the_type(type_: object, value: object, plain: object) -> None:
    assert plain_default(type_, value, "c") == plain  # type: ignore[arg-type]


def test_default_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="expected a `long` value as the default of column `c`, found 'x'"):
        plain_default(LONG, "x", "c")
