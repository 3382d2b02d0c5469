"""CAST and store assignment: what fits is converted, what does not is an error that names it."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.errors import InvalidInputError
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    NestedField,
)
from bergline.table.row_expressions.casts import assigned
from bergline.table.row_expressions.rows import Rows
from support.fixtures.expression_rows import UUID_1, bound, values


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("CAST(m AS INT)", [1, None, -7]),
        ("CAST(1.7D AS INT)", [1] * 3),
        ("CAST(-1.7D AS BIGINT)", [-1] * 3),
        ("CAST(m AS DECIMAL(5, 1))", [Decimal("1.3"), None, Decimal("-7.5")]),
        ("CAST(f AS DECIMAL(5, 2))", [Decimal("0.50"), None, Decimal("3.00")]),
        ("CAST(' 12 ' AS INT)", [12] * 3),
        ("CAST('+12' AS BIGINT)", [12] * 3),
        ("CAST('1.005' AS DECIMAL(5, 2))", [Decimal("1.01")] * 3),
        ("CAST('yes' AS BOOLEAN)", [True] * 3),
        ("CAST(b AS INT)", [1, None, 0]),
        ("CAST(i AS BOOLEAN)", [True, None, True]),
        ("CAST(i AS STRING)", ["1", None, "2147483647"]),
        ("CAST(m AS STRING)", ["1.25", None, "-7.50"]),
        ("CAST(b AS STRING)", ["true", None, "false"]),
        ("CAST(day AS STRING)", ["1970-01-01", "1970-01-02", None]),
        ("CAST(u AS STRING)", [str(UUID_1), None, "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
        ("CAST(t AS DATE)", [dt.date(1970, 1, 1), dt.date(1970, 1, 2), None]),
        ("CAST(TIMESTAMP '1969-12-31 23:00' AS DATE)", [dt.date(1969, 12, 31)] * 3),
        ("CAST(day AS TIMESTAMP_NTZ)", [dt.datetime(1970, 1, 1), dt.datetime(1970, 1, 2), None]),  # noqa: DTZ001
        ("CAST(substring('2020-02-29x', 1, 10) AS DATE)", [dt.date(2020, 2, 29)] * 3),
        ("CAST(NULL AS DOUBLE)", [None] * 3),
    ],
)
def test_casts(text: str, expected: list[Any]) -> None:
    assert values(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("CAST(l * 1000000000 AS INT)", "expected values that fit `int`"),
        ("CAST(d AS INT)", "expected values that fit `int`, found nan in `d`"),
        ("CAST(9.3e18 AS BIGINT)", "expected values that fit `long`"),
        ("CAST(m AS DECIMAL(2, 2))", "expected values that fit `decimal(2, 2)`"),
        ("CAST(1e300 AS FLOAT)", "expected values that fit `float`"),
        ("CAST(s AS INT)", "expected values that fit `int`"),
        ("CAST('0x10' AS INT)", "expected values that fit `int`, found 0x10 in `'0x10'`"),
        ("CAST('+-1' AS INT)", "expected values that fit `int`, found +-1"),
        ("CAST('99999999999' AS INT)", "expected values that fit `int`"),
        ("CAST('1_0' AS DECIMAL(5, 2))", "expected values that fit `decimal(5, 2)`, found '1_0'"),
        ("CAST('٣' AS DECIMAL(5, 2))", "expected values that fit `decimal(5, 2)`"),
        ("CAST(s AS BOOLEAN)", "expected values that fit `boolean`, found 'a_b' in `s`"),
        ("CAST(s AS DATE)", "expected values that fit `date`, found 'a_b' in `s`"),
        ("CAST(d AS STRING)", "expected a cast that is supported, found `double` to `string`"),
        ("CAST(p AS STRING)", "expected a cast that is supported"),
        ("CAST(b AS DATE)", "expected a cast that is supported"),
    ],
)
def test_values_that_do_not_fit_are_errors(text: str, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        values(text)
    assert message in str(refused.value)


def stored(text: str, type_: IcebergType) -> list[Any]:
    """A literal as a column of a type stores it."""
    field = NestedField(1, "c", False, type_)
    return list(assigned(bound(text), field, "c").evaluate(Rows(1, {})).to_pylist())


@pytest.mark.parametrize(
    ("text", "type_", "expected"),
    [
        ("1", LONG, 1),
        ("1.7", INT, 1),
        ("1.5", DOUBLE, 1.5),
        ("0.3", DOUBLE, 0.3),
        ("96.85", DOUBLE, 96.85),
        ("123456789.123456789123", DOUBLE, 123456789.123456789123),
        ("-0.5", FLOAT, -0.5),
        ("1.5D", FLOAT, 1.5),
        ("2.345", DecimalType(5, 2), Decimal("2.35")),
        ("5", STRING, "5"),
        ("DATE '2020-01-01'", TIMESTAMP, dt.datetime(2020, 1, 1)),  # noqa: DTZ001
        ("TIMESTAMP '2020-01-01 10:00'", DATE, dt.date(2020, 1, 1)),
        ("'00000000-0000-0000-0000-000000000001'", UUID, UUID_1),
        ("X'0102'", FixedType(2), b"\1\2"),
        ("NULL", FixedType(2), None),
    ],
)
def test_store_assignment_converts_as_spark_does(text: str, type_: IcebergType, expected: Any) -> None:
    assert stored(text, type_) == [expected]


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("'1'", INT, "expected `int` for column `c`, found `string` of `'1'`"),
        ("'2020-01-01'", DATE, "expected `date` for column `c`, found `string`"),
        ("1", DATE, "expected `date` for column `c`, found `int`"),
        ("true", INT, "expected `int` for column `c`, found `boolean`"),
        ("1.5D", STRING, "expected `string` for column `c`, found `double`"),
        ("3000000000", INT, "expected values that fit `int`"),
        ("'x'", UUID, "expected values that fit `uuid`, found 'x'"),
        ("X'01'", FixedType(2), "expected values that fit `fixed[2]`, found 1 bytes"),
        ("1", ListType(2, INT, False), "expected `list<int>` for column `c`, found `int`"),
    ],
)
def test_store_assignment_refuses_what_does_not_fit(text: str, type_: IcebergType, message: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        stored(text, type_)
    assert message in str(refused.value)


def test_nested_values_fit_as_appended_rows_do() -> None:
    field = NestedField(1, "li", False, ListType(2, INT, False))
    rows = Rows.of({"target": pa.table({"li": pa.array([[1], None], pa.list_(pa.int64()))})})
    assert assigned(bound("li"), field, "li").evaluate(rows).to_pylist() == [[1], None]
