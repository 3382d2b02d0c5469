"""What a user writes to a table: every method is one snapshot on a branch, or a staged one."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Final, Literal, Self

from bergline.errors import InvalidInputError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.predicate import Predicate
from bergline.format.arguments import shown
from bergline.format.manifest import DataFile, FileContent
from bergline.format.refs import MAIN, check_ref_name
from bergline.parquet.fit import ArrowRows
from bergline.parquet.write import DataFileWriter
from bergline.parquet.write_spec import write_spec
from bergline.table.changes.append import Append
from bergline.table.changes.delete import Delete, RowsToDelete
from bergline.table.changes.handed_over import handed_over
from bergline.table.changes.overwrite import Overwrite, OverwriteChecks
from bergline.table.changes.removal import Everything, Removal, RemovedFiles
from bergline.table.changes.replace_partitions import head_id, replace_partitions
from bergline.table.commits.history_window import EVERYTHING
from bergline.table.commits.isolation import Isolation, isolation_level, parse_isolation
from bergline.table.commits.operation import Operation
from bergline.table.commits.produce import check_writable
from bergline.table.handle import TableHandle
from bergline.table.references.given_summary import check_summary
from bergline.table.references.staged import staged, wap_summary
from bergline.table.scan import to_predicate

_NO_ISOLATION: Final = "none"


class TableWriting(TableHandle):
    """Rows as Arrow data, or files that were written for this table.

    Files belong to whoever made them: those that are given stay, whatever comes, unless `discard_on_failure` hands
    them over; then they are deleted if the commit certainly failed, except for those that a snapshot of the table
    names. All are looked at first (one footer each): InvalidInputError if one is not there, has another number of rows
    or is on the branch already.

    With a `wap_id` a snapshot is staged on the head of the branch, which stays where it is: `refs.staged` finds it,
    `refs.publish` brings it in.
    """

    def check_branch(self, branch: str) -> None:
        """Refuse a tag as the target of a write; a branch that does not exist is created by the write."""
        check_ref_name(branch)
        check_writable(self.metadata.refs.get(branch), branch)

    def append(
        self,
        rows: ArrowRows,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        fast: bool = False,
        wap_id: str | None = None,
    ) -> Self:
        """Add rows to a branch; a branch that does not exist starts at the head of `main`.

        Now and then an append joins small manifests of earlier ones; a fast one never does.
        """
        self.check_branch(branch)
        own = self._summary | _checked_summary(summary, wap_id)
        files = self._write(rows)
        operation = Append(self.io, files, branch=branch, summary=own, fast=fast, discard_on_failure=True)
        operation.written_for = self.schema
        self.commit(staged(operation, wap_id))
        return self

    def append_files(
        self,
        files: Sequence[DataFile],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        fast: bool = False,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Add files that were written for this table."""
        _check_files(files)
        own = self._summary | _checked_summary(summary, wap_id)
        operation = Append(self.io, files, branch=branch, summary=own, fast=fast)
        self._commit_given(operation, files, wap_id, discard_on_failure=discard_on_failure)
        return self

    def overwrite(
        self,
        rows: ArrowRows,
        row_filter: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
    ) -> Self:
        """Replace the rows that match a filter, by default all rows of a branch.

        With a filter, ConflictError if others changed rows that match since the branch was loaded here; `isolation`
        says how much of it counts ("serializable", "snapshot" or "none"), by default `write.delete.isolation-level`.
        Without a filter only a given level is looked after.
        """
        self.check_branch(branch)
        own = self._summary | _checked_summary(summary, wap_id)
        if row_filter is None:
            checks = self._checks_of_all(branch, isolation)
            operation = Overwrite(
                self.io,
                self._write(rows),
                [Everything()],
                branch=branch,
                summary=own,
                checks=checks,
                discard_on_failure=True,
            )
            operation.written_for = self.schema
            self.commit(staged(operation, wap_id))
            return self
        wanted = self._rows_to_delete(row_filter, branch, isolation, head_id(self.metadata, branch))
        return self._delete(wanted, self._write(rows), summary, wap_id)

    def delete(
        self,
        row_filter: str | Predicate,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
    ) -> Self:
        """Delete the rows of a branch that match a filter; where none does, nothing is committed.

        ConflictError if others change such rows meanwhile; `isolation` says how much of it counts ("serializable",
        "snapshot" or "none"), by default `write.delete.isolation-level`.
        """
        if row_filter is None:
            raise InvalidInputError("expected a filter, found none", hints=['"true" deletes all rows'])
        self.check_branch(branch)
        return self._delete(self._rows_to_delete(row_filter, branch, isolation), (), summary, wap_id)

    def overwrite_partitions(
        self,
        rows: ArrowRows,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
    ) -> Self:
        """Replace every partition that the rows are in; without rows there is nothing to do."""
        self.check_branch(branch)
        own, level = self._summary | _checked_summary(summary, wap_id), _given_level(isolation)
        files = self._write(rows)
        if files:
            operation = replace_partitions(
                self.io, self.metadata, files, branch=branch, summary=own, isolation=level, discard_on_failure=True
            )
            operation.written_for = self.schema
            self.commit(staged(operation, wap_id))
        return self

    def overwrite_files(
        self,
        files: Sequence[DataFile],
        *,
        removed: Sequence[DataFile] | None = None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Replace some files of a branch, by default all, by files that were written for this table.

        ConflictError if a file to be replaced was removed or lost rows since the branch was loaded here; what else
        others must not have changed is for `isolation` to say ("serializable" or "snapshot").
        """
        _check_files(files)
        check_ref_name(branch)
        removal: Removal = Everything()
        checks = self._checks_of_all(branch, isolation)
        if removed is not None:
            _check_files(removed)
            removal = RemovedFiles(tuple(removed), must_exist=True)
            since, level = head_id(self.metadata, branch), _given_level(isolation)
            checks = OverwriteChecks(since, level, EVERYTHING, removal.files, removal.files)
        own = self._summary | _checked_summary(summary, wap_id)
        operation = Overwrite(self.io, files, [removal], branch=branch, summary=own, checks=checks)
        self._commit_given(operation, files, wap_id, discard_on_failure=discard_on_failure)
        return self

    def replace_partitions(
        self,
        files: Sequence[DataFile],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Replace every partition that the files have rows in; without files there is nothing to do."""
        _check_files(files)
        own, level = self._summary | _checked_summary(summary, wap_id), _given_level(isolation)
        if files:
            operation = replace_partitions(self.io, self.metadata, files, branch=branch, summary=own, isolation=level)
            self._commit_given(operation, files, wap_id, discard_on_failure=discard_on_failure)
        return self

    def _rows_to_delete(
        self,
        row_filter: str | Predicate,
        branch: str,
        isolation: str | Isolation | None,
        since: int | Literal["head"] | None = "head",
    ) -> RowsToDelete:
        level = None if isolation == _NO_ISOLATION else isolation_level(self.metadata, "delete", isolation)
        # a filter that does not fit is refused before anything is written
        return RowsToDelete(bind_filter(to_predicate(row_filter), self.schema), branch, level, since)

    def _delete(
        self, rows: RowsToDelete, files: Sequence[DataFile], summary: Mapping[str, str] | None, wap_id: str | None
    ) -> Self:
        own = self._summary | _checked_summary(summary, wap_id)
        self.commit(staged(Delete(self.io, rows, files, summary=own), wap_id))
        return self

    def _checks_of_all(self, branch: str, isolation: str | Isolation | None) -> OverwriteChecks | None:
        """What others must not have committed where all rows of a branch are replaced."""
        level = _given_level(isolation)
        return OverwriteChecks(head_id(self.metadata, branch), level) if level else None

    def _commit_given(
        self, operation: Operation, files: Sequence[DataFile], wap_id: str | None, *, discard_on_failure: bool
    ) -> None:
        guarded = handed_over(operation, self.io, files, self.metadata, discard_on_failure=discard_on_failure)
        self.commit(staged(guarded, wap_id))

    def _write(self, rows: ArrowRows) -> list[DataFile]:
        with DataFileWriter(self.io, write_spec(self.metadata), f"00000-0-{uuid.uuid4()}") as writer:
            writer.write(rows)
            return writer.finish()


def _given_level(isolation: str | Isolation | None) -> Isolation | None:
    none = isolation is None or isolation == _NO_ISOLATION
    return None if none else parse_isolation(isolation, "the isolation level")


def _check_files(files: Sequence[DataFile]) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) for f in files):
        raise InvalidInputError(f"expected a list of data files, found {shown(files)}")
    for file in files:
        if file.content is not FileContent.DATA:
            raise InvalidInputError(
                f"expected a data file, found the delete file {file.file_path}",
                hints=["`row_delta` takes delete files"],
            )


def _checked_summary(summary: Mapping[str, str] | None, wap_id: str | None) -> dict[str, str]:
    return check_summary(summary) | wap_summary(wap_id)
