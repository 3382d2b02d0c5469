"""The part of a row-level command that runs on executors: new rows become files, positions of old ones become sets.

Executors have little more than pyarrow; this imports nothing that plans.
"""

import contextlib
import pickle
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.write.write_spec import WriteSpec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.errors import BerglineError, InvalidInputError, UnsupportedError
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.manifest.manifest import DataFile
from bergline.io.fileio import FileIO
from bergline.spark.writes.task import TaskAttempt, gathered, this_attempt

DELETES, ADDS = 1, 2
"""Bits of an action: the row of the table that is at `_file` and `_pos` goes, a new row is added."""


class ChangeTaskResult(msgspec.Struct, frozen=True):
    """What a task sends back: its files, the positions of rows by data file, counts; or why the rows were refused."""

    attempt: TaskAttempt
    files: list[DataFile] = []
    deleted: dict[str, PositionSet] = {}
    kept: dict[str, PositionSet] = {}
    """Positions of rows that came with an action that leaves them as they are."""
    counts: dict[int, int] = {}
    """How many rows came with each action."""
    twice: tuple[str, int] | None = None
    """The data file and position of a row that came twice."""
    refusal: BerglineError | None = None


class Positions:
    """Positions by data file, which come in parts; a position that comes twice is noticed."""

    def __init__(self) -> None:
        self._parts: dict[str, list[PositionSet]] = {}
        self.twice: tuple[str, int] | None = None

    def add(self, files: pa.Array, positions: pa.Array) -> None:
        """Rows, each by its data file and position."""
        encoded = files.dictionary_encode()
        order = pc.array_sort_indices(encoded.indices)
        paths, ordered = encoded.dictionary.to_pylist(), positions.take(order)
        start = 0
        for run in pc.value_counts(encoded.indices.take(order)).to_pylist():
            path, rows = paths[run["values"]], ordered.slice(start, run["counts"])
            found = position_set(rows)
            if len(found) < len(rows):
                counts = pc.value_counts(rows)
                self.twice = (path, counts.filter(pc.greater(counts.field(1), 1)).field(0)[0].as_py())
            self._parts.setdefault(path, []).append(found)
            start += run["counts"]

    def join(self, other: Mapping[str, PositionSet]) -> None:
        """Positions that were gathered elsewhere."""
        for path, found in other.items():
            self._parts.setdefault(path, []).append(found)

    def by_file(self) -> dict[str, PositionSet]:
        """All of them."""
        return {path: self._joined(path, parts) for path, parts in self._parts.items()}

    def _joined(self, path: str, parts: list[PositionSet]) -> PositionSet:
        if len(parts) == 1:
            return parts[0]
        joined = PositionSet.union_all(parts)
        if self.twice is None and len(joined) < sum(map(len, parts)):
            seen = PositionSet()
            for part in parts:
                if both := seen.intersection(part):
                    self.twice = (path, next(iter(both)))
                    break
                seen = seen.union(part)
        return joined


class ChangeTask:
    """Takes rows of an action, a data file, a position and the columns of a new row, which are given their `names`.

    The result is one row of bytes.
    """

    def __init__(self, io: FileIO, spec: WriteSpec, job: str, names: list[str]) -> None:
        self._io = io
        self._spec = spec
        self._job = job
        self._names = names

    def run(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write; the files of an attempt have names that no other attempt uses."""
        result = self.carry_out(batches, this_attempt())
        yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})

    def carry_out(self, batches: Iterable[pa.RecordBatch], attempt: TaskAttempt) -> ChangeTaskResult:
        """Write new rows, and gather positions of old ones; a refusal leaves no file."""
        deleted, kept, counts = Positions(), Positions(), Counter[int]()
        files: list[DataFile] = []
        refusal = None
        try:
            with contextlib.ExitStack() as stack:
                writer = stack.enter_context(self._writer(attempt)) if self._names else None
                for rows in gathered(batches, self._spec.row_group_bytes):
                    action = rows.column(0).combine_chunks()
                    counts.update({c["values"]: c["counts"] for c in pc.value_counts(action).to_pylist()})
                    has_bit = {bit: pc.not_equal(pc.bit_wise_and(action, bit), 0) for bit in (DELETES, ADDS)}
                    old = rows.select([1, 2])
                    _add(deleted, old.filter(has_bit[DELETES]))
                    _add(kept, old.filter(pc.equal(action, 0)))
                    added = rows.filter(has_bit[ADDS]).select(list(range(3, rows.num_columns)))
                    if writer is not None and added.num_rows:
                        writer.write(added.rename_columns(self._names))
                files = writer.finish() if writer is not None else []
        except (InvalidInputError, UnsupportedError) as error:
            refusal = error
        for _ in batches:  # the rest must still be consumed, or Spark sees a broken pipe
            pass
        if refusal is not None:
            return ChangeTaskResult(attempt, refusal=refusal)
        by_file = deleted.by_file(), kept.by_file()
        return ChangeTaskResult(attempt, files, *by_file, dict(counts), deleted.twice or kept.twice)

    def _writer(self, attempt: TaskAttempt) -> DataFileWriter:
        return DataFileWriter(self._io, self._spec, f"{attempt.name}-{self._job}")


def _add(positions: Positions, rows: pa.Table) -> None:
    if rows.num_rows:
        files, found = (column.combine_chunks() for column in rows.columns)
        positions.add(files, found)
