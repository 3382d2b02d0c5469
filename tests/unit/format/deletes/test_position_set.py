"""Sets of row positions."""

from typing import Any

import pyarrow as pa
import pytest
from pyroaring import BitMap

from bergline.errors import InvalidInputError
from bergline.format.deletes.position_set import PositionSet, position_set

FAR = 2**33 + 5


def test_positions_come_back_in_order_and_once() -> None:
    positions = position_set([9, FAR, 0, 9])
    assert list(positions) == [0, 9, FAR]
    assert len(positions) == 3
    assert positions.to_arrow().to_pylist() == [0, 9, FAR]
    assert positions.last == FAR
    assert [p in positions for p in (0, 1, 9, 5, FAR, FAR + 1, -1)] == [True, False, True, False, True, False, False]


def test_the_empty_set_has_nothing() -> None:
    empty = position_set([])
    assert (list(empty), len(empty), empty.last, empty.to_arrow().to_pylist()) == ([], 0, None, [])
    assert empty.to_mask(3).to_pylist() == [False] * 3
    assert empty == PositionSet({7: BitMap()})


@pytest.mark.parametrize(
    "positions",
    [
        pa.array([3, 1, 2**32, 1]),
        pa.array([7, 3, 1, 2**32], pa.uint64()).slice(1),
        pa.chunked_array([[3], [], [1, 2**32]], pa.int64()),
        iter([1, 3, 2**32]),
        (p for p in (1, 3, 2**32)),
    ],
)
def test_positions_are_taken_from_arrow_and_from_any_iterable(positions: Any) -> None:
    assert list(position_set(positions)) == [1, 3, 2**32]


def test_sliced_arrow_positions_below_the_first_key_are_taken_where_the_slice_is() -> None:
    assert list(position_set(pa.array([9, 4, 6], pa.int64()).slice(1))) == [4, 6]
    assert list(position_set(pa.array([9, 4, 6], pa.int32()).slice(1))) == [4, 6]


@pytest.mark.parametrize("bad", [[-1], [2**63], ["a"], [None, 1], pa.array(["x"])])
def test_what_is_not_a_position_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidInputError, match="expected positions"):
        position_set(bad)


def test_a_union_holds_both_and_changes_neither() -> None:
    left, right = position_set([1, FAR]), position_set([2, 1, 2**32])
    assert list(left.union(right)) == [1, 2, 2**32, FAR]
    assert list(left) == [1, FAR]
    assert list(right) == [1, 2, 2**32]


@pytest.mark.parametrize(("start", "rows"), [(0, 10), (3, 4), (2**32 - 2, 6), (FAR - 1, 3), (FAR + 1, 2), (0, 0)])
def test_a_mask_is_true_for_the_positions_of_a_range(start: int, rows: int) -> None:
    members = {0, 3, 6, 9, 2**32 - 1, 2**32, 2**32 + 2, FAR}
    mask = position_set(members).to_mask(rows, start)
    assert mask.type == pa.bool_()
    assert mask.to_pylist() == [p in members for p in range(start, start + rows)]


def test_equal_sets_are_equal_however_they_were_made() -> None:
    assert position_set([1, FAR]) == position_set([1]).union(position_set([FAR]))
    assert hash(position_set(range(100))) == hash(position_set(pa.array(range(100))))
    assert position_set([1]) != position_set([2])
    assert position_set([1]) != {1}
