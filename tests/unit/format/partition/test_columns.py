"""Partition values from the columns of manifests."""

import uuid
from decimal import Decimal
from typing import Any

import polars as pl
import pytest

from bergline.errors import FormatError
from bergline.format.partition.columns import partition_values
from bergline.format.types.types import (
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    UNKNOWN,
    UUID,
    DecimalType,
    FixedType,
    IcebergType,
)

NUMBER = uuid.UUID(int=77)


def frame(*values: Any, dtype: Any) -> pl.DataFrame:
    return pl.DataFrame({"1000": pl.Series(values, dtype=dtype)})


@pytest.mark.parametrize(
    ("type_", "dtype", "stored", "expected"),
    [
        (BOOLEAN, pl.Boolean, False, False),
        (INT, pl.Int32, -7, -7),
        (LONG, pl.Int32, 7, 7),
        (DATE, pl.Int32, 7, 7),
        (TIMESTAMP_NS, pl.Int64, 2**62, 2**62),
        (FLOAT, pl.Float32, 1.5, 1.5),
        (DOUBLE, pl.Float32, 1.5, 1.5),
        (STRING, pl.String, "a", "a"),
        (BINARY, pl.Binary, b"", b""),
        (FixedType(3), pl.Binary, b"abc", b"abc"),
        (UUID, pl.Binary, NUMBER.bytes, NUMBER),
        (UUID, pl.String, str(NUMBER), NUMBER),
        (DecimalType(38, 2), pl.Binary, b"\xfe", Decimal("-0.02")),
        (UNKNOWN, pl.Int64, 5, 5),
    ],
    ids=str,
)
def test_values_are_plain(type_: IcebergType, dtype: Any, stored: Any, expected: Any) -> None:
    assert partition_values(frame(stored, None, dtype=dtype), 1000, type_) == [expected, None]


@pytest.mark.parametrize(
    ("type_", "dtype", "stored"),
    [
        (BOOLEAN, pl.Int32, 1),
        (INT, pl.String, "7"),
        (LONG, pl.Float64, 7.0),
        (DOUBLE, pl.Int64, 7),
        (STRING, pl.Binary, b"a"),
        (BINARY, pl.String, "a"),
        (FixedType(3), pl.Binary, b"four"),
        (UUID, pl.Binary, b"short"),
        (UUID, pl.String, "no uuid"),
        (DecimalType(9, 2), pl.Binary, b"\x01" * 17),
        (DecimalType(9, 2), pl.Binary, b""),
        (DATE, pl.Struct({"x": pl.Int32}), {"x": 1}),
    ],
    ids=str,
)
def test_values_of_another_type_are_refused(type_: IcebergType, dtype: Any, stored: Any) -> None:
    with pytest.raises(FormatError, match=r"expected `.*` in partition field 1000, found other values"):
        partition_values(frame(None, stored, dtype=dtype), 1000, type_)


@pytest.mark.parametrize(("type_", "units"), [(TIMESTAMP, 86_400_000_000), (TIMESTAMP_NS, 86_400_000_000_000)], ids=str)
def test_days_of_a_column_that_holds_timestamps_now_are_those(type_: IcebergType, units: int) -> None:
    assert partition_values(frame(3, None, dtype=pl.Int32), 1000, type_) == [3 * units, None]
    assert partition_values(frame(3, None, dtype=pl.Int64), 1000, type_) == [3, None]


def test_field_that_a_manifest_does_not_know_is_null() -> None:
    assert partition_values(frame(1, 2, dtype=pl.Int32), 1001, INT) == [None, None]
