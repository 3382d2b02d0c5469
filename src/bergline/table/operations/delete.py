"""Delete the rows of a branch that match a filter, and add files in their place, in one snapshot.

Files of which all rows match go by their metadata alone; others that hold matching rows are written again without them,
or get delete files (`write.delete.mode`), by the row engine that is given; all others stay as they are.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from bergline.errors import ConflictError, InvalidInputError
from bergline.expressions.bound_filter import BoundFilter
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.planner import plan_scan
from bergline.table.commits.branches import branch_head, check_branch_exists
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import Isolation, RowLevelCommand
from bergline.table.commits.operation import Change, CommitStamp, Landed
from bergline.table.commits.validate import Validation
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import plan_copy_on_write, plan_position_deletes
from bergline.table.engine.row_engine import FileChanges, RowEngine
from bergline.table.manifests.removal import RemovedFiles, matches_wholly
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from bergline.table.operations.row_delta import RowDelta, RowDeltaChecks


class DeletesByPosition(msgspec.Struct, frozen=True):
    """What a row delta needs: `RowDelta(io, deletes, replaced, since=plan.snapshot_id, checks=…)`."""

    deletes: tuple[DataFile, ...] = ()
    """New delete files; none if no row matches."""
    replaced: tuple[DataFile, ...] = ()
    """Older delete files whose positions are in the new ones: to be removed."""
    referenced: frozenset[str] = frozenset()
    """The data files whose rows are deleted: they must still be there at the commit."""
    rows: int = 0
    """How many rows are deleted that were not before."""


def write_deletes_by_position(
    io: FileIO,
    metadata: TableMetadata,
    plan: ScanPlan,
    files: Iterable[PlannedFile] | None = None,
    *,
    engine: RowEngine | None = None,
) -> DeletesByPosition:
    """Delete files for the rows of a scan, or of some of its files, that match its filter and are not deleted yet."""
    work = plan_position_deletes(metadata, plan, files)
    written = (engine or ArrowRowEngine()).delete_positions(io, work)
    touched = (planned for planned in work.files if planned.file.file_path in written.deleted_from)
    replaced = tuple(delete for planned in touched for delete in work.write.replaced(planned))
    return DeletesByPosition(written.delete_files, replaced, written.deleted_from, written.deleted_rows)


COPY_ON_WRITE, MERGE_ON_READ = ROW_LEVEL_MODES = ("copy-on-write", "merge-on-read")
_FIRST_WITH_DELETES = 2
Files = tuple[PlannedFile, ...]


class RowsToDelete(msgspec.Struct, frozen=True):
    """Which rows of a branch go, and what others may do meanwhile."""

    row_filter: BoundFilter
    branch: str = MAIN
    isolation: Isolation | None = Isolation.SERIALIZABLE
    """None allows all that loses no rows."""
    since: int | Literal["head"] | None = "head"
    """The snapshot that the caller looked at, None for an empty branch; by default the head at the first attempt."""
    starts_branch: bool = True
    """Whether a branch that does not exist is made, at the head of `main`."""


class Delete:
    """Planned on the first base, and the same ever after; by default nothing to do where no row matches or is added."""

    needs_validation = True

    def __init__(
        self,
        io: FileIO,
        rows: RowsToDelete,
        files: Sequence[DataFile] = (),
        *,
        summary: Mapping[str, str] | None = None,
        engine: RowEngine | None = None,
        commit_empty: bool = False,
    ) -> None:
        """Rows are read and rewritten by the engine, by default in this process.

        With `commit_empty` there is a snapshot even where no row matches.
        """
        self._io = io
        self._engine = engine or ArrowRowEngine()
        self._rows = rows
        self._files = tuple(files)
        self._summary = dict(summary or {})
        self._commit_empty = commit_empty
        self._planned: Overwrite | RowDelta | None = None
        self._first_base: TableMetadata | None = None

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """What was planned, on this base; ConflictError if the filter does not fit it any more."""
        if not self._rows.starts_branch:
            check_branch_exists(base, self._rows.branch)
        if self._first_base is None:
            self._planned = self._plan(base)
            self._first_base = base
        if self._planned is None:
            self._check_still_nothing(self._first_base, base, stamp)
            return Change()
        return self._planned.attempt(base, stamp)

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs."""
        if self._planned is not None:
            self._planned.settled(landed)
        else:
            self._io.delete([f.file_path for f in self._files])

    def _plan(self, base: TableMetadata) -> Overwrite | RowDelta | None:
        start = self._start(base)
        schema = base.schema
        plan = plan_scan(
            self._io,
            base,
            start.snapshot_id if start else None,
            table_schema=schema,
            columns=schema,
            row_filter=self._rows.row_filter,
        )
        whole = tuple(p for p in plan.files if matches_wholly(plan.filter, p.file, base))
        known = {p.file.file_path for p in whole}
        others = tuple(p for p in plan.files if p.file.file_path not in known)
        if others and row_level_mode(base, "delete") == MERGE_ON_READ:
            deletes = write_deletes_by_position(self._io, base, plan, others, engine=self._engine)
            if deletes.deletes:
                touched = tuple(p for p in others if p.file.file_path in deletes.referenced)
                return self._row_delta(base, plan, whole, touched, deletes)
            others = ()
        rewritten = FileChanges()
        if others:
            rewritten = self._engine.rewrite(self._io, plan_copy_on_write(base, plan, others))
        partly = tuple(p for p in others if p.file.file_path in rewritten.rewritten)
        if not (whole or partly or self._files or self._commit_empty):
            return None
        return self._overwrite(plan, whole, partly, rewritten.data_files)

    def _start(self, base: TableMetadata) -> Snapshot | None:
        """The snapshot to plan on; ConflictError if it is not in the branch's history any more."""
        parent, since = branch_head(base, self._rows.branch), self._rows.since
        if since == "head":
            return parent
        Validation(self._io, base, parent, since=since, branch=self._rows.branch)
        if since is not None and since not in base.snapshots_by_id:
            raise ConflictError(
                f"cannot find the rows to replace on `{self._rows.branch}`: snapshot {since} has expired",
                hints=["look at the table as it is now and plan the operation again"],
            )
        return None if since is None else base.snapshot(since)

    def _check_still_nothing(self, first: TableMetadata, base: TableMetadata, stamp: CommitStamp) -> None:
        """In a transaction others may have added matching rows since none was found."""
        if base is first or self._rows.isolation is not Isolation.SERIALIZABLE:
            return
        start, parent = self._start(first), branch_head(base, self._rows.branch)
        since = start.snapshot_id if start else None
        Validation(
            self._io, base, parent, since=since, branch=self._rows.branch, earlier=stamp.earlier
        ).check_no_new_data(Scope(self._rows.row_filter))

    def _updated(self, *files: PlannedFile) -> tuple[DataFile, ...]:
        """The files whose rows have new versions: who deleted some of them meanwhile would not see them gone."""
        if not self._files or self._rows.isolation is None:
            return ()
        return tuple(p.file for p in files)

    def _overwrite(self, plan: ScanPlan, whole: Files, partly: Files, remaining: tuple[DataFile, ...]) -> Overwrite:
        """The remaining rows of files that match partly are in new ones."""
        rows = self._rows
        rewritten = tuple(p.file for p in partly)
        removed = (*(p.file for p in whole), *rewritten)
        checks = OverwriteChecks(
            plan.snapshot_id, rows.isolation, Scope(rows.row_filter), removed, rewritten, self._updated(*whole, *partly)
        )
        return Overwrite(
            self._io,
            (*self._files, *remaining),
            [RemovedFiles(removed, must_exist=True)],
            branch=rows.branch,
            summary=self._summary,
            checks=checks,
            discard_on_failure=True,
        )

    def _row_delta(
        self, base: TableMetadata, plan: ScanPlan, whole: Files, touched: Files, deletes: DeletesByPosition
    ) -> RowDelta:
        rows = self._rows
        return RowDelta(
            self._io,
            (*self._files, *deletes.deletes),
            (*(p.file for p in whole), *deletes.replaced),
            since=plan.snapshot_id,
            checks=RowDeltaChecks(
                scope=Scope(rows.row_filter),
                referenced=deletes.referenced,
                deleted_files=True,
                new_data=rows.isolation is Isolation.SERIALIZABLE,
                updated=self._updated(*whole, *touched),
            ),
            branch=rows.branch,
            summary=self._summary,
            discard_on_failure=True,
            written_version=base.format_version,
        )


def row_level_mode(metadata: TableMetadata, command: RowLevelCommand) -> str:
    """How a command deletes rows of files that hold others too; format version 1 has no delete files."""
    key = f"write.{command}.mode"
    if metadata.format_version < _FIRST_WITH_DELETES:
        return COPY_ON_WRITE
    return check_row_level_mode(key, metadata.properties.get(key, COPY_ON_WRITE))


def check_row_level_mode(key: str, value: str) -> str:
    """The mode of this name, in any case."""
    if value.lower() not in ROW_LEVEL_MODES:
        raise InvalidInputError(f"expected {' or '.join(ROW_LEVEL_MODES)} for property `{key}`, found `{value}`")
    return value.lower()
