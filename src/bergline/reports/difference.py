"""How two refs differ: history, files and rows by partition, columns, and a few of the rows themselves."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Self

import msgspec
import pyarrow as pa

from bergline.datafiles.read.changelog import CHANGE_COLUMNS
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.reserved import CHANGE_TYPE
from bergline.io.fileio import FileIO
from bergline.reports.problem import Problem, attempt
from bergline.reports.row_job import RowReader, read_here
from bergline.reports.row_sample import RowSample, sample_rows
from bergline.table.references.changed_rows import Changelog, needs_matching
from bergline.table.references.diff import PartitionDiff, RefDiff
from bergline.table.references.snapshot_change import differing_entries, load_change
from bergline.table.scans.changelog_scan import MatchRules
from bergline.table.scans.version import resolve_version
from bergline.table.table import Table

MOST_COMPARED_ROWS = 1_000_000
"""The most rows that are matched with each other for a sample."""
_MOST_REWRITES = 100
_PartitionOf = tuple[str, int]


class PartitionDifference(msgspec.Struct, frozen=True):
    """What was added to and removed from one partition."""

    files: PartitionDiff
    rewritten_rows: int
    """Rows that compaction is known to have copied: they are among both the added and the removed ones, but are no
    change."""

    @property
    def added_rows(self) -> int:
        """Rows of added data files, without those known to be copies."""
        return self.files.added_rows - self.rewritten_rows

    @property
    def removed_rows(self) -> int:
        """Rows of removed data files, without those known to be copies."""
        return self.files.removed_rows - self.rewritten_rows


class RefDifference(msgspec.Struct, frozen=True):
    """How one ref differs from another; parts that cannot be read are None, and named in the problems."""

    from_ref: str
    to_ref: str
    diff: RefDiff | None
    partitions: tuple[PartitionDifference, ...]
    sample: RowSample | None
    """Rows that only one of the two has; the first column says whether `to_ref` has it ("INSERT") or not."""
    compared_rows: int
    """How many rows would have to be read to find all that differ."""
    problems: tuple[Problem, ...]

    @property
    def is_sample_refused(self) -> bool:
        """Whether there are too many rows to search for a sample."""
        return self.sample is None and self.compared_rows > MOST_COMPARED_ROWS


class DifferingRows(msgspec.Struct, frozen=True):
    """Some of the rows that differ."""

    compared: int
    """How many rows would have to be read to find all of them."""
    sample: RowSample | None
    """None if there are too many rows to search for a sample."""


class ChangedRowsJob(msgspec.Struct, frozen=True):
    """What is needed to find rows that differ."""

    io: FileIO
    metadata: TableMetadata
    from_ref: str
    to_ref: str
    limit: int

    def reading(self, io: FileIO) -> Self:
        """See `RowJob`."""
        return msgspec.structs.replace(self, io=io)

    def found_type(self) -> type[DifferingRows]:
        """See `RowJob`."""
        return DifferingRows

    def run(self, check: Callable[[], None]) -> DifferingRows:
        """The first of the rows that differ between the two states, by net changes."""
        before, after = (resolve_version(self.metadata, ref=name) for name in (self.from_ref, self.to_ref))
        states = before.snapshot_id, after.snapshot_id
        rules = MatchRules(net=True)
        changes = Changelog(self.io, self.metadata, after.schema, rules, snapshots=None, states=states)
        plan = changes.plan()
        compared = sum(change.file.record_count for change in plan.changes)
        if compared > MOST_COMPARED_ROWS and needs_matching(plan.changes):
            return DifferingRows(compared, None)
        about = {f.name for f in CHANGE_COLUMNS}
        own = [f.name for f in changes.schema.fields if f.name not in about]
        batches = _checked(changes.to_batches(), check)
        return DifferingRows(compared, sample_rows(batches, [CHANGE_TYPE.name, *own], self.limit))


def ref_difference(
    table: Table, from_ref: str, to_ref: str, *, sample: int = 20, read_rows: RowReader = read_here
) -> RefDifference:
    """How the second ref differs from the first, with a limited number of rows; NotFoundError for unknown refs."""
    for name in (from_ref, to_ref):
        table.metadata.ref(name)
    problems: list[Problem] = []
    diff = attempt(problems, "the files that differ", lambda: table.refs.diff(from_ref, to_ref))
    partitions: Sequence[PartitionDifference] = ()
    if diff is not None:
        rewritten = attempt(problems, "what compaction copied", lambda: _rewritten(table, diff)) or {}
        partitions = [
            PartitionDifference(p, min(rewritten.get((p.partition, p.spec_id), 0), p.added_rows, p.removed_rows))
            for p in diff.partitions
        ]
    found = None
    if sample > 0:
        job = ChangedRowsJob(table.io, table.metadata, from_ref, to_ref, sample)
        found = attempt(problems, "rows that differ", lambda: read_rows(job))
    found = found or DifferingRows(0, None)
    return RefDifference(from_ref, to_ref, diff, tuple(partitions), found.sample, found.compared, tuple(problems))


def _checked(batches: Iterable[pa.RecordBatch], check: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        check()
        yield batch


def _rewritten(table: Table, diff: RefDiff) -> Mapping[_PartitionOf, int]:
    """Rows that compaction on one of the sides copied unchanged to other files, by partition.

    Only rows that a single compaction both removed and added within the difference count: more is not certain.
    """
    metadata = table.metadata
    sides = [(s, True) for s in diff.only_to] + [(s, False) for s in diff.only_from]
    rewrites = [(s, forward) for s, forward in sides if s.operation == SnapshotOperation.REPLACE]
    if not rewrites or len(rewrites) > _MOST_REWRITES:
        return {}
    before, after = (metadata.snapshot(metadata.ref(name).snapshot_id) for name in (diff.from_ref, diff.to_ref))
    old, new = differing_entries(table.io, metadata, before, after)
    gone = {e.data_file.file_path for key, e in old.items() if key not in new}
    come = {e.data_file.file_path for key, e in new.items() if key not in old}
    rows: dict[_PartitionOf, int] = defaultdict(int)
    for snapshot, forward in rewrites:
        taken, put = _rows_of_rewrite(table, snapshot, *((gone, come) if forward else (come, gone)))
        for place in taken.keys() & put.keys():
            rows[place] += min(taken[place], put[place])
    return rows


def _rows_of_rewrite(
    table: Table, snapshot: Snapshot, removed: set[str], added: set[str]
) -> tuple[dict[_PartitionOf, int], dict[_PartitionOf, int]]:
    """The rows of files that a snapshot removed and added, of those among the given ones."""
    change = load_change(table.io, table.metadata, snapshot)
    return (
        _rows_by_partition(table, (f for f in change.removed_data if f.file_path in removed)),
        _rows_by_partition(table, (f for f in change.added_data if f.file_path in added)),
    )


def _rows_by_partition(table: Table, files: Iterable[DataFile]) -> dict[_PartitionOf, int]:
    rows: dict[_PartitionOf, int] = defaultdict(int)
    for place, count in _placed(table, files):
        rows[place] += count
    return rows


def _placed(table: Table, files: Iterable[DataFile]) -> Iterator[tuple[_PartitionOf, int]]:
    for file in files:
        spec = table.metadata.specs_by_id[file.spec_id]
        path = spec.partition_path(table.metadata.schema_for(spec), file.partition)
        yield (path, file.spec_id), file.record_count
