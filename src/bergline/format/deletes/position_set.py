"""Sets of row positions in a data file, from 0 to 2^63 - 1, as 32-bit Roaring bitmaps keyed by the upper half."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyroaring import BitMap

from bergline.errors import InvalidInputError

_LOW_BITS = 32
_LOW = 1 << _LOW_BITS


class PositionSet:
    """An immutable set; `bitmaps` holds the non-empty bitmaps in ascending order of their keys."""

    __slots__ = ("bitmaps",)

    def __init__(self, bitmaps: Mapping[int, BitMap] | None = None) -> None:
        self.bitmaps = {key: bitmap for key, bitmap in sorted((bitmaps or {}).items()) if bitmap}

    @property
    def last(self) -> int | None:
        """The highest position; None if empty."""
        return max((key << _LOW_BITS | bitmap.max() for key, bitmap in self.bitmaps.items()), default=None)

    def union(self, other: "PositionSet") -> "PositionSet":
        """The union of two sets."""
        keys, empty = self.bitmaps.keys() | other.bitmaps.keys(), BitMap()
        return PositionSet({k: self.bitmaps.get(k, empty) | other.bitmaps.get(k, empty) for k in keys})

    @staticmethod
    def union_all(sets: Sequence["PositionSet"]) -> "PositionSet":
        """The union of many sets."""
        together: dict[int, list[BitMap]] = {}
        for one in sets:
            for key, bitmap in one.bitmaps.items():
                together.setdefault(key, []).append(bitmap)
        return PositionSet({key: BitMap.union(*bitmaps) for key, bitmaps in together.items()})

    def intersection(self, other: "PositionSet") -> "PositionSet":
        """The positions that are in both sets."""
        keys = self.bitmaps.keys() & other.bitmaps.keys()
        return PositionSet({key: self.bitmaps[key] & other.bitmaps[key] for key in keys})

    def to_mask(self, rows: int, start: int = 0) -> pa.BooleanArray:
        """A mask over `rows` rows from position `start`, true for the positions in the set."""
        mask = bytearray(rows)
        for key, bitmap in self.bitmaps.items():
            base = (key << _LOW_BITS) - start
            first, end = max(-base, 0), min(rows - base, _LOW)
            if first < end:
                _mark(mask, bitmap, first, end, base)
        return pa.Array.from_buffers(pa.uint8(), rows, [None, pa.py_buffer(mask)]).cast(pa.bool_())

    def to_arrow(self) -> pa.ChunkedArray:
        """The positions in ascending order."""
        chunks = [pc.add(_low_halves(bitmap), key << _LOW_BITS) for key, bitmap in self.bitmaps.items()]
        return pa.chunked_array(chunks, pa.int64())

    def __contains__(self, position: int) -> bool:
        bitmap = self.bitmaps.get(position >> _LOW_BITS)
        return bitmap is not None and position & (_LOW - 1) in bitmap

    def __len__(self) -> int:
        return sum(map(len, self.bitmaps.values()))

    def __iter__(self) -> Iterator[int]:
        return (key << _LOW_BITS | low for key, bitmap in self.bitmaps.items() for low in bitmap)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionSet) and self.bitmaps == other.bitmaps

    def __hash__(self) -> int:
        return hash((len(self), self.last))


def position_set(positions: Iterable[int] | pa.Array | pa.ChunkedArray) -> PositionSet:
    """A set of positions given in any order, duplicates allowed."""
    array = _long_array(positions)
    if not len(array):
        return PositionSet()
    extremes = pc.min_max(array).as_py()
    if array.null_count or extremes["min"] < 0:
        raise InvalidInputError(f"expected positions from 0, found {None if array.null_count else extremes['min']}")
    if extremes["max"] < _LOW:
        return PositionSet({0: _bitmap(array)})
    ordered = array.sort()
    low = pc.bit_wise_and(ordered, _LOW - 1)
    bitmaps, start = {}, 0
    for found in pc.value_counts(pc.shift_right(ordered, _LOW_BITS)).to_pylist():
        bitmaps[found["values"]] = _bitmap(low.slice(start, found["counts"]))
        start += found["counts"]
    return PositionSet(bitmaps)


def _mark(mask: bytearray, bitmap: BitMap, first: int, end: int, base: int) -> None:
    """Mark the members from `first` to `end`; if most rows are members, mark all and clear the others."""
    span = BitMap(range(first, end))
    members, value = bitmap & span, 1
    if 2 * len(members) > end - first:
        mask[first + base : end + base] = b"\x01" * (end - first)
        members, value = span - members, 0
    for low in members:
        mask[low + base] = value


def _long_array(positions: Iterable[int] | pa.Array | pa.ChunkedArray) -> pa.Array:
    try:
        array = positions if isinstance(positions, pa.Array | pa.ChunkedArray) else pa.array(positions, pa.int64())
        longs = array.cast(pa.int64())
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise InvalidInputError(f"expected positions below 2^63, found {error}") from error
    return longs.combine_chunks() if isinstance(longs, pa.ChunkedArray) else longs


def _bitmap(low: pa.Array) -> BitMap:
    halves = low.cast(pa.uint32())
    return BitMap(memoryview(halves.buffers()[1]).cast("I")[halves.offset : halves.offset + len(halves)])


def _low_halves(bitmap: BitMap) -> pa.Array:
    halves = bitmap.to_array()
    return pa.Array.from_buffers(pa.uint32(), len(halves), [None, pa.py_buffer(halves)]).cast(pa.int64())
