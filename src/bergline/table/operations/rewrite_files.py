"""Rewrite files: the same rows in other files, in one snapshot."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import polars as pl

from bergline.errors import ConflictError, InvalidInputError
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.manifest import DataFile, FileContent, ManifestContent, ManifestFile, partition_key
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.manifests import live_deletes, load_manifest_list
from bergline.scan.path_lookup import PathLookup
from bergline.scan.plan import PlannedFile
from bergline.scan.planned_files import PlannedFiles
from bergline.scan.planner import each_live_group, with_deletes
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.commits.validate import Validation, conflict
from bergline.table.manifests.filtering import ManifestFilter
from bergline.table.manifests.removal import FileKey, PartitionLookup, RemovedFiles, file_key
from bergline.table.operations.append import AddedFiles
from bergline.table.operations.row_delta import check_deletes_fit


class Rewritten(msgspec.Struct, frozen=True):
    """Files that replace others, with the same rows."""

    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...]
    """They must still be there, and nobody may have deleted rows of them since."""
    dangling: tuple[DataFile, ...] = ()
    """Delete files that are about nothing any more; others may have removed them too."""
    sequence_number: int | None = None
    """The number that the added files keep, so that later deletes by equality still apply to their rows."""
    read: tuple[PlannedFile, ...] = ()
    """The removed data files as they were read, with their deletes; if given, the history is not searched."""


class RewriteFiles(SnapshotProducer):
    """The added files, and the parent's without the removed ones; `since` is the snapshot that they were read from."""

    def __init__(
        self,
        io: FileIO,
        rewritten: Rewritten,
        *,
        since: int | None,
        branch: str = MAIN,
        summary: Mapping[str, str] | None = None,
        discard_on_failure: bool = False,
    ) -> None:
        super().__init__(
            io,
            branch,
            summary or {},
            files=rewritten.added,
            discard_on_failure=discard_on_failure,
            starts_branch=False,
        )
        _check_rewritten(rewritten)
        self._since = since
        self._rewritten = rewritten
        self._added = AddedFiles(self, rewritten.added, sequence_number=rewritten.sequence_number)
        gone = {f.file_path for f in rewritten.removed if f.content is FileContent.DATA}
        of_these = [d for d in rewritten.dangling if d.content is FileContent.POSITION_DELETES]
        removed = RemovedFiles(rewritten.removed, must_exist=True)
        # on another line of history other files may need the deletes that are about nothing on this one
        self._filters = {
            True: ManifestFilter(io, self, [removed, RemovedFiles(rewritten.dangling)]),
            False: ManifestFilter(
                io, self, [removed, RemovedFiles(tuple(d for d in of_these if only_data_file(d) in gone))]
            ),
        }

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """New manifests, then the parent's without the removed files."""
        check_deletes_fit(base, [f for f in self._added.files if f.content is not FileContent.DATA])
        follows = parent is not None and self._since is not None and base.is_ancestor(self._since, parent.snapshot_id)
        if parent is not None:
            self._validate(base, parent, follows=follows)
        _check_number(self._rewritten.sequence_number, base.snapshots_by_id.get(self._since or 0))
        added = self._added.manifests(base)
        before = load_manifest_list(self._io, parent) if parent else []
        filtered = self._filters[follows].apply(base, before, added=added)
        self._check_same_row_ids(filtered.removed)
        if parent is not None:
            read = base.snapshots_by_id.get(self._since or 0, parent)
            check_same_rows(self._io, base, read, self._added.files, filtered.removed)
        return Draft(
            SnapshotOperation.REPLACE,
            (*added, *filtered.manifests),
            added=self._added.files,
            removed=filtered.removed,
            replaced=filtered.replaced,
            rewritten=self._rewritten.removed,
        )

    def _validate(self, base: TableMetadata, parent: Snapshot, *, follows: bool) -> None:
        rewritten, number = self._rewritten, self._rewritten.sequence_number
        if follows or not rewritten.read:
            validation = Validation(
                self._io, base, parent, since=self._since, branch=self._branch, earlier=self._earlier
            )
            validation.check_files_exist(rewritten.removed)
            if not rewritten.read:
                data = [f for f in rewritten.removed if f.content is FileContent.DATA]
                # deletes by equality in a partition of one spec do not follow rows to another spec
                specs = {f.spec_id for f in (*data, *rewritten.added)}
                validation.check_no_new_deletes_for(data, by_position_only=number is not None and len(specs) == 1)
        if rewritten.read:
            check_same_deletes(self._io, base, parent, rewritten.read, sequence_number=number, branch=self._branch)

    def _check_same_row_ids(self, removed: Sequence[DataFile]) -> None:
        """Rows that were read before they had ids would not keep the ids that they have got since."""
        ids = {f.file_path: f.first_row_id for f in removed if f.content is FileContent.DATA}
        for planned in self._rewritten.read:
            if ids[planned.file.file_path] != planned.file.first_row_id:
                raise ConflictError(
                    f"cannot commit to `{self._branch}`: the rows of {planned.file.file_path} got ids meanwhile",
                    hints=["read them again"],
                )


def _check_number(number: int | None, start: Snapshot | None) -> None:
    """Refuse a number that the rows cannot have had: newer deletes would not apply to them, or older ones would."""
    if number is None:
        return
    if number < 0 or (start is not None and number > start.sequence_number):
        up_to = "" if start is None else f" to {start.sequence_number}, that of the snapshot read"
        raise InvalidInputError(f"expected a sequence number from 0{up_to}, found {number}")


def _check_rewritten(rewritten: Rewritten) -> None:
    """Refuse what cannot be the same rows in other files."""
    added, removed = ({f.content is FileContent.DATA for f in files} for files in (rewritten.added, rewritten.removed))
    if both := {file_key(f) for f in rewritten.added} & {file_key(f) for f in rewritten.removed}:
        raise InvalidInputError(f"expected to add a file or to remove it, found both for {min(p for p, _ in both)}")
    if not removed:
        raise InvalidInputError("expected files to replace, found none")
    for is_data in added - removed:
        kind = "data" if is_data else "delete"
        raise InvalidInputError(f"expected {kind} files only in the place of others, found none that are replaced")
    if rewritten.sequence_number is None:
        for file in rewritten.added:
            if file.content is FileContent.EQUALITY_DELETES:
                raise InvalidInputError(
                    "expected the sequence number of the equality deletes that are rewritten, found none: "
                    f"{file.file_path} would delete rows that came after them"
                )


def check_same_rows(
    io: FileIO, base: TableMetadata, read: Snapshot, added: Iterable[DataFile], removed: Iterable[DataFile]
) -> None:
    """Refuse more rows than there were, and fewer than deletes can have left; `read` is the snapshot they came from."""
    gone = [f for f in removed if f.content is FileContent.DATA]
    most = sum(f.record_count for f in gone)
    found = sum(f.record_count for f in added if f.content is FileContent.DATA)
    least = _least(io, base, read, gone) if found < most else most
    if not least <= found <= most:
        left = f"{least} to {most}" if least < most else str(most)
        raise InvalidInputError(
            f"expected {left} rows, as in the files that are replaced, found {found} in those that replace them",
            hints=["`overwrite_files` and `row_delta` change rows"],
        )


def _least(io: FileIO, base: TableMetadata, read: Snapshot, gone: Sequence[DataFile]) -> int:
    """How many rows of the files no delete can be about; one by equality may be about all of them."""
    manifests = load_manifest_list(io, read)
    index = DeleteIndex(live_deletes(io, _delete_manifests(manifests), base, _paths(gone)), base)
    if not index:
        return sum(f.record_count for f in gone)
    paths, lookup = (
        PathLookup(f.file_path for f in gone),
        PartitionLookup(((f.spec_id, f.partition) for f in gone), base),
    )
    data = [m for m in manifests if m.content is ManifestContent.DATA and m.has_live_files and lookup.may_pick(m)]
    rows = 0
    by_position: dict[FileKey, int] = {}
    for some in each_live_group(io, data, base, lambda files: files.only(paths.holds(files.frame["file_path"]))):
        for planned in PlannedFiles([with_deletes(some, index)]):
            if not any(d.content is FileContent.EQUALITY_DELETES for d in planned.deletes):
                rows += planned.file.record_count
                by_position |= {file_key(d): d.record_count for d in planned.deletes}
    return max(0, rows - sum(by_position.values()))


def check_same_deletes(
    io: FileIO,
    base: TableMetadata,
    parent: Snapshot,
    read: Sequence[PlannedFile],
    *,
    sequence_number: int | None,
    branch: str,
) -> None:
    """ConflictError if rows of a file were deleted since, or deleted rows came back; looks at no history.

    Rows that keep a sequence number are still deleted by equality deletes with a higher one: those make no difference.
    """
    manifests = load_manifest_list(io, parent)
    entries = [
        entry
        for entry in live_deletes(io, _delete_manifests(manifests), base, _paths(planned.file for planned in read))
        if entry.data_file.content is FileContent.POSITION_DELETES
        or sequence_number is None
        or (entry.sequence_number or 0) <= sequence_number
    ]
    added_by = {file_key(e.data_file): e.snapshot_id for e in entries}
    index = DeleteIndex(entries, base)
    for planned in read:
        file = planned.file
        before = {file_key(d) for d in planned.deletes}
        now = {file_key(d): d for d in index.deletes_for(file.file_path, partition_key(file), planned.sequence_number)}
        if now.keys() != before:
            new = next((d for key, d in now.items() if key not in before), None)
            winner = base.snapshots_by_id.get(added_by[file_key(new)] or 0, parent) if new else parent
            raise conflict(branch, winner, _did(file, new))


def _delete_manifests(manifests: Iterable[ManifestFile]) -> list[ManifestFile]:
    return [m for m in manifests if m.content is ManifestContent.DELETES and m.has_live_files]


def _paths(files: Iterable[DataFile]) -> pl.Series:
    return pl.Series("path", [file.file_path for file in files], pl.String)


def _did(file: DataFile, new: DataFile | None) -> str:
    if new is None:
        return f"brought back rows of {file.file_path}, which this one replaces"
    return f"deleted rows of {file.file_path}, which this one replaces, by {new.file_path}"
