"""Checks what many writers did to the rows of one table against the serial order of its commits.

The order in which snapshots became current is the serial order. With serializable isolation every snapshot has the rows
that its operation makes of those of its parent. With snapshot isolation the operation may have seen an older snapshot,
from when it began on, but the rows that it updates must be there still.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Literal

import msgspec

from bergline import Table
from bergline.catalog.catalog import LoadedTable
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from support.models.table_invariants import pointer_line
from support.processes.row_operations import OPERATION, RowOperation, State, apply_operation, observed
from support.processes.writer_jobs import Journal, Note


class RowHistory:
    """The snapshots of `main` in their order, with the operation of each, and when each operation began and ended."""

    def __init__(self, table: Table, journal: Journal) -> None:
        self._table = table
        line = list(self._line(pointer_line(table)))
        self.snapshots = [snapshot for snapshot, _ in line]
        self._versions = [version for _, version in line]
        self._places = {snapshot.snapshot_id: place for place, snapshot in enumerate(self.snapshots)}
        notes = [note for note in journal.notes if note.step["kind"] == "rows"]
        self._began = {_operation(n).number: n for n in notes if n.what == "begin"}
        self._ended = {_operation(n).number: n for n in notes if n.what != "begin"}
        self._numbers = [int(snapshot.summary[OPERATION]) for snapshot in self.snapshots[1:]]

    def check(self, isolation: Literal["serializable", "snapshot"], *, first: State) -> list[State]:
        """Check it all; the rows of every snapshot. `first` are those of the first one."""
        self._check_each_once()
        states = [first]
        for place in range(1, len(self.snapshots)):
            operation = self._operation_at(place)
            if isolation == "serializable":
                states.append(apply_operation(operation, states[-1]))
            else:
                states.append(self._after_snapshot_isolation(place, operation, states))
        self._check_states(states)
        places = {number: place for place, number in enumerate(self._numbers, 1)}
        for number in self._began:
            self._check_real_time(number, places.get(number), states)
        return states

    def _line(self, versions: list[TableMetadata]) -> Iterator[tuple[Snapshot, TableMetadata]]:
        """Every snapshot that `main` has had, oldest first; each has the one before as its parent.

        Commits that waited together are one version with a snapshot of each.
        """
        before: int | None = None
        for version in versions:
            new = list(takewhile(lambda s, until=before: s.snapshot_id != until, _main(version)))
            if new:
                assert new[-1].parent_snapshot_id == before, "main moved to what does not descend from where it was"
                before = new[0].snapshot_id
                yield from ((snapshot, version) for snapshot in reversed(new))

    def _check_each_once(self) -> None:
        """No operation is there twice; what is there was begun, and did not say that it lost.

        Only compaction may commit what it has finished, and go on with the rest, or lose.
        """
        assert set(self._numbers) <= self._began.keys()
        once = [number for number in self._numbers if _operation(self._began[number]).kind != "compact"]
        assert [number for number, times in Counter(once).items() if times > 1] == []
        lost = {number for number, note in self._ended.items() if note.what != "done"}
        assert not lost & set(once)

    def _operation_at(self, place: int) -> RowOperation:
        return _operation(self._began[self._numbers[place - 1]])

    def _check_states(self, states: list[State]) -> None:
        """The table has the rows that the order gives, in every snapshot that it still has."""
        for snapshot in self._table.metadata.snapshots:
            place = self._places[snapshot.snapshot_id]
            found = observed(self._table, snapshot.snapshot_id)
            assert found == states[place], self._difference(place, found, states[place])

    def _after_snapshot_isolation(self, place: int, operation: RowOperation, states: list[State]) -> State:
        """What the snapshot has, if the operation can have made it of a state that it may have seen."""
        found, parent = self._read(place), states[place - 1]
        removed, added = parent - found, found - parent
        for seen in states[self._place(self._began[operation.number].head) : place]:
            after = apply_operation(operation, seen)
            gone = seen - after
            if operation.kind == "delete":
                gone &= parent  # what another deletes meanwhile is deleted twice
            if gone == removed and after - seen == added:
                return found
        message = f"{operation} cannot have removed {removed} and added {added} at place {place}"
        raise AssertionError(message)

    def _read(self, place: int) -> State:
        """The rows of a snapshot that may be forgotten, but whose files are there."""
        table = self._table
        then = LoadedTable(table.name, self._versions[place], table.metadata_location)
        return observed(Table(table._handle.catalog, then), self.snapshots[place].snapshot_id)

    def _check_real_time(self, number: int, place: int | None, states: list[State]) -> None:
        """An operation took effect between its begin and its end; one without a snapshot had nothing to do then."""
        began, ended = self._began[number], self._ended.get(number)
        first, last = self._place(began.head), len(states) - 1 if ended is None else self._place(ended.head)
        if place is not None:
            assert first < place <= last
        elif ended is not None and ended.what == "done":
            operation = _operation(began)
            assert any(apply_operation(operation, seen) == seen for seen in states[first : last + 1]), operation

    def _place(self, snapshot_id: int | None) -> int:
        assert snapshot_id is not None
        return self._places[snapshot_id]

    def _difference(self, place: int, found: State, expected: State) -> str:
        operation = self._operation_at(place) if place else None
        return f"at place {place} after {operation}: too much {found - expected}, missing {expected - found}"


def check_row_ids(table: Table) -> None:
    """Rows have ids of their own, and a row that was only changed or moved keeps its id."""
    before: dict[tuple[int, str], int] = {}
    for snapshot in sorted(table.metadata.snapshots, key=lambda s: s.sequence_number):
        rows = table.scan(snapshot_id=snapshot.snapshot_id, columns=["id", "log", "_row_id"]).to_arrow().to_pylist()
        assert len({row["_row_id"] for row in rows}) == len(rows)
        now = {(row["id"], row["log"]): row["_row_id"] for row in rows}
        for (id_, log), row_id in now.items():
            parts = log.split(":")
            for end in range(1, len(parts) + 1):
                assert before.get((id_, ":".join(parts[:end])), row_id) == row_id
        before = now


def _main(version: TableMetadata) -> Iterable[Snapshot]:
    head = version.current_snapshot
    return () if head is None else version.ancestors(head.snapshot_id)


def _operation(note: Note) -> RowOperation:
    return msgspec.json.decode(note.step["ref"], type=RowOperation)
