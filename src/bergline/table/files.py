"""Commits of files that were written elsewhere: every method creates one snapshot on a branch, or a staged one."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from bergline.arguments import check_list, check_texts, check_whole, shown
from bergline.catalog.table_locations import OwnFiles
from bergline.errors import InvalidInputError, UnsupportedError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.predicate import Predicate
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import DataFile, FileContent
from bergline.format.metadata.refs import MAIN, check_ref_name
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_lists
from bergline.table.commits.branches import check_write_branch, head_id
from bergline.table.commits.history_window import EVERYTHING, Scope
from bergline.table.commits.isolation import NO_ISOLATION, Isolation, RowLevelCommand, isolation_level
from bergline.table.commits.operation import Change, CommitStamp, Landed, Operation
from bergline.table.engine.row_engine import RowEngine, check_row_engine
from bergline.table.handle import TableHandle
from bergline.table.imports.add_files import AddFiles, described_files
from bergline.table.imports.source_files import matching_spec, pick_files, source_files
from bergline.table.manifests.external_files import live_at, without_physical_schemas
from bergline.table.manifests.removal import Everything, Removal, RemovedFiles
from bergline.table.operations.append import Append
from bergline.table.operations.overwrite import Overwrite, OverwriteChecks
from bergline.table.operations.replace_partitions import replace_partitions
from bergline.table.operations.rewrite_files import RewriteFiles, Rewritten
from bergline.table.operations.row_delta import RowDelta, RowDeltaChecks, row_delta_checks
from bergline.table.operations.validate_from import validation_start
from bergline.table.references.staged import staged
from bergline.table.scans.scan import TableScan, to_predicate

_DATA: Final = frozenset({FileContent.DATA})
_DELETES: Final = frozenset({FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES})


class TableFiles:
    """Adds, replaces and removes files that were written for this table.

    They belong to the caller and are kept whatever happens, unless `discard_on_failure` transfers them: then they are
    deleted if the commit certainly failed, except for those that a snapshot of the table references. All are checked
    first (one footer each): InvalidInputError if one does not exist, has another number of rows or is on the branch
    already, or if one to remove never was.

    With a `wap_id` a snapshot is staged, as for `TableWrites`.
    """

    def __init__(self, table: TableHandle) -> None:
        self._table = table

    def append_files(
        self,
        files: Sequence[DataFile],
        *,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        fast: bool = False,
        wap_id: str | None = None,
        discard_on_failure: bool = False,
    ) -> None:
        """Add files that were written for this table."""
        _check_data_files(files)
        files = without_physical_schemas(files)
        own = self._table.snapshot_summary(summary, wap_id)
        operation = Append(self._table.io, files, branch=branch, summary=own, fast=fast)
        self._commit(operation, files, wap_id, discard_on_failure=discard_on_failure)

    def add_files(
        self,
        source: str | Iterable[str] | Mapping[str, Mapping[str, str]],
        *,
        partition_filter: Mapping[str, str] | None = None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        wap_id: str | None = None,
        engine: RowEngine | None = None,
    ) -> list[DataFile]:
        """Add Parquet files of other programs in place, and return them with their metrics.

        The source is a directory, whose directories `column=value` name partitions, a list of files in such
        directories, or files with the values of their partitions; `partition_filter` selects partitions. The table gets
        a name mapping if it has none. Footers are read in this process, or by Spark's executors if `engine` is
        `bergline.spark.row_engine(spark)`. Nothing is committed if no file is selected.
        """
        metadata, io = self._table.metadata, self._table.io
        used = check_row_engine(engine)
        own = self._table.snapshot_summary(summary, wap_id)
        check_write_branch(metadata, branch)
        files = source_files(io, source, metadata.spec)
        if not files:
            return []
        spec = matching_spec(metadata, [name for name, _ in files[0].values])
        picked = pick_files(files, metadata, spec, check_texts(partition_filter or {}, "partition value"))
        if not picked:
            return []
        found = described_files(io, metadata, spec, picked, used)
        self._table.commit(staged(AddFiles(io, found, metadata, branch=branch, summary=own), wap_id))
        return found

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
    ) -> None:
        """Replace some files of a branch, by default all, by files that were written for this table.

        ConflictError if a file to be replaced was removed or lost rows since the branch was loaded here; what else
        others must not have changed is for `isolation` to say ("serializable" or "snapshot"), and `validate_from` says
        since which scan or snapshot.
        """
        _check_data_files(files)
        files = without_physical_schemas(files)
        check_ref_name(branch)
        validate = validation_start(self._table.metadata, branch, isolation, validate_from)
        removal: Removal = Everything()
        checks = OverwriteChecks(validate.snapshot_id, validate.isolation) if validate else None
        if removed is not None:
            _check_data_files(removed)
            removal = RemovedFiles(tuple(removed), must_exist=True)
            since, level = head_id(self._table.metadata, branch), None
            if validate is not None:
                since, level = validate.snapshot_id, validate.isolation
            checks = OverwriteChecks(since, level, EVERYTHING, removal.files, removal.files)
        own = self._table.snapshot_summary(summary, wap_id)
        operation = Overwrite(self._table.io, files, [removal], branch=branch, summary=own, checks=checks)
        self._commit(operation, files, wap_id, discard_on_failure=discard_on_failure)

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
    ) -> None:
        """Replace every partition that the files have rows in; without files there is nothing to do."""
        _check_data_files(files)
        files = without_physical_schemas(files)
        own = self._table.snapshot_summary(summary, wap_id)
        validate = validation_start(self._table.metadata, branch, isolation, validate_from)
        if files:
            operation = replace_partitions(
                self._table.io, self._table.metadata, files, branch=branch, summary=own, validate=validate
            )
            self._commit(operation, files, wap_id, discard_on_failure=discard_on_failure)

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
    ) -> None:
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
        add = without_physical_schemas(add)
        scope = Scope(bind_filter(to_predicate(row_filter), self._table.schema))
        about = {*check_list(referenced, "data file"), *_targets(deletes)}
        if isolation == NO_ISOLATION:
            checks = RowDeltaChecks(scope=scope, referenced=frozenset(about))
        else:
            command: RowLevelCommand = "merge" if add else "delete"
            checks = row_delta_checks(command, isolation_level(self._table.metadata, command, isolation), scope, about)
        operation = RowDelta(
            self._table.io,
            [*add, *deletes],
            remove,
            since=self._start(branch, since),
            checks=checks,
            branch=branch,
            summary=self._table.snapshot_summary(summary, wap_id),
        )
        files = [*add, *deletes]
        self._commit(operation, files, wap_id, discard_on_failure=discard_on_failure)

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
    ) -> None:
        """Replace files by others with the same rows: as many, or fewer if deletes apply to the removed ones.

        `since` is the snapshot that the rows were read from, by default the branch's head as last loaded; whoever has
        deleted rows of the removed files after it is a conflict. With a `sequence_number`, that of the snapshot read,
        later deletes by equality apply to the added files too, and are none.
        """
        _check_files(add, _DATA | _DELETES, "files")
        _check_files(remove, _DATA | _DELETES, "files")
        number = None if sequence_number is None else check_whole(sequence_number, "a sequence number")
        if number is not None and self._table.in_transaction:
            raise UnsupportedError(
                "expected no sequence number in a transaction, in which snapshots may get other numbers, "
                f"found {number}"
            )
        rewritten = Rewritten(tuple(without_physical_schemas(add)), tuple(remove), sequence_number=number)
        operation = RewriteFiles(
            self._table.io,
            rewritten,
            since=self._start(branch, since),
            branch=branch,
            summary=self._table.snapshot_summary(summary),
        )
        self._commit(operation, add, None, discard_on_failure=discard_on_failure)

    def _start(self, branch: str, since: int | None) -> int | None:
        """The snapshot that an operation was planned on: the given one, or the branch's head as last loaded."""
        check_write_branch(self._table.metadata, branch)
        if since is not None:
            return check_whole(since, "a snapshot id")
        return head_id(self._table.metadata, branch)

    def _commit(
        self, operation: Operation, files: Sequence[DataFile], wap_id: str | None, *, discard_on_failure: bool
    ) -> None:
        if discard_on_failure:
            operation = _DiscardOnFailure(operation, self._table.io, files, self._table.metadata)
        self._table.commit(staged(operation, wap_id))


class _DiscardOnFailure:
    """An operation that adds files which are deleted if it fails.

    Files that a snapshot of the table references, as it was last loaded, are kept: giving a file that is live already
    is a mistake, and the table must not lose it.
    """

    def __init__(self, operation: Operation, io: FileIO, files: Sequence[DataFile], loaded: TableMetadata) -> None:
        self._operation = operation
        self._io = io
        self._paths = list({f.file_path: None for f in files})  # a Puffin file holds several vectors
        self._loaded = loaded

    @property
    def needs_validation(self) -> bool:
        """Whether the operation can become wrong."""
        return self._operation.needs_validation

    def attempt(self, base: TableMetadata, stamp: CommitStamp) -> Change:
        """The operation's change."""
        self._loaded = base
        return self._operation.attempt(base, stamp)

    def settled(self, landed: Landed | None) -> None:
        """Remove what nothing needs, and the files if nothing landed."""
        self._operation.settled(landed)
        if landed is not None:
            return
        lists = load_manifest_lists(self._io, self._loaded.snapshots)
        manifests = {m.manifest_path: m for manifests in lists for m in manifests}
        needed = {path for path, _ in live_at(self._io, manifests.values(), self._paths)}
        own = OwnFiles(self._loaded)
        self._io.delete([path for path in self._paths if path not in needed and own.has(path)])


def _check_data_files(files: Sequence[DataFile]) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) for f in files):
        raise InvalidInputError(f"expected a list of data files, found {shown(files)}")
    for file in files:
        if file.content is not FileContent.DATA:
            raise InvalidInputError(
                f"expected a data file, found the delete file {file.file_path}",
                hints=["`row_delta` takes delete files"],
            )


def _check_files(files: Any, kinds: Collection[FileContent], what: str) -> None:
    if not isinstance(files, Sequence) or not all(isinstance(f, DataFile) and f.content in kinds for f in files):
        raise InvalidInputError(f"expected a list of {what}, found {shown(files)}")


def _targets(deletes: Iterable[DataFile]) -> set[str]:
    by_position = (d for d in deletes if d.content is FileContent.POSITION_DELETES)
    return {path for d in by_position if (path := only_data_file(d)) is not None}
