"""Decoded arrays in the types that files declare."""

from decimal import Decimal

import pyarrow as pa
import pytest

from bergline.datafiles.formats.physical_arrays import to_physical
from bergline.errors import FormatError


@pytest.mark.parametrize("length", [1, 2, 5, 16, None])
def test_decimals_of_any_length_keep_their_sign(length: int | None) -> None:
    numbers = [0, 1, -1, 127, -128]
    size = [(n.bit_length() // 8 + 1) if length is None else length for n in numbers]
    stored = [n.to_bytes(s, "big", signed=True) for n, s in zip(numbers, size, strict=True)]
    found = to_physical(pa.array([None, *stored, None]).slice(0, 6), pa.decimal128(5, 2))
    assert found.to_pylist() == [None, *(Decimal(n) / 100 for n in numbers)]


def test_decimals_out_of_range_are_refused() -> None:
    with pytest.raises(FormatError, match="decimals of 1 to 16 bytes"):
        to_physical(pa.array([bytes(17)]), pa.decimal128(38, 0))
    with pytest.raises(pa.ArrowInvalid):
        to_physical(pa.array([b"\x7f"]), pa.decimal128(2, 0))


def test_nested_arrays_are_rebuilt_where_they_were_cut() -> None:
    pairs = pa.large_list(pa.struct([("key", pa.int64()), ("value", pa.large_string())]))
    array = pa.array(
        [[{"key": 0, "value": "cut"}], [{"key": 1, "value": "a"}], None, [], [{"key": 2, "value": None}]], pairs
    )
    found = to_physical(array.slice(1), pa.map_(pa.int32(), pa.string()))
    assert found.to_pylist() == [[(1, "a")], None, [], [(2, None)]]
    struct = pa.struct([("a", pa.date32()), ("gone", pa.string())])
    rows = pa.array([[{"a": 1}], None, [None, {"a": None}]], pa.list_(pa.struct([("a", pa.int64())])))
    assert to_physical(rows.slice(1), pa.list_(struct)).to_pylist() == [None, [None, {"a": None, "gone": None}]]


def test_wrong_numbers_and_lengths_are_refused() -> None:
    with pytest.raises(pa.ArrowInvalid):
        to_physical(pa.array([2**31]), pa.int32())
    with pytest.raises(pa.ArrowInvalid):
        to_physical(pa.array([b"ab"]), pa.binary(3))
