"""Arrow values as plain values."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from bergline.datafiles.file.plain_values import distinct_values, leaf_array, plain_array


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([dt.date(1969, 12, 31), None]), [-1, None]),
        (pa.array([-1, None], pa.timestamp("us")), [-1, None]),
        (pa.array([5], pa.timestamp("us", tz="UTC")), [5]),
        (pa.array([dt.time(0, 0, 1)]), [1_000_000]),
        (pa.array(["x", None]), ["x", None]),
        (pa.array([Decimal("1.5")]), [Decimal("1.5")]),
    ],
)
def test_dates_and_times_are_the_integers_they_are_stored_as(array: pa.Array, expected: list[Any]) -> None:
    assert plain_array(array).to_pylist() == expected


def test_field_of_a_null_struct_is_null() -> None:
    table = pa.table({"s": [{"t": {"a": 1}}, {"t": None}, None]})
    assert leaf_array(table, ("s", "t", "a")).to_pylist() == [1, None, None]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["b", None, "a", "b", None]),
        pa.array([True, None, False, True, None]),
        pa.array([b"b", None, b"a", b"b", None], pa.binary(1)),
        pa.array([Decimal(2), None, Decimal(1), Decimal(2), None]),
    ],
    ids=lambda a: str(a.type),
)
def test_distinct_values_and_positions_give_back_the_column(array: pa.Array) -> None:
    values, positions = distinct_values(pa.chunked_array([array[:2], array[2:]]))
    assert len(values) == 3
    assert [values[p] for p in positions.to_pylist()] == array.to_pylist()
