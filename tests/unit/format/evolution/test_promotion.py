"""Promotion of types and of the values in them."""

from typing import Any

import pytest

from bergline.format.evolution.promotion import can_widen, widen_default, widen_value
from bergline.format.types.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NS,
    TIMESTAMPTZ,
    UNKNOWN,
    VARIANT,
    DecimalType,
    IcebergType,
    ListType,
)


@pytest.mark.parametrize(
    ("old", "new", "versions"),
    [
        (INT, INT, {1, 2, 3}),
        (INT, LONG, {1, 2, 3}),
        (FLOAT, DOUBLE, {1, 2, 3}),
        (DecimalType(9, 2), DecimalType(18, 2), {1, 2, 3}),
        (DecimalType(9, 2), DecimalType(18, 3), set()),
        (DecimalType(9, 2), DecimalType(8, 2), set()),
        (LONG, INT, set()),
        (INT, DOUBLE, set()),
        (DATE, TIMESTAMP, {3}),
        (DATE, TIMESTAMP_NS, {3}),
        (DATE, TIMESTAMPTZ, set()),
        (UNKNOWN, STRING, {3}),
        (UNKNOWN, VARIANT, {3}),
        (UNKNOWN, ListType(1, INT, False), set()),
        (STRING, UNKNOWN, set()),
    ],
    ids=str,
)
def test_format_version_says_what_a_type_may_become(old: IcebergType, new: IcebergType, versions: set[int]) -> None:
    assert {v for v in (1, 2, 3) if can_widen(old, new, v)} == versions


@pytest.mark.parametrize(
    ("old", "new", "value", "expected"),
    [
        (INT, LONG, -5, -5),
        (DATE, TIMESTAMP, -1, -86_400_000_000),
        (DATE, TIMESTAMP_NS, 1, 86_400_000_000_000),
        (DATE, TIMESTAMP, None, None),
        (DATE, DATE, 1, 1),
    ],
)
def test_value_means_the_same_after_promotion(old: IcebergType, new: IcebergType, value: Any, expected: Any) -> None:
    assert widen_value(old, new, value) == expected


def test_default_means_the_same_after_promotion() -> None:
    assert widen_default(DATE, TIMESTAMP_NS, "1969-12-31") == "1969-12-31T00:00:00"
    assert widen_default(FLOAT, DOUBLE, 0.1) == 0.10000000149011612
    assert widen_default(UNKNOWN, INT, None) is None
