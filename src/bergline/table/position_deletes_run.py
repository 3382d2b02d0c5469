"""A run that merges position delete files: planned, rewritten by an engine and committed, alongside other writers."""

import logging
from collections.abc import Mapping
from typing import Final

from bergline.errors import ConflictError
from bergline.expressions.predicate import Predicate
from bergline.format.manifest.manifest import DataFile
from bergline.table.commits.branches import check_branch_exists, check_write_branch, head_id
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.row_engine import RowEngine
from bergline.table.handle import TableHandle
from bergline.table.operations.rewrite_options import RewriteOptions
from bergline.table.operations.rewrite_position_deletes import (
    DeleteGroup,
    PositionDeletesResult,
    RewriteDeletes,
    plan_position_deletes_rewrite,
)

_MOST_ROUNDS: Final = 10
_LOG = logging.getLogger("bergline.table")


class PositionDeletesRun:
    """One call on a branch; what others change in the meantime is planned again, a few times."""

    def __init__(
        self,
        table: TableHandle,
        row_filter: Predicate,
        options: RewriteOptions,
        *,
        branch: str,
        summary: Mapping[str, str] | None,
        engine: RowEngine | None,
    ) -> None:
        self._table = table
        self._filter = row_filter
        self._options = options
        self._branch = branch
        self._summary = summary
        self._engine = engine or ArrowRowEngine()
        self._result = PositionDeletesResult()
        self._written: set[str] = set()

    def run(self) -> PositionDeletesResult:
        """Merge what is worth merging; ConflictError if others change the same files again and again."""
        for left in reversed(range(_MOST_ROUNDS)):
            self._table.refresh()
            try:
                self._round()
            except ConflictError:
                if not left or self._table.in_transaction:
                    raise
            else:
                break
        return self._result

    def _round(self) -> None:
        table = self._table
        check_write_branch(table.metadata, self._branch)
        since = head_id(table.metadata, self._branch)
        check_branch_exists(table.metadata, self._branch)
        if since is None:
            return
        metadata = table.metadata
        groups = plan_position_deletes_rewrite(
            table.io, metadata, metadata.snapshot(since), self._filter, self._options, done=self._written
        )
        per_commit = len(groups)
        if groups and self._options.partial_progress_enabled:
            per_commit = -(-len(groups) // self._options.partial_progress_max_commits)
        conflict: ConflictError | None = None
        for first in range(0, len(groups), per_commit or 1):
            batch = groups[first : first + per_commit]
            try:
                self._commit(batch, since)
            except ConflictError as error:
                conflict = error
                continue
            done = min(first + per_commit, len(groups))
            _LOG.info("rewrite position deletes of %s: %s of %s groups", table.name, done, len(groups))
        if conflict is not None:
            raise conflict

    def _commit(self, groups: list[DeleteGroup], since: int) -> None:
        table = self._table
        written = self._engine.join_deletes(table.io, [group.join for group in groups])
        summary = table.snapshot_summary(self._summary)
        table.commit(RewriteDeletes(table.io, groups, written, since=since, branch=self._branch, summary=summary))
        removed = [file for group in groups for file in group.removed]
        added = [file for changes in written for file in changes.delete_files]
        self._written |= {file.file_path for file in added}
        self._result += PositionDeletesResult(len(removed), len(added), _bytes(removed), _bytes(added))


def _bytes(files: list[DataFile]) -> int:
    return sum(f.content_size_in_bytes or f.file_size_in_bytes for f in files)
