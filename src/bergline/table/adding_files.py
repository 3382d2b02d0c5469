"""Files that a user adds to a table: every method is one snapshot on a branch, or a staged one."""

from collections.abc import Mapping, Sequence
from typing import Self

from bergline.arguments import shown
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.table.changes.append import Append
from bergline.table.changes.handed_over import handed_over
from bergline.table.changes.overwrite import Overwrite, OverwriteChecks
from bergline.table.changes.replace_partitions import head_id, replace_partitions
from bergline.table.changes.validate_from import validation_start
from bergline.table.commits.history_window import EVERYTHING
from bergline.table.commits.isolation import Isolation
from bergline.table.commits.operation import Operation
from bergline.table.handle import TableHandle
from bergline.table.manifests.given_files import of_unknown_writers
from bergline.table.manifests.removal import Everything, Removal, RemovedFiles
from bergline.table.references.staged import staged
from bergline.table.scans.scan import TableScan


class TableAddingFiles(TableHandle):
    """Files that were written for this table.

    They belong to whoever made them: those that are given stay, whatever comes, unless `discard_on_failure` hands
    them over; then they are deleted if the commit certainly failed, except for those that a snapshot of the table
    names. All are looked at first (one footer each): InvalidInputError if one is not there, has another number of rows
    or is on the branch already.

    With a `wap_id` a snapshot is staged, as `TableWriting` says.
    """

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
        files = of_unknown_writers(files)
        own = self._full_summary(summary, wap_id)
        operation = Append(self.io, files, branch=branch, summary=own, fast=fast)
        self._commit_given(operation, files, wap_id, discard_on_failure=discard_on_failure)
        return self

    def overwrite_files(
        self,
        files: Sequence[DataFile],
        *,
        removed: Sequence[DataFile] | None = None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        isolation: str | Isolation | None = None,
        validate_from: TableScan | int | None = None,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Replace some files of a branch, by default all, by files that were written for this table.

        ConflictError if a file to be replaced was removed or lost rows since the branch was loaded here; what else
        others must not have changed is for `isolation` to say ("serializable" or "snapshot"), and `validate_from` says
        since which scan or snapshot.
        """
        _check_files(files)
        files = of_unknown_writers(files)
        check_ref_name(branch)
        validate = validation_start(self.metadata, branch, isolation, validate_from)
        removal: Removal = Everything()
        checks = OverwriteChecks(validate.snapshot_id, validate.isolation) if validate else None
        if removed is not None:
            _check_files(removed)
            removal = RemovedFiles(tuple(removed), must_exist=True)
            since, level = head_id(self.metadata, branch), None
            if validate is not None:
                since, level = validate.snapshot_id, validate.isolation
            checks = OverwriteChecks(since, level, EVERYTHING, removal.files, removal.files)
        own = self._full_summary(summary, wap_id)
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
        validate_from: TableScan | int | None = None,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Replace every partition that the files have rows in; without files there is nothing to do."""
        _check_files(files)
        files = of_unknown_writers(files)
        own = self._full_summary(summary, wap_id)
        validate = validation_start(self.metadata, branch, isolation, validate_from)
        if files:
            operation = replace_partitions(self.io, self.metadata, files, branch=branch, summary=own, validate=validate)
            self._commit_given(operation, files, wap_id, discard_on_failure=discard_on_failure)
        return self

    def _commit_given(
        self, operation: Operation, files: Sequence[DataFile], wap_id: str | None, *, discard_on_failure: bool
    ) -> None:
        guarded = handed_over(operation, self.io, files, self.metadata, discard_on_failure=discard_on_failure)
        self.commit(staged(guarded, wap_id))


def _check_files(files: Sequence[DataFile]) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) for f in files):
        raise InvalidInputError(f"expected a list of data files, found {shown(files)}")
    for file in files:
        if file.content is not FileContent.DATA:
            raise InvalidInputError(
                f"expected a data file, found the delete file {file.file_path}",
                hints=["`row_delta` takes delete files"],
            )
