"""A run of compaction: planned, rewritten by an engine and committed, while others change the table.

A group whose files were changed by others is planned again on the new head; all other groups are committed.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import msgspec

from bergline.arguments import counted
from bergline.errors import BerglineError, ConflictError, NotFoundError
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.scan.path_lookup import PathLookup
from bergline.scan.plan import ScanPlan
from bergline.scan.planner import plan_scan
from bergline.table.commits.branches import check_branch_exists, check_write_branch, head_id
from bergline.table.commits.operation import Landed
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import GroupLayout, plan_rewrite
from bergline.table.engine.row_engine import RowEngine
from bergline.table.handle import TableHandle
from bergline.table.operations.compaction import (
    CompactionRequest,
    CompactionResult,
    RewrittenGroup,
    as_rewritten,
    changed_files,
    plan_compaction,
)
from bergline.table.operations.rewrite_files import RewriteFiles, Rewritten

_MOST_ROUNDS: Final = 10
_LOG = logging.getLogger("bergline.table")


class CompactionRun:
    """One call of `compact` on a branch."""

    def __init__(
        self,
        table: TableHandle,
        request: CompactionRequest,
        *,
        branch: str,
        summary: Mapping[str, str] | None,
        engine: RowEngine | None,
    ) -> None:
        self._table = table
        self._request = request
        self._options = request.options
        self._branch = branch
        self._summary = summary
        self._engine = engine or ArrowRowEngine()
        self._result = CompactionResult()
        self._failed_commits = 0
        self._skipped: set[str] = set()
        """Files that this run has written or failed on: later rounds leave them alone."""

    def run(self) -> CompactionResult:
        """Rewrite what is worth rewriting; ConflictError if others change the same files again and again."""
        table_uuid = self._table.metadata.table_uuid
        lost: set[str] = set()
        error: BerglineError | None = None
        for _ in range(_MOST_ROUNDS):
            self._table.refresh()
            if self._table.metadata.table_uuid != table_uuid:
                raise ConflictError(f"expected table `{self._table.name}` as it was, found it dropped and re-created")
            try:
                lost, error = self._round()
            except NotFoundError as missing:
                if not self._has_moved_on(missing):
                    raise
                error = missing
                continue
            if not lost:
                return self._result
        if error is not None and not self._options.partial_progress_enabled:
            raise error
        self._fail(lost, error)
        return self._result

    def _round(self) -> tuple[set[str], BerglineError | None]:
        """Plan and rewrite once; returns the files of groups that others changed in the meantime."""
        table = self._table
        check_write_branch(table.metadata, self._branch)
        since, own = head_id(table.metadata, self._branch), table.snapshot_summary(self._summary)
        check_branch_exists(table.metadata, self._branch)
        if since is None or self._is_enough:
            return set(), None
        start = table.metadata.snapshot(since)
        plan = plan_compaction(table.io, table.metadata, start, self._left_request, self._skipped)
        if not len(plan):
            return set(), None
        one_round = _Round(table, self._request, plan.read, start=start, branch=self._branch, summary=own)
        per_commit = len(plan)
        if self._options.partial_progress_enabled:
            per_commit = -(-len(plan) // self._options.partial_progress_max_commits)
        changed: set[str] = set()
        conflict: BerglineError | None = None
        for first in range(0, len(plan), per_commit):
            batch = self._rewritten(one_round, plan.layouts(first, first + per_commit))
            done = min(first + per_commit, len(plan))
            _LOG.info("compact %s: %s of %s groups rewritten", table.name, done, len(plan))
            if batch:
                lost, found = self._committed(one_round, batch)
                changed, conflict = changed | lost, found or conflict
        return changed, conflict

    @property
    def _is_enough(self) -> bool:
        most = self._options.max_files_to_rewrite
        return most is not None and self._result.rewritten_data_files >= most

    @property
    def _left_request(self) -> CompactionRequest:
        most = self._options.max_files_to_rewrite
        if most is None:
            return self._request
        left = msgspec.structs.replace(self._options, max_files_to_rewrite=most - self._result.rewritten_data_files)
        return msgspec.structs.replace(self._request, options=left)

    def _rewritten(self, one_round: "_Round", groups: Sequence[GroupLayout]) -> list[RewrittenGroup]:
        """Rewrite the groups together; with partial progress, after an error one by one, dropping failed ones."""
        try:
            return one_round.rewrite(self._engine, groups)
        except Exception as error:  # (an engine may raise anything)
            if not self._options.partial_progress_enabled:
                raise
            if len(groups) == 1:
                self._fail({planned.file.file_path for planned in groups[0].files}, error)
                return []
        return [done for group in groups for done in self._rewritten(one_round, [group])]

    def _committed(self, one_round: "_Round", batch: list[RewrittenGroup]) -> tuple[set[str], BerglineError | None]:
        """Commit groups, except those that others changed; returns the files of these."""
        lost: set[str] = set()
        conflict: BerglineError | None = None
        attempts = 0
        while batch:
            outcome = one_round.commit(batch)
            if isinstance(outcome, CompactionResult):
                self._result += outcome
                self._skipped |= {file.file_path for g in batch for file in g.changes.data_files}
                break
            if not isinstance(outcome, ConflictError):
                one_round.discard(batch)
                if not self._options.partial_progress_enabled:
                    raise outcome
                self._fail({planned.file.file_path for g in batch for planned in g.layout.files}, outcome)
                break
            kept = one_round.unchanged(batch)
            attempts += 1
            if len(kept) == len(batch) and attempts < _MOST_ROUNDS:
                continue  # it only lost the race for the commit; nothing that it builds on has changed
            dropped = [g for g in batch if g not in kept] or batch
            batch = [g for g in batch if g not in dropped]
            one_round.discard(dropped)
            lost |= {planned.file.file_path for g in dropped for planned in g.layout.files}
            conflict = outcome
        return lost, conflict

    def _fail(self, files: Collection[str], error: Exception | None) -> None:
        """Count failures, if partial progress is enabled; too many are an error."""
        self._failed_commits += 1
        self._skipped |= set(files)
        self._result += CompactionResult(failed_data_files=len(files))
        left = counted(len(files), "data file")
        _LOG.warning("compact %s: %s left unchanged: %s", self._table.name, left, error)
        most = self._options.partial_progress_max_failed_commits
        if most is not None and self._failed_commits > most:
            raise ConflictError(
                f"expected up to {most} failed commits, found {self._failed_commits}: "
                f"{counted(self._result.rewritten_data_files, 'data file')} of `{self._table.name}` were rewritten, "
                f"{self._result.failed_data_files:,} were not",
            ) from error

    def _has_moved_on(self, error: NotFoundError) -> bool:
        """Whether to plan again: missing files may have expired, but only if the table has moved on."""
        if self._table.in_transaction or error.kind != "file":
            return False
        newest = self._table.catalog.load_table(self._table.name)
        return newest.metadata_location != self._table.metadata_location


class _Round:
    """Compaction of the files of one snapshot."""

    def __init__(
        self,
        table: TableHandle,
        request: CompactionRequest,
        plan: ScanPlan,
        *,
        start: Snapshot,
        branch: str,
        summary: Mapping[str, str],
    ) -> None:
        self._table = table
        self._metadata = table.metadata
        self._request = request
        self._plan = plan
        self._start = start
        self._branch = branch
        self._summary = summary
        self._done: list[DataFile] = []
        """The replaced files, if their delete files may have become dangling."""

    def rewrite(self, engine: RowEngine, groups: Sequence[GroupLayout]) -> list[RewrittenGroup]:
        """The groups with their new files; an error leaves no files behind."""
        at_a_time = self._request.options.max_concurrent_file_group_rewrites
        plan = plan_rewrite(self._metadata, self._plan, groups, at_a_time)
        written = engine.rewrite_groups(self._table.io, plan)
        return [RewrittenGroup(*pair) for pair in zip(groups, written, strict=True)]

    def commit(self, groups: Sequence[RewrittenGroup]) -> CompactionResult | BerglineError:
        """Commit groups in one snapshot; returns an error if certainly nothing was committed, and then new files stay.

        Any other error is raised.
        """
        rewritten = self._as_rewritten(groups)
        kind = RewriteFiles if self._table.in_transaction else _KeptOnFailure
        operation = kind(
            self._table.io,
            rewritten,
            since=self._start.snapshot_id,
            branch=self._branch,
            summary=self._summary,
            discard_on_failure=True,
        )
        try:
            self._table.commit(operation)
        except BerglineError as error:
            if isinstance(operation, _KeptOnFailure) and operation.has_failed:
                return error
            raise
        committed = operation.snapshot.summary if operation.snapshot else {}
        if self._request.options.remove_dangling_deletes:
            self._done += rewritten.removed
        return CompactionResult(
            rewritten_data_files=len(rewritten.removed),
            added_data_files=len(rewritten.added),
            rewritten_bytes=sum(f.file_size_in_bytes for f in rewritten.removed),
            removed_delete_files=int(committed.get("removed-delete-files", "0")),
        )

    def unchanged(self, groups: Sequence[RewrittenGroup]) -> list[RewrittenGroup]:
        """The groups whose files are unchanged on the branch's head."""
        self._table.refresh()
        metadata = self._table.metadata
        head = head_id(metadata, self._branch)
        if head is None or metadata.table_uuid != self._metadata.table_uuid:
            return []
        paths = PathLookup(p.file.file_path for g in groups for p in g.layout.files)
        now = plan_scan(
            self._table.io,
            metadata,
            head,
            table_schema=metadata.schema,
            columns=metadata.schema,
            row_filter=self._request.row_filter,
            choose=lambda files: paths.holds(files.frame["file_path"]),
        )
        changed = changed_files((p for g in groups for p in g.layout.files), now.files)
        return [g for g in groups if not any(p.file.file_path in changed for p in g.layout.files)]

    def discard(self, groups: Sequence[RewrittenGroup]) -> None:
        """Delete the new files of groups that are certainly not committed."""
        self._table.io.delete([path for group in groups for path in group.changes.paths])

    def _as_rewritten(self, groups: Sequence[RewrittenGroup]) -> Rewritten:
        try:
            return as_rewritten(
                self._table.io,
                self._metadata,
                self._start,
                self._request,
                groups,
                pinned=not self._table.in_transaction,
                earlier=self._done,
            )
        except BaseException:
            self.discard(groups)
            raise


class _KeptOnFailure(RewriteFiles):
    """An operation that leaves the new files to the caller if it certainly fails."""

    has_failed = False

    def settled(self, landed: Landed | None) -> None:
        if landed is None:
            self._discarded.clear()
            self.has_failed = True
        super().settled(landed)
