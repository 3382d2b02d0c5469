"""Partition values as people read them."""

import uuid
from decimal import Decimal
from typing import Any

import pytest

from bergline.format.partition.paths import escape, render_partition_value
from bergline.format.partition.transforms import IDENTITY, Bucket, TimeTransform, Transform
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


@pytest.mark.parametrize(
    ("type_", "transform", "value", "expected"),
    [
        (STRING, IDENTITY, None, "null"),
        (STRING, IDENTITY, "a b", "a b"),
        (LONG, IDENTITY, -7, "-7"),
        (INT, Bucket(16), 3, "3"),
        (BOOLEAN, IDENTITY, True, "true"),
        (DecimalType(9, 2), IDENTITY, Decimal("1.50"), "1.50"),
        (DecimalType(9, 9), IDENTITY, Decimal("0.000000001"), "1E-9"),
        (BINARY, IDENTITY, b"\x00\xff", "AP8="),
        (FixedType(3), IDENTITY, b"abc", "YWJj"),
        (UUID, IDENTITY, uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (FLOAT, IDENTITY, 0.10000000149011612, "0.1"),
        (FLOAT, IDENTITY, 3.4028234663852886e38, "3.4028235E38"),
        (FLOAT, IDENTITY, -3.4028234663852886e38, "-3.4028235E38"),
        (DOUBLE, IDENTITY, 1e7, "1.0E7"),
        (DOUBLE, IDENTITY, -9999999.0, "-9999999.0"),
        (DOUBLE, IDENTITY, 0.001, "0.001"),
        (DOUBLE, IDENTITY, 0.00012, "1.2E-4"),
        (DOUBLE, IDENTITY, 123.456, "123.456"),
        (DOUBLE, IDENTITY, 5e-324, "4.9E-324"),
        (DOUBLE, IDENTITY, -0.0, "-0.0"),
        (DOUBLE, IDENTITY, float("nan"), "NaN"),
        (FLOAT, IDENTITY, float("-inf"), "-Infinity"),
        (DATE, IDENTITY, 17486, "2017-11-16"),
        (DATE, IDENTITY, 2932897, "10000-01-01"),
        (DATE, IDENTITY, -719529, "-001-12-31"),
        (TIME, IDENTITY, 0, "00:00"),
        (TIME, IDENTITY, 81_068_000_000, "22:31:08"),
        (TIME, IDENTITY, 81_068_500_000, "22:31:08.500"),
        (TIME, IDENTITY, 81_068_500_001, "22:31:08.500001"),
        (TIMESTAMP, IDENTITY, 0, "1970-01-01T00:00:00"),
        (TIMESTAMPTZ, IDENTITY, 1, "1970-01-01T00:00:00.000001+00:00"),
        (TIMESTAMP_NS, IDENTITY, -1, "1969-12-31T23:59:59.999999999"),
        (TIMESTAMPTZ_NS, IDENTITY, 100, "1970-01-01T00:00:00.0000001+00:00"),
        (INT, TimeTransform("year"), 47, "2017"),
        (INT, TimeTransform("year"), -1900, "0070"),
        (INT, TimeTransform("month"), 574, "2017-11"),
        (INT, TimeTransform("month"), -1, "1969-12"),
        (DATE, TimeTransform("day"), 17486, "2017-11-16"),
        (INT, TimeTransform("hour"), 419686, "2017-11-16-22"),
        (INT, TimeTransform("hour"), -1, "1969-12-31-23"),
    ],
    ids=str,
)
def test_value_reads_as_in_java(type_: IcebergType, transform: Transform, value: Any, expected: str) -> None:
    assert render_partition_value(transform, type_, value) == expected


def test_paths_are_escaped_as_in_java() -> None:
    assert escape("a/b=c d*~-_.+%") == "a%2Fb%3Dc+d*%7E-_.%2B%25"
    assert escape("zürich") == "z%C3%BCrich"
    assert escape("\ud800") == "%3F"
