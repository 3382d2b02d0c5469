"""Files that were written elsewhere, checked before they are committed: InvalidInputError if something is wrong."""

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec
import polars as pl

from bergline.datafiles.formats.data_input import open_data_file
from bergline.errors import InvalidInputError, NotFoundError
from bergline.format.manifest.manifest import ROW_FORMATS, DataFile, EntryStatus, ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.scan.manifests import load_columns, load_manifest_list
from bergline.table.manifests.removal import FileKey, PartitionLookup, file_key

_READERS: Final = 16


class ExternalFiles:
    """The files that one call adds: they exist, with the stated number of rows, and are not live on the branch yet.

    One for all attempts: later ones check only manifests that were added in between, and the files themselves only if
    snapshots were removed, with which expiry may have deleted them.
    """

    def __init__(
        self, io: FileIO, files: Sequence[DataFile], branch: str, seen_snapshots: frozenset[int] | None = None
    ) -> None:
        """`seen_snapshots` are those that the table had when the caller looked at the files; None if it did not."""
        self._io = io
        self._files = files
        self._branch = branch
        self._seen_snapshots = seen_snapshots
        self._checked: set[str] = set()

    def check(self, base: TableMetadata, parent: Snapshot | None) -> None:
        """Refuse files that are missing or live; `parent` is the branch's head."""
        if not self._files:
            return
        if self._seen_snapshots is None or not self._seen_snapshots <= base.snapshots_by_id.keys():
            self._check_exist()
        self._seen_snapshots = frozenset(base.snapshots_by_id)
        manifests = load_manifest_list(self._io, parent) if parent else []
        new = [m for m in manifests if m.manifest_path not in self._checked]
        if live := live_files(self._io, new, self._files):
            path = min(path for path, _ in live)
            raise InvalidInputError(
                f"expected new files, found {path}, which is on branch `{self._branch}` already{_more(live)}"
            )
        self._checked |= {m.manifest_path for m in new}

    def _check_exist(self) -> None:
        once = list({f.file_path: f for f in self._files}.values())
        if len(once) == 1:
            self._check_one(once[0])
            return
        with ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-files") as threads:
            list(threads.map(self._check_one, once))

    def _check_one(self, file: DataFile) -> None:
        # the rows of an encrypted file cannot be counted
        if file.file_format not in ROW_FORMATS or file.key_metadata is not None:
            if not self._io.exists(file.file_path):
                raise _missing(file)
            return
        try:
            with open_data_file(self._io, file) as opened:
                rows = sum(opened.group_rows)
        except NotFoundError as error:
            raise _missing(file) from error
        if rows != file.record_count:
            raise InvalidInputError(f"expected {file.record_count} rows, found {rows} in {file.file_path}")


def without_physical_schemas(files: Iterable[DataFile]) -> list[DataFile]:
    """Files without their physical schema: the caller may be wrong about it, but the footers are not."""
    return [msgspec.structs.replace(file, physical_schema=None) for file in files]


def check_removed(
    io: FileIO, base: TableMetadata, heads: Iterable[Snapshot | None], removed: Collection[DataFile], branch: str
) -> None:
    """Refuse to remove files that are in none of these snapshots, so that nobody else can have removed them."""
    missing = {file_key(f): f for f in removed}
    for head in heads:
        if missing and head is not None:
            lookup = PartitionLookup(((f.spec_id, f.partition) for f in missing.values()), base)
            manifests = [m for m in load_manifest_list(io, head) if lookup.may_pick(m)]
            for key in live_files(io, manifests, missing.values()):
                del missing[key]
    if missing:
        path = min(path for path, _ in missing)
        raise InvalidInputError(f"expected files of branch `{branch}` to remove, found {path}{_more(missing)}")


def live_files(io: FileIO, manifests: Iterable[ManifestFile], files: Collection[DataFile]) -> set[FileKey]:
    """Which of the files are live in some manifests, however their locations are spelled there."""
    keys = {file_key(f) for f in files}
    return live_at(io, manifests, {path for path, _ in keys}) & keys


def live_at(io: FileIO, manifests: Iterable[ManifestFile], paths: Collection[str]) -> set[FileKey]:
    """The files that are live in some manifests at these locations, which may be spelled differently there."""
    spelt = {spelling: path for path in paths for spelling in _spellings(path)}
    wanted = pl.Series(list(spelt), dtype=pl.String).implode()
    is_live = pl.col("status") != int(EntryStatus.DELETED)
    found: set[FileKey] = set()
    for frame in load_columns(io, [m for m in manifests if m.has_live_files]):
        rows = frame.filter(is_live & pl.col("file_path").is_in(wanted)).select("file_path", "content_offset")
        found |= {(spelt[path], offset) for path, offset in rows.iter_rows()}
    return found


def _spellings(path: str) -> set[str]:
    one = normalized(path)
    return {path, one, one.removeprefix("file://")}


def _missing(file: DataFile) -> InvalidInputError:
    return InvalidInputError(f"expected a file, found none at {file.file_path}")


def _more(found: Collection[object]) -> str:
    return f" and {len(found) - 1} more" if len(found) > 1 else ""
