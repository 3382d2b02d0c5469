"""Row delta: add rows, delete rows by delete files, and remove files, in one snapshot."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
import polars as pl

from bergline.errors import ConflictError, InvalidInputError
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    ManifestFile,
    is_deletion_vector,
)
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_columns, load_manifest_list
from bergline.table.commits.history_window import EVERYTHING, Scope
from bergline.table.commits.isolation import Isolation, RowLevelCommand
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.commits.validate import Validation
from bergline.table.manifests.external_files import check_removed
from bergline.table.manifests.filtering import ManifestFilter
from bergline.table.manifests.removal import RemovedFiles, file_key
from bergline.table.operations.append import AddedFiles

_FIRST_WITH_DELETES: Final = 2
_FIRST_WITH_VECTORS: Final = 3


class RowDeltaChecks(msgspec.Struct, frozen=True):
    """What a row delta asks for beyond what would break the table (see `validate`); the scope is what it looked at."""

    scope: Scope = EVERYTHING
    referenced: frozenset[str] = frozenset()
    """Data files that must still be there, because rows of them are deleted or updated."""
    deleted_files: bool = False
    """Whether nobody may have deleted those either, and the removed files must still be there."""
    removed_data: bool = False
    """Whether the removed data files must still be there."""
    new_data: bool = False
    """Whether nobody may have added rows of the scope."""
    new_deletes: bool = False
    """Whether nobody may have deleted rows of the scope."""
    updated: tuple[DataFile, ...] = ()
    """Data files with new versions of their rows among the added ones: nobody may have deleted rows of them."""


def row_delta_checks(
    command: RowLevelCommand, isolation: Isolation, scope: Scope, referenced: Iterable[str]
) -> RowDeltaChecks:
    """What a command of this kind asks for at a level of isolation.

    Who only deletes does not mind that others deleted the same rows; who wrote new versions of them does.
    """
    updates = command != "delete"
    return RowDeltaChecks(
        scope=scope,
        referenced=frozenset(referenced),
        deleted_files=updates,
        removed_data=True,
        new_data=isolation is Isolation.SERIALIZABLE,
        new_deletes=updates,
    )


class RowDelta(SnapshotProducer):
    """New data and delete files, and the parent's files without the removed ones.

    `since` is the snapshot whose rows the delete files are about. A new deletion vector replaces the one that
    its data file had then: it holds the older positions too, and the older one is among the removed files.
    """

    def __init__(
        self,
        io: FileIO,
        added: Sequence[DataFile],
        removed: Sequence[DataFile] = (),
        *,
        since: int | None,
        checks: RowDeltaChecks | None = None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        discard_on_failure: bool = False,
        starts_branch: bool = True,
        written_schema: Schema | None = None,
        written_version: int | None = None,
        rewritten: Sequence[DataFile] = (),
    ) -> None:
        """`written_version` is the format version that delete files were written for by the operation itself.

        `rewritten` are the data files of which the added ones hold new versions of rows, with the ids that they had.
        """
        super().__init__(
            io,
            branch,
            summary or {},
            files=added,
            discard_on_failure=discard_on_failure,
            starts_branch=starts_branch,
            written_schema=written_schema,
        )
        self._since = since
        self._rewritten = tuple(rewritten)
        self._written_version = written_version
        self._checks = checks or RowDeltaChecks()
        self._added = AddedFiles(self, added)
        self._deletes = [f for f in self._added.files if f.content is not FileContent.DATA]
        self._removed = {file_key(f): f for f in removed}
        self._vectors = {f.referenced_data_file or "": f for f in self._deletes if is_deletion_vector(f)}
        exact = tuple(f for f in removed if self._must_exist(f))
        rest = tuple(f for f in removed if not self._must_exist(f))
        self._filter = ManifestFilter(io, self, [RemovedFiles(exact, must_exist=True), RemovedFiles(rest)])
        self._are_known = False
        self._check_own()

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """New manifests, then the parent's without the removed files."""
        self._check_version(base)
        check_deletes_fit(base, self._deletes)
        if self._removed and not self._are_known:
            heads = (parent, base.snapshots_by_id.get(self._since or 0))
            check_removed(self._io, base, heads, self._removed.values(), self._branch)
            self._are_known = True
        before = load_manifest_list(self._io, parent) if parent else []
        if parent is not None:
            self._validate(base, parent)
            self._check_no_second_vector(before)
        added = self._added.manifests(base)
        filtered = self._filter.apply(base, before, added=added)
        return Draft(
            self._operation,
            (*added, *filtered.manifests),
            added=self._added.files,
            removed=filtered.removed,
            replaced=filtered.replaced,
            rewritten=self._rewritten,
        )

    def _check_version(self, base: TableMetadata) -> None:
        if self._deletes and self._written_version not in {None, base.format_version}:
            raise ConflictError(
                f"another commit upgraded the table to format version {base.format_version} meanwhile, "
                "which has delete files of another kind",
                hints=["look at the table as it is now and plan the operation again"],
            )

    @property
    def _operation(self) -> SnapshotOperation:
        adds_data = len(self._added.files) > len(self._deletes)
        removes_data = any(f.content is FileContent.DATA for f in self._removed.values())
        if adds_data and not self._deletes and not removes_data:
            return SnapshotOperation.APPEND
        return SnapshotOperation.DELETE if self._deletes and not adds_data else SnapshotOperation.OVERWRITE

    def _validate(self, base: TableMetadata, parent: Snapshot) -> None:
        checks = self._checks
        wanted = checks.referenced or checks.deleted_files or checks.new_data or checks.new_deletes
        wanted = wanted or any(map(self._must_exist, self._removed.values()))
        if not wanted and not self._vectors:
            return
        validation = Validation(self._io, base, parent, since=self._since, branch=self._branch, earlier=self._earlier)
        validation.check_data_files_exist(checks.referenced, checks.scope, also_deleted=checks.deleted_files)
        validation.check_files_exist([f for f in self._removed.values() if self._must_exist(f)])
        if checks.new_data:
            validation.check_no_new_data(checks.scope)
        if checks.new_deletes:
            data = [f for f in self._removed.values() if f.content is FileContent.DATA]
            validation.check_no_new_deletes_for(data, checks.scope)
            validation.check_no_new_delete_files(checks.scope)
        validation.check_no_new_deletes_for(checks.updated, checks.scope)
        validation.check_no_new_vectors(self._vectors.keys(), checks.scope)

    def _must_exist(self, removed: DataFile) -> bool:
        of_data = self._checks.removed_data and removed.content is FileContent.DATA
        return self._checks.deleted_files or of_data

    def _check_own(self) -> None:
        """Refuse files that contradict each other."""
        paths = {f.file_path for f in self._removed.values() if f.content is FileContent.DATA}
        referenced = {path for f in self._deletes if (path := _position_target(f)) is not None}
        if both := paths & (referenced | self._checks.referenced):
            raise InvalidInputError(f"expected to remove a data file or delete rows of it, found both for {min(both)}")
        if len(self._vectors) < sum(map(is_deletion_vector, self._deletes)):
            raise InvalidInputError("expected one deletion vector for each data file, found several for one")

    def _check_no_second_vector(self, before: Sequence[ManifestFile]) -> None:
        """Two live deletion vectors for one data file make the table unreadable."""
        if not self._vectors:
            return
        manifests = [m for m in before if m.content is ManifestContent.DELETES and m.has_live_files]
        wanted = pl.Series(list(self._vectors), dtype=pl.String).implode()
        live = pl.col("status") != int(EntryStatus.DELETED)
        is_vector = pl.col("file_format").str.to_uppercase() == "PUFFIN"
        for frame in load_columns(self._io, manifests):
            found = frame.filter(live & is_vector & pl.col("referenced_data_file").is_in(wanted))
            names = ("file_path", "content_offset", "referenced_data_file")
            for path, offset, data_file in found.select(names).iter_rows():
                if (path, offset) not in self._removed:
                    raise ConflictError(
                        f"expected the deletion vector of {data_file} to be removed with the new one, "
                        f"found it kept in {path}",
                        hints=["put its positions into the new one, and remove it"],
                    )


def check_deletes_fit(base: TableMetadata, deletes: Sequence[DataFile]) -> None:
    """Refuse delete files that the table's format version does not have; another commit may have upgraded it."""
    version = base.format_version
    for file in deletes:
        _check_complete(file)
        if version < _FIRST_WITH_DELETES:
            raise InvalidInputError(f"expected format version 2 or higher for delete files, found {version}")
        vector = is_deletion_vector(file)
        if file.content is FileContent.POSITION_DELETES and vector != (version >= _FIRST_WITH_VECTORS):
            expected = "deletion vectors" if version >= _FIRST_WITH_VECTORS else "position delete files"
            raise InvalidInputError(
                f"expected {expected} in a table of format version {version}, found {file.file_path}"
            )


def _check_complete(delete: DataFile) -> None:
    """Refuse a delete file that nobody could read."""
    reference = (delete.referenced_data_file, delete.content_offset, delete.content_size_in_bytes)
    if is_deletion_vector(delete) and None in reference:
        raise InvalidInputError(
            f"expected a data file, an offset and a size for a deletion vector, found none in {delete.file_path}"
        )
    if delete.content is FileContent.EQUALITY_DELETES and not delete.equality_ids:
        raise InvalidInputError(f"expected equality ids, found none for {delete.file_path}")


def _position_target(delete: DataFile) -> str | None:
    return only_data_file(delete) if delete.content is FileContent.POSITION_DELETES else None
