"""Several operations on one table as one: each is computed on the result of those before it."""

from collections.abc import Collection, Sequence

from bergline.catalog.conflicts import describe_change
from bergline.catalog.identifiers import TableName
from bergline.errors import ConflictError, InvalidInputError
from bergline.format.manifest.manifest import EntryStatus, ManifestContent
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.metadata.updates import AddSnapshot
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_entries, load_manifest_list
from bergline.table.commits.combine import combine_changes
from bergline.table.commits.layout_check import layout_misfit
from bergline.table.commits.operation import Change, CommitStamp, Landed, Operation, cleaning_up


class Chain:
    """The operations of a transaction, and the table as it will be with them.

    The files of an operation are written when it is added. If the base has moved on by the end, every operation is
    computed again on the new one, with the snapshot ids and the manifests that it has already.
    """

    def __init__(self, name: TableName, base: TableMetadata, io: FileIO) -> None:
        self.name = name
        self._io = io
        self._first = self._base = base
        self._metadata = self._staged = base
        self._operations: list[Operation] = []
        self._changes: list[Change] = []
        self._runs = self._run = 1
        """How often the operations were worked out, and which time the changes are of."""
        self._run_of_attempt: dict[int, int] = {}
        self._parents: dict[int, int | None] = {}
        self._ended = False

    @property
    def metadata(self) -> TableMetadata:
        """The table with all operations so far; InvalidInputError after the end."""
        self._check_open()
        return self._metadata

    @property
    def is_empty(self) -> bool:
        """Whether there is no operation."""
        return not self._operations

    @property
    def needs_validation(self) -> bool:
        """Whether another commit can make one of them wrong."""
        return any(o.needs_validation for o in self._operations)

    def add(self, operation: Operation, now_ms: int) -> None:
        """Compute an operation on the result so far; one that fails is left out, and leaves no files."""
        self._check_open()
        try:
            change, after = self._step(operation, self._metadata, now_ms)
        except BaseException:  # nothing of a chain is committed before its end: all of it may go
            with cleaning_up(self.name):
                operation.settled(None)
            raise
        self._operations.append(operation)
        self._changes.append(change)
        self._metadata = self._staged = after
        self._parents |= {
            u.snapshot.snapshot_id: u.snapshot.parent_snapshot_id for u in change.updates if isinstance(u, AddSnapshot)
        }

    def end(self) -> None:
        """Take no more operations."""
        self._ended = True

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """All changes as one; computed again only if the base is another."""
        if base is not self._base and base != self._base:
            self._rebase(base, stamp.now_ms)
        self._run_of_attempt[stamp.attempt] = self._run
        return combine_changes(self._changes)

    def settled(self, landed: Landed | None) -> None:
        """Have every operation remove what is not needed; its attempts are counted by how often it was computed."""
        if landed is not None:
            landed = Landed(self._run_of_attempt[landed.attempt], landed.metadata)
        for operation in self._operations:
            with cleaning_up(self.name):
                operation.settled(landed)

    def _rebase(self, base: TableMetadata, now_ms: int) -> None:
        self._runs += 1
        metadata = base
        changes = []
        for operation in self._operations:
            change, metadata = self._step(operation, metadata, now_ms)
            changes.append(change)
        self._check_files_fit(base, metadata, changes)
        self._base, self._metadata, self._changes, self._run = base, metadata, changes, self._runs

    def _step(self, operation: Operation, base: TableMetadata, now_ms: int) -> tuple[Change, TableMetadata]:
        change = operation.attempt(base, CommitStamp(self._runs, now_ms, self._parents))
        if not change.updates:
            return change, base
        return change, apply_updates(base, change.updates, base_location=None, now_ms=now_ms)

    def _check_files_fit(self, base: TableMetadata, now: TableMetadata, changes: list[Change]) -> None:
        """ConflictError if columns, specs or rows have other ids by now than those that the files were written with."""
        misfit = layout_misfit(self._first, self._staged, now, self._changes)
        misfit = misfit or lineage_misfit(self._io, self._staged, now, changes)
        if misfit is not None:
            raise ConflictError(
                f"table `{self.name}` moved on: {describe_change(self._first, base)}; "
                f"files were written in this transaction, and {misfit}",
                hints=["run the transaction again"],
            )

    def _check_open(self) -> None:
        if self._ended:
            raise InvalidInputError(f"expected an open transaction, found one that has ended, on table `{self.name}`")


def lineage_misfit(io: FileIO, staged: TableMetadata, now: TableMetadata, changes: Sequence[Change]) -> str | None:
    """Why files written on `staged` do not fit `now`, which the same changes made of another base; None if they do."""
    added = {u.snapshot.snapshot_id: u.snapshot for c in changes for u in c.updates if isinstance(u, AddSnapshot)}
    if now.format_version < ROW_LINEAGE_VERSION or not any(c.rewritten for c in changes):
        return None
    moved = [s for s in added.values() if _ids(s) != _ids(staged.snapshots_by_id.get(s.snapshot_id))]
    rewritten = frozenset().union(*(change.rewritten for change in changes))
    if any(_adds(io, snapshot, now, rewritten) for snapshot in moved):
        return "rows that were added in it and then written again would have other ids"
    return None


def _ids(snapshot: Snapshot | None) -> tuple[int | None, int] | None:
    return None if snapshot is None else (snapshot.first_row_id, snapshot.sequence_number)


def _adds(io: FileIO, snapshot: Snapshot, now: TableMetadata, paths: Collection[str]) -> bool:
    """Whether a snapshot added one of these data files."""
    return any(
        e.status is EntryStatus.ADDED and e.data_file.file_path in paths
        for manifest in load_manifest_list(io, snapshot)
        if manifest.added_snapshot_id == snapshot.snapshot_id
        and manifest.content is ManifestContent.DATA
        and manifest.added_files_count
        for e in load_entries(io, manifest, now)
    )
