"""What a user does to the files of a table: every method is one snapshot on a branch."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Self

from bergline.arguments import check_list, check_positive, check_whole, shown
from bergline.errors import ConflictError, InvalidInputError, NotFoundError, UnsupportedError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.predicate import Predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.table.changes.compaction import CompactionRequest, CompactionResult, compacted
from bergline.table.changes.handed_over import handed_over
from bergline.table.changes.rewrite_files import RewriteFiles, Rewritten
from bergline.table.changes.rewrite_manifests import RewriteManifests
from bergline.table.changes.row_delta import RowDelta, RowDeltaChecks, row_delta_checks
from bergline.table.commits.history_window import Scope
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, RowLevelCommand, isolation_level
from bergline.table.commits.snapshot_producer import branch_head, check_branch_exists
from bergline.table.handle import TableHandle
from bergline.table.manifests.given_files import of_unknown_writers
from bergline.table.references.staged import staged
from bergline.table.scans.scan import to_predicate

_COMPACTIONS = 10
_DATA = frozenset({FileContent.DATA})
_DELETES = frozenset({FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES})


class TableMaintaining(TableHandle):
    """Files that were written for this table are added and removed.

    They belong to whoever made them, and stay whatever comes, unless `discard_on_failure` hands them over; then they
    are deleted if the commit certainly failed, except for those that a snapshot of the table names. All are looked at
    first (one footer each): InvalidInputError if one is not there, has another number of rows or is on the branch
    already, or one to remove never was.
    """

    def row_delta(
        self,
        *,
        add: Sequence[DataFile] = (),
        deletes: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        branch: str = MAIN,
        since: int | None = None,
        isolation: str | Isolation | None = None,
        row_filter: str | Predicate | None = None,
        referenced: Iterable[str] = (),
        summary: Mapping[str, str] | None = None,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Add data files and delete files, and remove files, in one snapshot.

        `since` is the snapshot that the files were made from, by default the branch's head as last loaded. What others
        committed after it must not contradict: `isolation` says how much of it does ("serializable", "snapshot", or
        "none" for what would break the table), by default what the table says; `row_filter` says which rows the
        operation looked at, by default all; `referenced` names data files that deletes of several files are about.
        With a `wap_id` the snapshot is only staged.
        """
        _check_files(add, _DATA, "data files")
        _check_files(deletes, _DELETES, "delete files")
        _check_files(remove, _DATA | _DELETES, "files")
        if not (add or deletes or remove):
            raise InvalidInputError("expected files to add or to remove, found none")
        add = of_unknown_writers(add)
        scope = Scope(bind_filter(to_predicate(row_filter), self.schema))
        about = {*check_list(referenced, "data file"), *_targets(deletes)}
        if isolation == NO_ISOLATION:
            checks = RowDeltaChecks(scope=scope, referenced=frozenset(about))
        else:
            command: RowLevelCommand = "merge" if add else "delete"
            checks = row_delta_checks(command, isolation_level(self.metadata, command, isolation), scope, about)
        operation = RowDelta(
            self.io,
            [*add, *deletes],
            remove,
            since=self._start(branch, since),
            checks=checks,
            branch=branch,
            summary=self._full_summary(summary, wap_id),
        )
        files = [*add, *deletes]
        guarded = handed_over(operation, self.io, files, self.metadata, discard_on_failure=discard_on_failure)
        self.commit(staged(guarded, wap_id))
        return self

    def rewrite_files(
        self,
        *,
        add: Sequence[DataFile],
        remove: Sequence[DataFile],
        branch: str = MAIN,
        since: int | None = None,
        sequence_number: int | None = None,
        summary: Mapping[str, str] | None = None,
        discard_on_failure: bool = False,
    ) -> Self:
        """Replace files by others with the same rows: as many, or fewer where deletes apply to the removed ones.

        `since` is the snapshot that the rows were read from, by default the branch's head as last loaded; whoever has
        deleted rows of the removed files after it is a conflict. With a `sequence_number`, that of the snapshot read,
        later deletes by equality apply to the added files too, and are none.
        """
        _check_files(add, _DATA | _DELETES, "files")
        _check_files(remove, _DATA | _DELETES, "files")
        number = None if sequence_number is None else check_whole(sequence_number, "a sequence number")
        if number is not None and self._chain is not None:
            raise UnsupportedError(
                "expected no sequence number in a transaction, in which snapshots may get other numbers, "
                f"found {number}"
            )
        rewritten = Rewritten(tuple(of_unknown_writers(add)), tuple(remove), sequence_number=number)
        operation = RewriteFiles(
            self.io,
            rewritten,
            since=self._start(branch, since),
            branch=branch,
            summary=self._full_summary(summary),
        )
        self.commit(handed_over(operation, self.io, add, self.metadata, discard_on_failure=discard_on_failure))
        return self

    def compact(
        self,
        row_filter: str | Predicate | None = None,
        *,
        branch: str = MAIN,
        target_size: int | None = None,
        min_files: int = 2,
        summary: Mapping[str, str] | None = None,
    ) -> CompactionResult:
        """Rewrite small files and files with deletes to files of about the target size, in this process.

        The filter picks files: those that may hold matching rows. Appends of others are never in the way; where others
        delete rows of a file that is being rewritten, compaction starts again on the new head, a few times.
        """
        request = CompactionRequest(
            to_predicate(row_filter),
            None if target_size is None else check_positive(target_size, "target_size"),
            check_positive(min_files, "min_files"),
        )
        table_uuid, attempts = self.metadata.table_uuid, 0
        while True:
            attempts += 1
            self.refresh()
            if self.metadata.table_uuid != table_uuid:
                raise ConflictError(f"expected table `{self.name}` as it was, found it dropped and re-created")
            try:
                return self._compact(request, branch, summary)
            except (ConflictError, NotFoundError) as error:
                if attempts == _COMPACTIONS or not self._may_be_better_now(error):
                    raise

    def rewrite_manifests(
        self,
        manifests: Iterable[str] | None = None,
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
    ) -> Self:
        """Put the entries of manifests, given by path or all, into manifests of the target size, by partition."""
        self._start(branch, None)
        operation = RewriteManifests(
            self.io,
            paths=None if manifests is None else check_list(manifests, "manifest"),
            branch=branch,
            summary=self._full_summary(summary),
        )
        self.commit(operation)
        return self

    def _compact(self, request: CompactionRequest, branch: str, summary: Mapping[str, str] | None) -> CompactionResult:
        since, own = self._start(branch, None), self._full_summary(summary)
        check_branch_exists(self.metadata, branch)
        if since is None:
            return CompactionResult()
        pinned = self._chain is None
        rewritten = compacted(self.io, self.metadata, self.metadata.snapshot(since), request, pinned=pinned)
        if rewritten is None:
            return CompactionResult()
        operation = RewriteFiles(self.io, rewritten, since=since, branch=branch, summary=own, discard_on_failure=True)
        committed = self.commit(operation).snapshot(operation.snapshot_id)
        return CompactionResult(
            rewritten_data_files=len(rewritten.removed),
            added_data_files=len(rewritten.added),
            rewritten_bytes=sum(f.file_size_in_bytes for f in rewritten.removed),
            removed_delete_files=int(committed.summary.get("removed-delete-files", "0")),
        )

    def _may_be_better_now(self, error: ConflictError | NotFoundError) -> bool:
        """Whether to look again: files that are gone may have been expired, but only after the table had moved on."""
        if self._chain is not None:
            return False
        if isinstance(error, ConflictError):
            return True
        return error.kind == "file" and self._catalog.load_table(self.name).metadata_location != self.metadata_location

    def _start(self, branch: str, since: int | None) -> int | None:
        """The snapshot that an operation looked at: the one that was given, or the branch's head as last loaded."""
        check_ref_name(branch)
        head = branch_head(self.metadata, branch)
        if since is not None:
            return check_whole(since, "a snapshot id")
        return None if head is None else head.snapshot_id


def _check_files(files: Any, kinds: Collection[FileContent], what: str) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) and f.content in kinds for f in files):
        raise InvalidInputError(f"expected a list of {what}, found {shown(files)}")


def _targets(deletes: Iterable[DataFile]) -> set[str]:
    by_position = (d for d in deletes if d.content is FileContent.POSITION_DELETES)
    return {path for d in by_position if (path := only_data_file(d)) is not None}
