"""Conflict checks: whether what others committed since an operation looked at a branch makes the operation wrong.

Every check raises ConflictError with the snapshot that came first; the commit loop does not try such an operation
again, because it would have to be planned again. Operations decide which checks they need, and at which isolation
level.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import polars as pl

from bergline.catalog.conflicts import describe_snapshot
from bergline.errors import ConflictError
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestContent,
    is_deletion_vector,
)
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.table.commits.history_window import EVERYTHING, HistoryWindow, Scope
from bergline.table.manifests.removal import DeleteTargets, file_key

_ADDS_DATA: Final = frozenset({SnapshotOperation.APPEND, SnapshotOperation.OVERWRITE})
_ADDS_DELETES: Final = frozenset({SnapshotOperation.OVERWRITE, SnapshotOperation.DELETE})
_REMOVES_DATA: Final = frozenset({SnapshotOperation.OVERWRITE, SnapshotOperation.REPLACE, SnapshotOperation.DELETE})
_REWRITES_DATA: Final = frozenset({SnapshotOperation.OVERWRITE, SnapshotOperation.REPLACE})
_ADDS_VECTORS: Final = frozenset({SnapshotOperation.OVERWRITE, SnapshotOperation.DELETE, SnapshotOperation.REPLACE})

_ADDED = pl.col("status") == int(EntryStatus.ADDED)
_DELETED = pl.col("status") == int(EntryStatus.DELETED)


class Validation:
    """The checks of one attempt, on its base and the head of its branch.

    `since` is the snapshot that the operation read; None for a branch that was empty. Snapshots from before in the same
    transaction are `earlier`.
    """

    def __init__(
        self,
        io: FileIO,
        base: TableMetadata,
        parent: Snapshot | None,
        *,
        since: int | None,
        branch: str,
        earlier: Mapping[int, int | None] | None = None,
    ) -> None:
        self._window = HistoryWindow(io, base, parent, since=since, branch=branch, earlier=earlier or {})
        self._base = base

    def check_no_new_data(self, scope: Scope = EVERYTHING) -> None:
        """Nobody added a data file that may hold rows of the scope."""
        for file, snapshot in self._data(_ADDS_DATA, scope, _ADDED):
            raise self._conflict(snapshot, f"added {self._shown(file)}, which may hold rows that this one looked for")

    def check_no_removed_data(self, scope: Scope = EVERYTHING) -> None:
        """Nobody removed a data file that may hold rows of the scope."""
        for file, snapshot in self._data(_REMOVES_DATA, scope, _DELETED):
            raise self._conflict(snapshot, f"removed {self._shown(file)}, which may hold rows that this one looked for")

    def check_data_files_exist(
        self, paths: Collection[str], scope: Scope = EVERYTHING, *, also_deleted: bool = False
    ) -> None:
        """Nobody rewrote these data files; with `also_deleted`, nobody deleted them either."""
        operations = _REMOVES_DATA if also_deleted else _REWRITES_DATA
        entries = _DELETED & pl.col("file_path").is_in(list(paths))
        for file, snapshot in self._data(operations, scope, entries) if paths else ():
            raise self._conflict(snapshot, f"removed {self._shown(file)}, which this one builds on")

    def check_files_exist(self, files: Iterable[DataFile]) -> None:
        """Nobody removed one of these data or delete files."""
        keys = {file_key(f) for f in files}
        entries = _DELETED & pl.col("file_path").is_in([path for path, _ in keys])
        for content in ManifestContent:
            for file, snapshot in self._entries(content, _REMOVES_DATA, EVERYTHING, entries) if keys else ():
                if file_key(file) in keys:
                    raise self._conflict(snapshot, f"removed {self._shown(file)}, which this one builds on")

    def check_no_new_delete_files(self, scope: Scope = EVERYTHING) -> None:
        """Nobody added a delete file that may apply to rows of the scope."""
        for delete, snapshot in self._deletes(_ADDS_DELETES, scope):
            raise self._conflict(
                snapshot,
                f"added the delete file {self._shown(delete)}, which may be about rows that this one looked for",
            )

    def check_no_new_deletes_for(
        self, files: Collection[DataFile], scope: Scope = EVERYTHING, *, by_position_only: bool = False
    ) -> None:
        """Nobody deleted rows of these data files.

        With `by_position_only`, equality deletes are ignored: they still apply to rows that keep their sequence number.
        """
        if not files:
            return
        targets = DeleteTargets(files, self._base)
        for delete, snapshot in self._deletes(_ADDS_DELETES, scope):
            if by_position_only and delete.content is FileContent.EQUALITY_DELETES:
                continue
            hit = targets.of(delete)
            if hit:
                raise self._conflict(
                    snapshot, f"deleted rows of {self._shown(hit[0])}, which this one replaces, by {delete.file_path}"
                )

    def check_no_new_vectors(self, paths: Collection[str], scope: Scope = EVERYTHING) -> None:
        """Nobody added a deletion vector for one of these data files, each of which can have only one."""
        for delete, snapshot in self._deletes(_ADDS_VECTORS, scope) if paths else ():
            if is_deletion_vector(delete) and delete.referenced_data_file in paths:
                raise self._conflict(
                    snapshot,
                    f"added a deletion vector for {delete.referenced_data_file}, for which this one has another",
                )

    def _data(
        self, operations: Collection[SnapshotOperation], scope: Scope, entries: pl.Expr
    ) -> Iterator[tuple[DataFile, Snapshot]]:
        return self._entries(ManifestContent.DATA, operations, scope, entries)

    def _deletes(self, operations: Collection[SnapshotOperation], scope: Scope) -> Iterator[tuple[DataFile, Snapshot]]:
        # what was carried on in a manifest that they wrote anew has an older number
        newer = pl.col("sequence_number") > self._window.starting_number
        return self._entries(ManifestContent.DELETES, operations, scope, ~_DELETED & newer)

    def _entries(
        self, content: ManifestContent, operations: Collection[SnapshotOperation], scope: Scope, entries: pl.Expr
    ) -> Iterator[tuple[DataFile, Snapshot]]:
        for written in self._window.files(content, operations, scope, entries):
            yield written.file, written.snapshot

    def _shown(self, file: DataFile) -> str:
        return shown_file(file, self._base)

    def _conflict(self, snapshot: Snapshot, did: str) -> ConflictError:
        return conflict(self._window.branch, snapshot, did)


def shown_file(file: DataFile, base: TableMetadata) -> str:
    """A file with its partition, in words."""
    spec = base.specs_by_id[file.spec_id]
    partition: Any = spec.partition_path(base.schema_for(spec), file.partition)
    return f"{file.file_path} in partition `{partition}`" if partition else file.file_path


def conflict(branch: str, winner: Snapshot, did: str) -> ConflictError:
    """The error that names the snapshot that came first, and what it did."""
    return ConflictError(
        f"cannot commit to `{branch}`: {describe_snapshot(winner, [branch])} came first and {did}",
        hints=["look at the table as it is now and plan the operation again"],
    )
