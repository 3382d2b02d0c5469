"""Rows compared with keys."""

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.parquet.delete.deletes import KeySet

NUMBERS = pa.array([1, 2, None, 4, 5, 6], pa.int64())
DOUBLES = pa.array([1.0, math.nan, None, 0.0, -0.0, 6.0])


def equal(rows: list[pa.Array], keys: list[pa.Array]) -> list[int]:
    return [n for n, found in enumerate(KeySet(keys).matches(rows).to_pylist()) if found]


@pytest.mark.parametrize(
    ("rows", "keys", "expected"),
    [
        ([NUMBERS], [[2, None]], [1, 2]),
        ([NUMBERS], [[]], []),
        ([DOUBLES], [[math.nan]], [1]),
        ([DOUBLES], [[0.0]], [3]),
        ([DOUBLES], [[-0.0]], [4]),
        ([DOUBLES], [[None]], [2]),
        ([NUMBERS, DOUBLES], [[1, 6], [1.0, 1.0]], [0]),
        ([NUMBERS, DOUBLES], [[None, 2], [None, math.nan]], [1, 2]),
        ([NUMBERS, DOUBLES, NUMBERS], [[4, 5], [0.0, 0.0], [4, 5]], [3]),
        ([NUMBERS, DOUBLES, NUMBERS], [[], [], []], []),
    ],
)
def test_rows_equal_to_a_key_are_found(rows: list[pa.Array], keys: list[list[Any]], expected: list[int]) -> None:
    assert equal(rows, [pa.array(k, r.type) for k, r in zip(keys, rows, strict=True)]) == expected


def test_every_nan_is_the_same() -> None:
    payload = pa.array([0x7FF8000000000001, -0x8000000000000 + 5], pa.int64()).view(pa.float64())
    assert equal([payload], [pa.array([math.nan])]) == [0, 1]


@pytest.mark.parametrize(
    "rows",
    [
        pa.array(["a", None, "b", ""]),
        pa.array([b"a", None, b"b", b""]),
        pa.array([b"aa", None, b"bb", b"cc"], pa.binary(2)),
        pa.array([b"a" * 16, None, b"b" * 16, b"c" * 16], pa.uuid()),
        pa.array([True, None, False, False]),
        pa.array([Decimal("1.50"), None, Decimal("2.50"), Decimal("3.50")]),
        pa.array([1, None, 2, 3], pa.timestamp("us", "UTC")),
        pa.array([1.5, None, 2.5, -0.0], pa.float32()),
        pa.array([1, None, 2, 3], pa.date32()),
        pa.array([1, None, 2, 3], pa.time64("us")),
    ],
    ids=lambda a: str(a.type),
)
def test_keys_of_every_type_are_compared(rows: pa.Array) -> None:
    assert equal([rows], [rows.slice(0, 2)]) == [0, 1]
    assert equal([pa.chunked_array([rows, rows])], [rows.slice(1, 1)]) == [1, 5]
