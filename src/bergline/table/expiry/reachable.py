"""Which files the snapshots of a table need, and who holds each of them: what nobody holds may be deleted.

A snapshot has owners, and they hold its files. Everything that must be known is read, and anything unreadable raises:
nothing is planned on incomplete information, or on files that were read earlier for another purpose. Callers that read
more than once pass the same `fresh`. Files are compared by one spelling of their locations.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import chain
from typing import TypeVar

import msgspec
import polars as pl

from bergline.format.manifest.manifest import EntryStatus, FileContent, ManifestContent, ManifestFile
from bergline.format.metadata.table_metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.manifest_cache import FreshReads
from bergline.scan.manifests import load_columns, load_manifest_lists
from bergline.table.expiry.path_rules import PathRules


class FileKind(StrEnum):
    """The kinds of files, named for people, in the order in which files are deleted."""

    DATA = "data files"
    POSITION_DELETES = "position delete files"
    EQUALITY_DELETES = "equality delete files"
    MANIFEST = "manifests"
    MANIFEST_LIST = "manifest lists"
    STATISTICS = "statistics files"


class StoredFile(msgspec.Struct, frozen=True, gc=False):
    """The location of a file, and its size if metadata has it; it has none for manifest lists."""

    location: str
    kind: FileKind
    size: int | None = None


CONTENT_KINDS = {
    FileContent.DATA: FileKind.DATA,
    FileContent.POSITION_DELETES: FileKind.POSITION_DELETES,
    FileContent.EQUALITY_DELETES: FileKind.EQUALITY_DELETES,
}


Owners = frozenset[str]
NOBODY: Owners = frozenset()
_SOMEBODY: Owners = frozenset({""})
_TOGETHER = 64
_Thing = TypeVar("_Thing")


class HeldFile(msgspec.Struct, frozen=True, gc=False):
    """A file and everything that holds it."""

    file: StoredFile
    owners: Owners


def reachable_files(
    io: FileIO, metadata: TableMetadata, *, contents: bool = True, fresh: FreshReads | None = None
) -> list[StoredFile]:
    """Every file that a snapshot needs, and all statistics; metadata files are not among them."""
    return [held.file for held in held_files(io, metadata, lambda _: NOBODY, contents=contents, fresh=fresh)]


def named_files(metadata: TableMetadata) -> list[StoredFile]:
    """Manifest lists and statistics, which the metadata itself references."""
    return [file for file, _ in _named_files(metadata, lambda _: NOBODY)]


def unneeded_files(
    io: FileIO,
    metadata: TableMetadata,
    removed: Collection[int],
    *,
    contents: bool = True,
    fresh: FreshReads | None = None,
) -> list[StoredFile]:
    """The files that only these snapshots need; without `contents`, no data and delete files."""
    if not removed:
        return []
    gone = frozenset(removed)
    held = held_files(io, metadata, lambda i: NOBODY if i in gone else _SOMEBODY, contents=contents, fresh=fresh)
    return [h.file for h in held]


def held_files(
    io: FileIO,
    metadata: TableMetadata,
    owners: Callable[[int], Owners],
    *,
    most: int = 0,
    contents: bool = True,
    fresh: FreshReads | None = None,
) -> list[HeldFile]:
    """The files held by at most this many owners, in the order in which they may be deleted.

    `owners` says who owns a snapshot, by its id. A file that is referenced for several purposes is held by all their
    owners.
    """
    read = FreshReads() if fresh is None else fresh
    rules = PathRules({}, {})
    manifests = _manifests(io, metadata, owners, read, rules)
    few: dict[Owners, list[ManifestFile]] = {}
    many: list[ManifestFile] = []
    for manifest, by in manifests:
        if manifest.has_live_files:
            (few.setdefault(by, []) if len(by) <= most else many).append(manifest)
    found = chain(
        _contents(io, few, read) if contents else (),
        ((StoredFile(m.manifest_path, FileKind.MANIFEST, m.manifest_length), by) for m, by in manifests),
        _named_files(metadata, owners),
    )
    held = {key: one for key, one in _joined(found, rules).items() if len(one.owners) <= most}
    if contents:
        for path, _, _ in _live_files(io, _doubtful(held.values(), many), read):
            held.pop(rules.exact(path), None)
    elif any(m.content is ManifestContent.DELETES for m in many):  # a Puffin file may hold deletion vectors as well
        return [one for one in held.values() if one.file.kind is not FileKind.STATISTICS]
    return list(held.values())


def still_unneeded(
    io: FileIO,
    files: Sequence[StoredFile],
    planned: TableMetadata,
    now: TableMetadata,
    *,
    contents: bool = True,
    fresh: FreshReads | None = None,
) -> list[StoredFile]:
    """Files that were unneeded in one state of a table, without those that it references again since then."""
    # a snapshot that a catalog put on another head has its old id but other files
    known = {(s.snapshot_id, s.manifest_list) for s in planned.snapshots}
    added = tuple(s for s in now.snapshots if (s.snapshot_id, s.manifest_list) not in known)
    new = msgspec.structs.replace(now, snapshots=added, refs={})
    rules = PathRules({}, {})
    needed = {rules.exact(f.location) for f in reachable_files(io, new, contents=contents, fresh=fresh)}
    return [f for f in files if rules.exact(f.location) not in needed]


def _manifests(
    io: FileIO, metadata: TableMetadata, owners: Callable[[int], Owners], fresh: FreshReads, rules: PathRules
) -> list[tuple[ManifestFile, Owners]]:
    """The manifests of all snapshots, each once, with the owners of every snapshot that lists it."""
    known: dict[str, tuple[ManifestFile, Owners]] = {}
    for some in _batches(metadata.snapshots):
        for snapshot, manifests in zip(some, load_manifest_lists(io, some, fresh), strict=True):
            own = owners(snapshot.snapshot_id)
            for manifest in manifests:
                before = known.get(manifest.manifest_path)
                known[manifest.manifest_path] = manifest, own if before is None else before[1] | own
    once: dict[str, tuple[ManifestFile, Owners]] = {}
    for path, (manifest, by) in known.items():
        key = rules.exact(path)
        once[key] = manifest, by if key not in once else once[key][1] | by
    return list(once.values())


def _contents(
    io: FileIO, manifests: Mapping[Owners, Sequence[ManifestFile]], fresh: FreshReads
) -> Iterator[tuple[StoredFile, Owners]]:
    """The data and delete files in manifests, with the owners of those."""
    for by, some in manifests.items():
        for path, content, size in _live_files(io, some, fresh):
            yield StoredFile(path, CONTENT_KINDS[FileContent(content or 0)], size), by


def _doubtful(held: Iterable[HeldFile], manifests: list[ManifestFile]) -> list[ManifestFile]:
    """The manifests that may reference one of the files; only delete manifests if all files are statistics."""
    kinds = {one.file.kind for one in held}
    if not kinds.isdisjoint(CONTENT_KINDS.values()):
        return manifests
    return [m for m in manifests if m.content is ManifestContent.DELETES and FileKind.STATISTICS in kinds]


def _live_files(
    io: FileIO, manifests: Sequence[ManifestFile], fresh: FreshReads
) -> Iterator[tuple[str, int | None, int]]:
    """Path, content and size of the files in manifests, with a few manifests in memory at a time."""
    for some in _batches(manifests):
        for frame in load_columns(io, some, fresh):
            live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
            yield from live.select("file_path", "content", "file_size_in_bytes").iter_rows()


def _named_files(metadata: TableMetadata, owners: Callable[[int], Owners]) -> Iterator[tuple[StoredFile, Owners]]:
    """Manifest lists and statistics, which the table's metadata itself references."""
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list:
            file = StoredFile(snapshot.manifest_list, FileKind.MANIFEST_LIST)
            yield file, owners(snapshot.snapshot_id)
    statistics: list[StatisticsFile | PartitionStatisticsFile] = [*metadata.statistics, *metadata.partition_statistics]
    for one in statistics:
        file = StoredFile(one.statistics_path, FileKind.STATISTICS, one.file_size_in_bytes)
        yield file, owners(one.snapshot_id)


def _joined(files: Iterable[tuple[StoredFile, Owners]], rules: PathRules) -> dict[str, HeldFile]:
    """Each file once, by its spelling, with all its owners, whatever it is referenced for."""
    known: dict[str, HeldFile] = {}
    for file, by in files:
        key = rules.exact(file.location)
        before = known.get(key)
        known[key] = HeldFile(file, by) if before is None else HeldFile(before.file, before.owners | by)
    return known


def _batches(things: Sequence[_Thing]) -> Iterator[Sequence[_Thing]]:
    for start in range(0, len(things), _TOGETHER):
        yield things[start : start + _TOGETHER]
