"""Rows that a command deletes and adds, in one snapshot: DELETE, UPDATE and MERGE, whoever determined them.

Both modes (`write.<command>.mode`) start from the same facts: which positions of which data files go, and which data
files are added. Files of which every row goes are removed by their metadata alone; others are written again without the
rows that go, or get delete files. That is done once: a retry writes manifests, never rows.
"""

from collections.abc import Mapping, Sequence

import msgspec

from bergline.errors import InvalidInputError
from bergline.expressions.bound_filter import BoundFilter
from bergline.format.deletes.position_set import PositionSet
from bergline.format.manifest.manifest import DataFile, is_deletion_vector
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.planned_files import PlannedFiles
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, RowLevelCommand, isolation_level
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import DeletedPositions, plan_known_deletes, plan_rewrite_without
from bergline.table.engine.row_engine import FileChanges, RowEngine
from bergline.table.manifests.removal import RemovedFiles
from bergline.table.operations.delete import MERGE_ON_READ, row_level_mode
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from bergline.table.operations.row_delta import RowDelta, RowDeltaChecks, row_delta_checks


class RowChanges(msgspec.Struct, frozen=True):
    """What becomes of a snapshot's rows. An updated row is a deleted position and a row of an added file."""

    deleted: Mapping[str, PositionSet] = {}
    """Positions of rows that are there now, by the path of their data file."""
    added: tuple[DataFile, ...] = ()
    """New data files, which no snapshot has yet."""
    summary: Mapping[str, str] = {}
    """Counts for the snapshot's summary."""

    @property
    def is_empty(self) -> bool:
        """Whether all rows stay as they are."""
        return not self.added and not any(self.deleted.values())


class RowLevelWrite(msgspec.Struct, frozen=True):
    """Which command changes the rows of which branch, and what others may do meanwhile."""

    command: RowLevelCommand
    branch: str = MAIN
    starts_branch: bool = True
    """Whether a branch that does not exist is created, at the head of `main`."""
    isolation: str | Isolation | None = None
    """By default that of `write.<command>.isolation-level`; `none` allows all that loses no rows."""
    summary: Mapping[str, str] = {}
    copied_rows: str | None = None
    """The entry of the summary that counts rows which are copied to new files as they are; none by default."""


def write_row_changes(
    io: FileIO,
    metadata: TableMetadata,
    read: ScanPlan,
    changes: RowChanges,
    write: RowLevelWrite,
    *,
    engine: RowEngine | None = None,
) -> Overwrite | RowDelta:
    """The operation that commits changes of rows, with the files for it written by the engine.

    `read` is the scan that found the rows, of the table as `metadata` has it: others are validated from its snapshot,
    and against its filter. The added files are the operation's from here on: it removes all that was written if it
    certainly fails, and so does an error here.
    """
    written = [file.file_path for file in changes.added]
    try:
        deleted = _deleted_positions(read, changes)
        writing = _Writing(io, metadata, read, changes, write, engine=engine or ArrowRowEngine(), written=written)
        return writing.operation(deleted)
    except BaseException:
        io.delete(written)
        raise


class _Writing:
    """One call of `write_row_changes`."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        read: ScanPlan,
        changes: RowChanges,
        write: RowLevelWrite,
        *,
        engine: RowEngine,
        written: list[str],
    ) -> None:
        """`written` gets the paths of all files that the engine writes."""
        self._io = io
        self._metadata = metadata
        self._read = read
        self._changes = changes
        self._write = write
        self._engine = engine
        self._written = written
        given = write.isolation
        self._isolation = None if given == NO_ISOLATION else isolation_level(metadata, write.command, given)
        self._scope = Scope(BoundFilter(read.filter, read.table_schema))
        self._merges_on_read = row_level_mode(metadata, write.command) == MERGE_ON_READ

    def operation(self, deleted: Sequence[DeletedPositions]) -> Overwrite | RowDelta:
        emptied = tuple(d.planned.file for d in deleted if _is_emptied(d))
        partly = tuple(d for d in deleted if not _is_emptied(d))
        if (partly and self._merges_on_read) or not deleted:
            return self._row_delta(emptied, partly)
        rewritten = FileChanges()
        if partly:
            rewritten = self._engine.rewrite(self._io, plan_rewrite_without(self._metadata, self._read, partly))
            self._written.extend(rewritten.paths)
        return self._overwrite(emptied, tuple(d.planned.file for d in partly), rewritten.data_files)

    def _row_delta(self, emptied: tuple[DataFile, ...], partly: Sequence[DeletedPositions]) -> RowDelta:
        plan = plan_known_deletes(self._metadata, partly) if partly else None
        written = self._engine.write_deletes(self._io, plan) if plan else FileChanges()
        self._written.extend(written.paths)
        replaced = [old for d in partly for old in plan.write.replaced(d.planned)] if plan else []
        return RowDelta(
            self._io,
            (*self._changes.added, *written.delete_files),
            (*emptied, *replaced),
            since=self._read.snapshot_id,
            checks=self._row_delta_checks(emptied, written.deleted_from),
            branch=self._write.branch,
            summary=self._summary(0),
            discard_on_failure=True,
            starts_branch=self._write.starts_branch,
            written_schema=self._metadata.schema,
            written_version=self._metadata.format_version,
            rewritten=(*emptied, *(d.planned.file for d in partly)) if self._changes.added else (),
        )

    def _summary(self, copied: int) -> dict[str, str]:
        own = {} if self._write.copied_rows is None else {self._write.copied_rows: str(copied)}
        return {**self._write.summary, **self._changes.summary, **own}

    def _row_delta_checks(self, emptied: tuple[DataFile, ...], referenced: frozenset[str]) -> RowDeltaChecks:
        if self._isolation is None:
            updated = emptied if self._changes.added else ()
            return RowDeltaChecks(scope=self._scope, referenced=referenced, removed_data=True, updated=updated)
        return row_delta_checks(self._write.command, self._isolation, self._scope, referenced)

    def _overwrite(
        self, emptied: tuple[DataFile, ...], rewritten: tuple[DataFile, ...], kept_rows: tuple[DataFile, ...]
    ) -> Overwrite:
        removed = (*emptied, *rewritten)
        checks = OverwriteChecks(
            self._read.snapshot_id,
            self._isolation,
            self._scope,
            removed,
            rewritten,
            removed if self._changes.added else (),
        )
        return Overwrite(
            self._io,
            (*self._changes.added, *kept_rows),
            [RemovedFiles(removed, must_exist=True)],
            branch=self._write.branch,
            summary=self._summary(sum(file.record_count for file in kept_rows)),
            checks=checks,
            discard_on_failure=True,
            starts_branch=self._write.starts_branch,
            written_schema=self._metadata.schema,
            rewritten=removed if self._changes.added else rewritten,
        )


def _deleted_positions(read: ScanPlan, changes: RowChanges) -> list[DeletedPositions]:
    """The deleted positions with the planned files that they are in; InvalidInputError for a file that was not read."""
    wanted = {path: positions for path, positions in changes.deleted.items() if positions}
    found = [
        DeletedPositions(planned, wanted.pop(planned.file.file_path))
        for planned in _files_at(read.files, list(wanted))
        if planned.file.file_path in wanted
    ]
    if wanted:
        raise InvalidInputError(
            f"expected positions in data files of snapshot {read.snapshot_id}, found some in {min(wanted)}"
        )
    return found


def _files_at(files: Sequence[PlannedFile], paths: Sequence[str]) -> Sequence[PlannedFile]:
    return files.at(paths) if isinstance(files, PlannedFiles) else files


def _is_emptied(deleted: DeletedPositions) -> bool:
    """Whether every row of a data file is deleted, as far as that is known without opening a file."""
    file, older = deleted.planned.file, deleted.planned.deletes
    if not all(map(is_deletion_vector, older)):
        return False
    return len(deleted.positions) + sum(vector.record_count for vector in older) == file.record_count
