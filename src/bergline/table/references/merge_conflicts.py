"""Conflicts of a merge: what the other line of history did since the common ancestor that prevents a replay."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

import msgspec
import polars as pl

from bergline.catalog.conflicts import describe_snapshot
from bergline.format.deletes.delete_files import FILE_PATH_ID, only_data_file
from bergline.format.manifest.manifest import DataFile, EntryStatus, FileContent, ManifestContent, partition_key
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_list
from bergline.scan.shared_keys import may_share_keys
from bergline.table.commits.history_window import EVERYTHING, HistoryWindow, WrittenFile
from bergline.table.commits.validate import shown_file
from bergline.table.manifests.removal import DeleteTargets
from bergline.table.references.snapshot_change import ChangedFile, SnapshotChange

_ADDED = pl.col("status") == int(EntryStatus.ADDED)
_DELETED = pl.col("status") == int(EntryStatus.DELETED)
_DELETED_ROWS: Final = "deleted rows"
_TOOK_BACK: Final = "took back deletes"


class MergeConflict(msgspec.Struct, frozen=True):
    """One conflict: a snapshot, and what it did with a file."""

    snapshot: Snapshot
    did: str


class MergeConflicts:
    """The conflicts with the other line, in one attempt; `since` is the common ancestor, None if there is none."""

    def __init__(self, io: FileIO, base: TableMetadata, head: Snapshot, *, since: int | None, branch: str) -> None:
        self._io = io
        self._base = base
        self._branch = branch
        self._window = HistoryWindow(io, base, head, since=since, branch=branch, earlier={})
        self._number = self._window.starting_number

    def find(
        self, change: SnapshotChange, *, known: Collection[int], replayed: Mapping[str, int]
    ) -> list[MergeConflict]:
        """Everything that prevents the replay of a change.

        `known` are snapshots of this line whose changes were in what the change was made on. `replayed` data files,
        with their sequence numbers here, are added by the same merge: nobody on this line can have touched them, except
        by equality under a later sequence number.
        """
        theirs = _Theirs(self._window, known)
        if not theirs.any:
            return []
        return [
            *self._twice(change, theirs),
            *self._touched(change, theirs, replayed),
            *self._new_rows(change, theirs),
            *self._needed_deletes(change, theirs),
            *self._taken_back(change, theirs),
        ]

    def described(self, conflict: MergeConflict) -> str:
        """A description of a conflict."""
        return f"{describe_snapshot(conflict.snapshot, [self._branch])} {conflict.did}"

    def _twice(self, change: SnapshotChange, theirs: "_Theirs") -> Iterator[MergeConflict]:
        """Added files that are there already: a snapshot lists a file only once."""
        paths = [f.file_path for f in change.added_data]
        for written in theirs.data(_ADDED & pl.col("file_path").is_in(paths)) if paths else ():
            yield MergeConflict(written.snapshot, f"added {self._shown(written.file)} too")

    def _touched(
        self, change: SnapshotChange, theirs: "_Theirs", replayed: Mapping[str, int]
    ) -> Iterator[MergeConflict]:
        """Data files that the change removes or deletes rows of must be unchanged."""
        touched = {f.file_path: f for f in _data_files_of(change)}
        wide = [d.file for d in change.added_deletes if _is_wide_by_position(d.file)]
        for written in theirs.data(_DELETED) if touched or wide else ():
            path = written.file.file_path
            if (path in touched and path not in replayed) or any(_may_be_about(d, written.file) for d in wide):
                yield MergeConflict(written.snapshot, f"removed {self._shown(written.file)}")
        older = {f.file.file_path: f for f in change.added if f.is_data and f.pinned and f.number <= self._number}
        touched |= {path: f.file for path, f in older.items()}
        if not touched and not wide:
            return
        known = (f for f in (*change.removed, *older.values()) if f.number <= self._number)
        numbers = {f.file.file_path: f.number for f in known} | dict(replayed)
        targets = DeleteTargets(list(touched.values()), self._base)
        for written, did in theirs.changed_deletes():
            harmless = (
                self._only_moves(change, written, replayed) if did == _DELETED_ROWS else self._is_obsolete(written)
            )
            if harmless:
                continue
            by_equality = written.file.content is FileContent.EQUALITY_DELETES
            for file in targets.of(written.file):
                path = file.file_path
                new_here = path in replayed or path in older
                applies = numbers.get(path, 0) < written.number if by_equality else not new_here
                if applies:
                    yield MergeConflict(written.snapshot, f"{did} of {self._shown(file)} by {written.file.file_path}")
            for delete in wide:
                if _same_partition(delete, written.file, self._base):
                    yield MergeConflict(
                        written.snapshot, f"{did} beside {delete.file_path} by {written.file.file_path}"
                    )

    def _new_rows(self, change: SnapshotChange, theirs: "_Theirs") -> Iterator[MergeConflict]:
        """Nothing may have been added that the change would delete now without having known of it."""
        equality = [d.file for d in change.added_deletes if self._deletes_new_rows(d)]
        if not change.replaced and not equality:
            return
        # the key of an unpartitioned spec is its id alone: then the whole table was replaced
        whole = any(len(key) == 1 for key in change.replaced)
        for written in theirs.new_rows():
            if whole or partition_key(written.file) in change.replaced:
                yield MergeConflict(
                    written.snapshot, f"added {self._shown(written.file)}, to a partition that was replaced"
                )
            for delete in equality:
                if _same_partition(written.file, delete, self._base) and may_share_keys(
                    written.file, delete, self._base
                ):
                    yield MergeConflict(
                        written.snapshot,
                        f"added {self._shown(written.file)}, of which {delete.file_path} would delete rows by equality",
                    )

    def _needed_deletes(self, change: SnapshotChange, theirs: "_Theirs") -> Iterator[MergeConflict]:
        """Removed equality deletes may be needed by rows that were rewritten with an older sequence number."""
        gone = [d for d in change.removed_deletes if d.file.content is FileContent.EQUALITY_DELETES]
        for written in theirs.data(_ADDED) if gone else ():
            for delete in gone:
                if written.number < delete.number <= self._number and _same_partition(
                    written.file, delete.file, self._base
                ):
                    yield MergeConflict(
                        written.snapshot, f"added {self._shown(written.file)}, needing {delete.file.file_path}"
                    )

    def _taken_back(self, change: SnapshotChange, theirs: "_Theirs") -> Iterator[MergeConflict]:
        """Rows that reappear because deletes of several files were removed must still be in their files."""
        if change.operation is SnapshotOperation.REPLACE:
            return
        gone = [d for d in change.removed_deletes if only_data_file(d.file) is None]
        for written in theirs.data(_DELETED) if gone else ():
            for delete in gone:
                if self._may_have_deleted(delete, written):
                    yield MergeConflict(
                        written.snapshot,
                        f"removed {self._shown(written.file)}, of which {delete.file.file_path} deleted rows",
                    )

    def _may_have_deleted(self, delete: ChangedFile, written: WrittenFile) -> bool:
        if delete.file.content is FileContent.POSITION_DELETES:
            return written.number <= delete.number and _may_be_about(delete.file, written.file)
        near = _same_partition(written.file, delete.file, self._base)
        return written.number < delete.number and near and may_share_keys(written.file, delete.file, self._base)

    def _only_moves(self, change: SnapshotChange, delete: WrittenFile, replayed: Mapping[str, int]) -> bool:
        """Whether an equality delete that is newer than the rows still deletes them where the change has moved them."""
        if change.operation is not SnapshotOperation.REPLACE or delete.file.content is not FileContent.EQUALITY_DELETES:
            return False
        added = [f for f in change.added if f.is_data]
        # the new files must keep numbers below that of the delete, and from before the lines diverged: numbers that
        # were assigned later say nothing on this line
        if any(not f.pinned or f.number > self._number or f.number >= delete.number for f in added):
            return False
        # rows that this merge has added itself are newer than the delete, which never applied to them
        if any(replayed.get(f.file_path, 0) >= delete.number for f in change.removed_data):
            return False
        # rows that move to another spec leave the partition that the delete covers, unless it covers all
        specs = {f.spec_id for f in (*change.added_data, *change.removed_data)}
        return len(specs) <= 1 or self._base.specs_by_id[delete.file.spec_id].is_unpartitioned

    def _is_obsolete(self, delete: WrittenFile) -> bool:
        """Whether a delete file was removed because all remaining data is newer."""
        manifests = load_manifest_list(self._io, delete.snapshot)
        data = (m for m in manifests if m.content is ManifestContent.DATA and m.has_live_files)
        return all((m.min_sequence_number or 0) > delete.number for m in data)

    def _deletes_new_rows(self, delete: ChangedFile) -> bool:
        pinned = delete.pinned and delete.number <= self._number
        return delete.file.content is FileContent.EQUALITY_DELETES and not pinned

    def _shown(self, file: DataFile) -> str:
        return shown_file(file, self._base)


class _Theirs:
    """The entries that the snapshots of the other line wrote, without those known to the change."""

    def __init__(self, window: HistoryWindow, known: Collection[int]) -> None:
        self._window = window
        self._unknown = [s for s in window.snapshots if s.snapshot_id not in known]
        self.any = bool(self._unknown)

    def data(self, entries: pl.Expr) -> Iterator[WrittenFile]:
        return self._files(ManifestContent.DATA, entries)

    def new_rows(self) -> Iterator[WrittenFile]:
        """Added data files, without those that only replaced others with the same rows."""
        files = self._files(ManifestContent.DATA, _ADDED)
        return (written for written in files if written.snapshot.operation != SnapshotOperation.REPLACE)

    def changed_deletes(self) -> Iterator[tuple[WrittenFile, str]]:
        """Delete files that were added or removed, each with its effect; a rewrite removes none permanently."""
        for written in self._files(ManifestContent.DELETES, _ADDED):
            yield written, _DELETED_ROWS
        for written in self._files(ManifestContent.DELETES, _DELETED):
            if written.snapshot.operation != SnapshotOperation.REPLACE:
                yield written, _TOOK_BACK

    def _files(self, content: ManifestContent, entries: pl.Expr) -> Iterator[WrittenFile]:
        by_unknown = pl.col("snapshot_id").is_in([s.snapshot_id for s in self._unknown])
        every = {s.operation for s in self._unknown}
        return self._window.files(content, every, EVERYTHING, entries & by_unknown)


def _data_files_of(change: SnapshotChange) -> Iterable[DataFile]:
    """The data files that a change removes, or of which it adds or removes deletes."""
    yield from _known_by_deletes(change)
    yield from change.removed_data


def _known_by_deletes(change: SnapshotChange) -> Iterator[DataFile]:
    for delete in (*change.added_deletes, *change.removed_deletes):
        path = only_data_file(delete.file) if delete.file.content is FileContent.POSITION_DELETES else None
        if path is not None:
            # the delete file says nothing about it but its path
            yield DataFile(path, "PARQUET", delete.file.partition, 0, 0, spec_id=delete.file.spec_id)


def _is_wide_by_position(delete: DataFile) -> bool:
    return delete.content is FileContent.POSITION_DELETES and only_data_file(delete) is None


def _may_be_about(delete: DataFile, data: DataFile) -> bool:
    if partition_key(delete) != partition_key(data):
        return False
    path = data.file_path.encode()
    lower, upper = ((bounds or {}).get(FILE_PATH_ID) for bounds in (delete.lower_bounds, delete.upper_bounds))
    return (lower is None or lower <= path) and (upper is None or path <= upper)


def _same_partition(file: DataFile, delete: DataFile, base: TableMetadata) -> bool:
    """Whether, by their partitions, a delete file may apply to a file, or to the same data as another delete file."""
    if delete.content is FileContent.EQUALITY_DELETES and base.specs_by_id[delete.spec_id].is_unpartitioned:
        return True
    return partition_key(file) == partition_key(delete)
