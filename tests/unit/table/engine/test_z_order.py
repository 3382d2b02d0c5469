"""Z-order values: the bytes that Iceberg's Spark runtime computes."""

import datetime as dt
import itertools
import math
import random
import struct
import uuid
from typing import Any

import pyarrow as pa
import pytest

from bergline.errors import UnsupportedError
from bergline.format.types.types import DATE, TIME, DecimalType, FixedType, StructType
from bergline.table.engine.z_order import ZOrder, check_z_type, z_values


def value_of(value: Any, type_: pa.DataType, **options: Any) -> bytes:
    """The z-order value of one row and column, which is the column's ordered bytes."""
    return z_values([pa.array([value], type_)], ZOrder(("c",), **options)).to_pylist()[0]


def interleaved(*columns: bytes) -> bytes:
    """Bit by bit, as it is defined."""
    bits = [[byte >> (7 - i) & 1 for byte in column for i in range(8)] for column in columns]
    turns = [bit for turn in itertools.zip_longest(*bits) for bit in turn if bit is not None]
    return bytes(sum(bit << (7 - i) for i, bit in enumerate(turns[at : at + 8])) for at in range(0, len(turns), 8))


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (0, pa.int32(), "8000000000000000"),
        (-1, pa.int64(), "7fffffffffffffff"),
        (5, pa.int8(), "8000000000000005"),
        (1.5, pa.float64(), "bff8000000000000"),
        (-1.5, pa.float32(), "4007ffffffffffff"),
        (math.nan, pa.float64(), "fff8000000000000"),
        (True, pa.bool_(), "8100000000000000"),
        (False, pa.bool_(), "0000000000000000"),
        (dt.date(1970, 1, 3), pa.date32(), "8000000000000002"),
        (
            dt.datetime(1970, 1, 1, 0, 0, 7, 5),  # noqa: DTZ001
            pa.timestamp("us"),
            "80000000006acfc5",
        ),
        (dt.datetime(1970, 1, 1, 0, 0, 7, 5, dt.UTC), pa.timestamp("us", "UTC"), "8000000000000007"),
        (dt.datetime(1969, 12, 31, 23, 59, 59, 5, dt.UTC), pa.timestamp("us", "UTC"), "7fffffffffffffff"),
        ("abc", pa.string(), "6162630000000000"),
        ("abcdefghij", pa.large_string(), "6162636465666768"),
        ("abcdefgé", pa.string(), "6162636465666700"),  # é has two bytes, and only one is left
        (b"\xff" * 9, pa.binary(), "ffffffffffffffff"),
        (b"\x01\x02", pa.binary(2), "0102000000000000"),
        (None, pa.int64(), "0000000000000000"),
        (None, pa.float64(), "0000000000000000"),
        (None, pa.string(), "0000000000000000"),
        (None, pa.bool_(), "0000000000000000"),
    ],
)
def test_one_column_gives_its_ordered_bytes(value: Any, type_: pa.DataType, expected: str) -> None:
    assert value_of(value, type_).hex() == expected


def test_uuids_are_taken_as_text() -> None:
    value = uuid.UUID("f79c3e09-677c-4bbd-a479-3f349cb785e7")
    column = pa.array([value.bytes, None], pa.uuid())
    assert z_values([column], ZOrder(("c",))).to_pylist() == [b"f79c3e09", bytes(8)]


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        # the vectors of Iceberg's own tests for interleaving
        (["01010101", "10101010"], "0110011001100110"),
        (["0101", "1010"], "01100110"),
        (["01", "10", "11"], "011101"),
    ],
)
def test_bits_are_taken_in_turn(columns: list[str], expected: str) -> None:
    padded = [int(c.ljust(8, "0"), 2).to_bytes(1, "big") for c in columns]
    arrays = [pa.array([c], pa.binary()) for c in padded]
    found = z_values(arrays, ZOrder(tuple("abc"[: len(arrays)]), text_bytes=1)).to_pylist()[0]
    assert "".join(f"{byte:08b}" for byte in found).startswith(expected)


def test_columns_of_several_lengths_and_many_rows_are_interleaved() -> None:
    chooser = random.Random(7)  # noqa: S311
    numbers = [chooser.choice([None, chooser.randrange(-(2**63), 2**63)]) for _ in range(50)]
    texts = ["".join(chooser.choices("abcé", k=chooser.randrange(12))) for _ in range(50)]
    arrays = [pa.array(numbers, pa.int64()), pa.array(texts), pa.array(numbers[::-1], pa.int64()).slice(0)]
    found = z_values(arrays, ZOrder(("a", "b", "c"), text_bytes=5)).to_pylist()

    def ordered(number: int | None) -> bytes:
        return bytes(8) if number is None else (number + 2**63).to_bytes(8, "big")

    for row, value in enumerate(found):
        text = value_of(texts[row], pa.string(), text_bytes=5)
        assert value == interleaved(ordered(numbers[row]), text, ordered(numbers[::-1][row]))


def test_result_is_cut_to_the_most_bytes() -> None:
    arrays = [pa.array([3], pa.int64()), pa.array([-3], pa.int64())]
    whole = z_values(arrays, ZOrder(("a", "b"))).to_pylist()[0]
    assert len(whole) == 16
    assert z_values(arrays, ZOrder(("a", "b"), most_bytes=3)).to_pylist() == [whole[:3]]


def test_values_sort_like_the_numbers_of_one_column() -> None:
    values = sorted(struct.unpack("<d", random.Random(i).randbytes(8))[0] for i in range(200))  # noqa: S311
    found = [value_of(v, pa.float64()) for v in values if not math.isnan(v)]
    assert found == sorted(found)


@pytest.mark.parametrize("type_", [DecimalType(9, 2), TIME, StructType(())])
def test_other_types_are_refused(type_: Any) -> None:
    with pytest.raises(UnsupportedError, match=r"cannot use column `c` of type .* in zorder"):
        check_z_type(type_, "c")
    check_z_type(DATE, "c")
    check_z_type(FixedType(3), "c")
