"""`rewrite_path`: stages a table's metadata for another location, with a list of what to copy where.

The table does not change. Manifests are rewritten before the lists that hold their lengths, delete files before the
manifests that hold their sizes.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import msgspec

from bergline.errors import FormatError, NotFoundError
from bergline.format.encoding.avro_container import read_header
from bergline.format.manifest.avro import parse_manifest, render_manifest, render_manifest_list
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestFile
from bergline.format.metadata.gzip import pack, unpack
from bergline.format.metadata.json import parse_metadata, render_metadata
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_manifest_lists, spec_of
from bergline.table.manifests.removal import file_key
from bergline.table.relocation.delete_files import moved_file, names_paths, rewritten_content
from bergline.table.relocation.path_prefix import PathPrefix

_FILE_LIST: Final = "file-list"
_THREADS: Final = 16
_Item = TypeVar("_Item")
_Found = TypeVar("_Found")


class RewrittenPaths(msgspec.Struct, frozen=True):
    """What was staged: copy each file in the list from its first location to its second, then register the latest."""

    latest_version: str
    """The name of the newest metadata file."""
    staging_location: str
    file_list_location: str | None
    """A file with a line `from,to` for each file; None if it was not requested."""
    rewritten_manifests: int
    rewritten_delete_files: int


class Versions(msgspec.Struct, frozen=True):
    """The metadata files to rewrite, newest first, and the state that was copied earlier."""

    files: tuple[tuple[str, TableMetadata], ...]
    start: TableMetadata | None = None

    @property
    def end(self) -> TableMetadata:
        """The newest state."""
        return self.files[0][1]


def find_versions(io: FileIO, current: str, metadata: TableMetadata, start: str | None, end: str | None) -> Versions:
    """The metadata files after one version up to another, given by their file names; all of the log by default."""
    log = [*(entry.metadata_file for entry in metadata.metadata_log), current]
    names = {posixpath.basename(path): n for n, path in enumerate(log)}
    for name in (start, end):
        if name is not None and name not in names:
            raise NotFoundError(
                f"no metadata file `{name}` in the table's log", kind="version", name=name, known=list(names)
            )
    last = len(log) - 1 if end is None else names[end]
    first = 0 if start is None else names[start] + 1
    chosen = log[first : last + 1][::-1] or [log[last]]
    files = tuple((path, _load(io, path)) for path in chosen)
    return Versions(files, None if start is None else _load(io, log[names[start]]))


def stage_table_path(io: FileIO, versions: Versions, prefix: PathPrefix, *, file_list: bool) -> RewrittenPaths:
    """Write the metadata for the new location to the staging location; an error leaves no file there."""
    staging = _Staging(io, versions, prefix)
    try:
        return staging.run(file_list=file_list)
    except BaseException:
        io.delete(staging.written)
        raise


class _Staging:
    """One run, and what it has written and found so far."""

    def __init__(self, io: FileIO, versions: Versions, prefix: PathPrefix) -> None:
        self._io = io
        self._versions = versions
        self._prefix = prefix
        self._copies: dict[str, str] = {}
        self.written: list[str] = []

    def run(self, *, file_list: bool) -> RewrittenPaths:
        end, start = self._versions.end, self._versions.start
        known = _ids(start)
        lists = load_manifest_lists(self._io, end.snapshots) if end.snapshots else []
        manifests = {m.manifest_path: m for found in lists for m in found}
        copied = self._copied_before(start)
        new = [m for m in manifests.values() if m.manifest_path not in copied]
        sizes, rewritten = self._delete_files(manifests.values(), copied)
        lengths = self._manifests(manifests.values(), sizes, copied)
        for snapshot, found in zip(end.snapshots, lists, strict=True):
            if snapshot.snapshot_id not in known:
                self._manifest_list(snapshot, found, lengths)
        for path, metadata in self._versions.files:
            self._version(path, metadata)
        location = self._file_list() if file_list else None
        return RewrittenPaths(
            latest_version=posixpath.basename(self._versions.files[0][0]),
            staging_location=self._prefix.staging,
            file_list_location=location,
            rewritten_manifests=len(new),
            rewritten_delete_files=rewritten,
        )

    def _copied_before(self, start: TableMetadata | None) -> frozenset[str]:
        """The manifests and files of the state that was copied earlier."""
        if start is None or not start.snapshots:
            return frozenset()
        lists = load_manifest_lists(self._io, start.snapshots)
        manifests = {m.manifest_path: m for found in lists for m in found}
        files = (f.file_path for m in manifests.values() for f in self._live_files(m, start))
        return frozenset({*manifests, *files})

    def _delete_files(self, manifests: Iterable[ManifestFile], copied: frozenset[str]) -> tuple[dict[str, int], int]:
        """Rewrite the delete files that contain paths; returns their new sizes by path, and how many are new.

        A Puffin file with several deletion vectors is rewritten once; each of the vectors counts.
        """
        of_deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
        named = [f for m in of_deletes for f in self._live_files(m, self._versions.end) if names_paths(f)]
        found = {f.file_path: f for f in named}

        def rewrite(file: DataFile) -> int:
            data = rewritten_content(self._io, file, self._prefix)
            if file.file_path not in copied:
                self._stage(file.file_path, data)
            return len(data)

        sizes = dict(zip(found, _each(rewrite, list(found.values())), strict=True))
        return sizes, len({file_key(f) for f in named if f.file_path not in copied})

    def _manifests(
        self, manifests: Iterable[ManifestFile], sizes: dict[str, int], copied: frozenset[str]
    ) -> dict[str, int]:
        """Rewrite manifests; returns their new lengths by path, including those that were copied earlier."""
        manifests = list(manifests)

        def rewrite(manifest: ManifestFile) -> int:
            data, live = self._manifest(manifest, sizes)
            if manifest.manifest_path not in copied:
                self._stage(manifest.manifest_path, data)
                for path in live:
                    if path not in copied and path not in sizes:
                        self._copies[path] = self._prefix.moved(path)
            return len(data)

        return dict(zip((m.manifest_path for m in manifests), _each(rewrite, manifests), strict=True))

    def _manifest(self, manifest: ManifestFile, sizes: dict[str, int]) -> tuple[bytes, list[str]]:
        path, end = manifest.manifest_path, self._versions.end
        spec = spec_of(manifest, end)
        schema = end.schema_for(spec)
        data = self._io.read(path)
        entries = parse_manifest(data, spec, schema, path)
        moved = [
            msgspec.structs.replace(
                e, data_file=moved_file(e.data_file, self._prefix, sizes.get(e.data_file.file_path))
            )
            for e in entries
        ]
        version = _format_version(data, path)
        content = render_manifest(moved, schema, spec, format_version=version, content=manifest.content)
        return content, [e.data_file.file_path for e in entries if e.status is not EntryStatus.DELETED]

    def _live_files(self, manifest: ManifestFile, metadata: TableMetadata) -> Iterator[DataFile]:
        spec = spec_of(manifest, metadata)
        path = manifest.manifest_path
        entries = parse_manifest(self._io.read(path), spec, metadata.schema_for(spec), path)
        return (e.data_file for e in entries if e.status is not EntryStatus.DELETED)

    def _manifest_list(self, snapshot: Snapshot, manifests: Sequence[ManifestFile], lengths: dict[str, int]) -> None:
        if snapshot.manifest_list is None:
            raise FormatError(f"expected a manifest list, found none for snapshot {snapshot.snapshot_id}")
        moved = [
            msgspec.structs.replace(
                m, manifest_path=self._prefix.moved(m.manifest_path), manifest_length=lengths[m.manifest_path]
            )
            for m in manifests
        ]
        data = render_manifest_list(
            moved,
            snapshot.snapshot_id,
            snapshot.parent_snapshot_id,
            snapshot.sequence_number,
            format_version=_format_version(self._io.read(snapshot.manifest_list), snapshot.manifest_list),
            first_row_id=snapshot.first_row_id,
        )
        self._stage(snapshot.manifest_list, data)

    def _version(self, path: str, metadata: TableMetadata) -> None:
        self._stage(path, pack(render_metadata(self._prefix.metadata(metadata)), path))
        of_columns = [f.statistics_path for f in metadata.statistics]
        of_partitions = [f.statistics_path for f in metadata.partition_statistics]
        for statistics in (*of_columns, *of_partitions):
            self._copies[statistics] = self._prefix.moved(statistics)

    def _stage(self, path: str, data: bytes) -> None:
        staged = self._prefix.staged(path)
        self._io.create(staged, data)
        self.written.append(staged)
        self._copies[staged] = self._prefix.moved(path)

    def _file_list(self) -> str:
        location = f"{self._prefix.staging}/{_FILE_LIST}"
        lines = (f"{source},{target}\n" for source, target in sorted(self._copies.items()))
        self._io.create(location, "".join(lines).encode())
        self.written.append(location)
        return location


def _load(io: FileIO, path: str) -> TableMetadata:
    return parse_metadata(unpack(io.read(path), path), path)


def _format_version(data: bytes, path: str) -> int:
    """The version that a manifest or manifest list was written in, which may be older than the table's."""
    return int(read_header(data, path).get("format-version", b"1"))


def _ids(metadata: TableMetadata | None) -> set[int]:
    return set() if metadata is None else set(metadata.snapshots_by_id)


def _each(work: Callable[[_Item], _Found], items: Sequence[_Item]) -> list[_Found]:
    """Apply a function to each item, several at a time."""
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="bergline-paths") as threads:
        return list(threads.map(work, items))
