"""Where the rows of a change frame are: Spark makes a bitmap of each stretch of a data file, and no row leaves it.

The driver gets the bitmaps as they are; if there may be very many, tasks make small sets of them first.
"""

import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the name that Spark users know)

from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.spark.backends.choose import backend_of
from bergline.spark.runtime.arrow_tasks import map_in_arrow

STRETCH: Final = 1 << 15
"""How many rows of a data file one of Spark's bitmaps tells of, in 4 KiB."""
MOST_BITMAPS: Final = 1 << 14
"""So many, 64 MiB, come to the driver as they are."""
_PLACES: Final = ("action", "file", "pos")


class FoundRows(msgspec.Struct, frozen=True):
    """The positions of rows by action and data file, and how many rows came with each action."""

    positions: Mapping[int, Mapping[str, PositionSet]]
    counts: Mapping[int, int]

    def of(self, bits: int) -> dict[str, PositionSet]:
        """The positions of the rows whose action has one of these bits."""
        return _together(by_file for action, by_file in self.positions.items() if action & bits)

    @property
    def has_twice(self) -> bool:
        """Whether a row came more than once."""
        seen = _together(self.positions.values()).values()
        return sum(map(len, seen)) < sum(self.counts[action] for action in self.positions)


def most_bitmaps(files: int, rows: int) -> int:
    """How many bitmaps hold the positions of all rows of some data files, at most."""
    return files + rows // STRETCH


def find_positions(changes: DataFrame, bitmaps: int) -> FoundRows:
    """Where the rows of a frame of actions, data files and positions are, in at most so many bitmaps."""
    backend = backend_of(changes)
    rows = backend.select_texts(
        backend.with_names(changes, _PLACES),
        ["action", "file", f"pos DIV {STRETCH} AS stretch", f"pos % {STRETCH} AS bit"],
    )
    found = rows.groupBy("action", "file", "stretch").agg(F.bitmap_construct_agg("bit"), F.count("*"))
    if bitmaps <= MOST_BITMAPS:
        return _found(found.collect())
    packed = map_in_arrow(found, _pack, "packed binary").collect()
    return _joined([pickle.loads(row.packed) for row in packed])  # noqa: S301  (our own tasks wrote it)


def find_twice(changes: DataFrame) -> tuple[str, int]:
    """The data file and position of a row that comes more than once."""
    rows = backend_of(changes).with_names(changes, _PLACES).groupBy(*_PLACES[1:])
    most = rows.count().orderBy(F.desc("count")).first()
    assert most is not None  # noqa: S101
    return most.file, most.pos


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    found = [_found(zip(*(column.to_pylist() for column in batch.columns), strict=True)) for batch in batches]
    yield pa.RecordBatch.from_pydict({"packed": pa.array([pickle.dumps(_joined(found))], pa.binary())})


def _found(rows: Iterable[Sequence[Any]]) -> FoundRows:
    counts, parts = Counter[int](), dict[int, dict[str, list[pa.Array]]]()
    for action, file, stretch, bits, number in rows:
        counts[action] += number
        if file is None:
            continue
        marked = pa.Array.from_buffers(pa.bool_(), STRETCH, [None, pa.py_buffer(bits)])
        positions = pc.add(pc.indices_nonzero(marked), pa.scalar(stretch * STRETCH, pa.uint64()))
        parts.setdefault(action, {}).setdefault(file, []).append(positions)
    positions = {
        action: {file: position_set(pa.chunked_array(arrays)) for file, arrays in by_file.items()}
        for action, by_file in parts.items()
    }
    return FoundRows(positions, counts)


def _joined(parts: Sequence[FoundRows]) -> FoundRows:
    counts = sum((Counter(part.counts) for part in parts), Counter[int]())
    actions = {action for part in parts for action in part.positions}
    return FoundRows({a: _together(part.positions.get(a, {}) for part in parts) for a in actions}, counts)


def _together(parts: Iterable[Mapping[str, PositionSet]]) -> dict[str, PositionSet]:
    sets: dict[str, list[PositionSet]] = {}
    for part in parts:
        for file, positions in part.items():
            sets.setdefault(file, []).append(positions)
    return {file: each[0] if len(each) == 1 else PositionSet.union_all(each) for file, each in sets.items()}
