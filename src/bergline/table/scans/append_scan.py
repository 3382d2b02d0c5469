"""A read of the rows that were appended between two snapshots, as Iceberg's incremental reads return them."""

from bergline.arguments import check_whole
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.plan import ScanPlan
from bergline.scan.planner import plan_appends
from bergline.table.scans.scan import TableScan
from bergline.table.scans.version import ReadVersion


class AppendScan(TableScan):
    """The files of the append snapshots after `start`, up to `end`; other commits are skipped."""

    def __init__(self, io: FileIO, metadata: TableMetadata, start: int, end: int | None) -> None:
        current = metadata.current_snapshot
        branch = MAIN if end is None else None
        if end is None:
            end = current.snapshot_id if current else None
        super().__init__(io, metadata, ReadVersion(end, metadata.schema, branch), None, None)
        self._snapshots = append_snapshots(metadata, check_whole(start, "a snapshot id"), end)

    def plan(self) -> ScanPlan:
        """The data files that were added."""
        return plan_appends(
            self.io,
            self._metadata,
            self._snapshots,
            table_schema=self.version.schema,
            columns=self._columns,
            row_filter=self._filter,
        )


def append_snapshots(metadata: TableMetadata, start: int, end: int | None) -> list[int]:
    """The append snapshots between the two, newest first."""
    found: list[int] = []
    for snapshot in metadata.ancestors(None if end is None else metadata.snapshot(end).snapshot_id):
        if snapshot.snapshot_id == start:
            return found
        if snapshot.operation == SnapshotOperation.APPEND:
            found.append(snapshot.snapshot_id)
        if snapshot.parent_snapshot_id == start:  # the start may have expired
            return found
    raise InvalidInputError(f"expected a snapshot before {end} to start from, found {start}")
