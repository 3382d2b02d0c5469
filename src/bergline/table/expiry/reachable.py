"""Which files the snapshots of a table need, and who holds on to each: what nobody holds may go.

A snapshot has owners, and they hold its files. Everything that must be known is read, and anything unreadable raises:
nothing is planned on a part of the truth, nor on what was read for something else before: callers that read more than
once pass the same `fresh`. Files are compared by one spelling of their locations.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec
import polars as pl

from bergline.format.manifest import EntryStatus, FileContent, ManifestFile
from bergline.format.metadata import PartitionStatisticsFile, StatisticsFile, TableMetadata
from bergline.io.fileio import FileIO
from bergline.io.locations import normalized
from bergline.scan.manifest_cache import FreshReads
from bergline.scan.manifests import load_columns, load_manifest_lists
from bergline.table.expiry.stored_file import CONTENT_KINDS, FileKind, StoredFile

Owners = frozenset[str]
NOBODY: Owners = frozenset()
_SOMEBODY: Owners = frozenset({""})
_TOGETHER = 64
_Thing = TypeVar("_Thing")


class HeldFile(msgspec.Struct, frozen=True, gc=False):
    """A file, and all that hold on to it."""

    file: StoredFile
    owners: Owners


def reachable_files(
    io: FileIO, metadata: TableMetadata, *, contents: bool = True, fresh: FreshReads | None = None
) -> list[StoredFile]:
    """Every file that a snapshot needs, and all statistics; metadata files are not among them."""
    return [held.file for held in held_files(io, metadata, lambda _: NOBODY, contents=contents, fresh=fresh)]


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
    """The files that at most so many owners hold on to, in the order in which they may be deleted.

    `owners` says who owns a snapshot, by its id.
    """
    read = FreshReads() if fresh is None else fresh
    manifests = _manifests(io, metadata, owners, read)
    held = _contents(io, manifests, most, read) if contents else []
    held += [
        HeldFile(StoredFile(m.manifest_path, FileKind.MANIFEST, m.manifest_length), by)
        for m, by in manifests
        if len(by) <= most
    ]
    return held + [HeldFile(file, by) for file, by in _joined(_named_files(metadata, owners)) if len(by) <= most]


def still_unneeded(
    io: FileIO,
    files: Sequence[StoredFile],
    planned: TableMetadata,
    now: TableMetadata,
    *,
    contents: bool = True,
    fresh: FreshReads | None = None,
) -> list[StoredFile]:
    """Files that were unneeded in one state of a table, without those that it has named again since then."""
    added = tuple(s for s in now.snapshots if s.snapshot_id not in planned.snapshots_by_id)
    new = msgspec.structs.replace(now, snapshots=added, refs={})
    needed = {normalized(f.location) for f in reachable_files(io, new, contents=contents, fresh=fresh)}
    return [f for f in files if normalized(f.location) not in needed]


def _manifests(
    io: FileIO, metadata: TableMetadata, owners: Callable[[int], Owners], fresh: FreshReads
) -> list[tuple[ManifestFile, Owners]]:
    """The manifests of all snapshots, each once, with the owners of every snapshot that lists it."""
    known: dict[str, tuple[ManifestFile, Owners]] = {}
    for some in _batches(metadata.snapshots):
        for snapshot, manifests in zip(some, load_manifest_lists(io, some, fresh), strict=True):
            own = owners(snapshot.snapshot_id)
            for manifest in manifests:
                before = known.get(manifest.manifest_path)
                known[manifest.manifest_path] = manifest, own if before is None else before[1] | own
    return _joined((path, manifest, by) for path, (manifest, by) in known.items())


def _contents(
    io: FileIO, manifests: Iterable[tuple[ManifestFile, Owners]], most: int, fresh: FreshReads
) -> list[HeldFile]:
    """Data and delete files: first those that few may hold, then all others' are taken out of them."""
    few: dict[Owners, list[ManifestFile]] = {}
    many: list[ManifestFile] = []
    for manifest, by in manifests:
        if manifest.has_live_files:
            (few.setdefault(by, []) if len(by) <= most else many).append(manifest)
    found = (
        (path, StoredFile(path, CONTENT_KINDS[FileContent(content or 0)], size), by)
        for by, some in few.items()
        for path, content, size in _live_files(io, some, fresh)
    )
    held = {normalized(file.location): (file, by) for file, by in _joined(found) if len(by) <= most}
    if held:
        for path, _, _ in _live_files(io, many, fresh):
            held.pop(normalized(path), None)
    return [HeldFile(file, by) for file, by in held.values()]


def _live_files(
    io: FileIO, manifests: Sequence[ManifestFile], fresh: FreshReads
) -> Iterator[tuple[str, int | None, int]]:
    """Path, content and size of the files in manifests, a few manifests in memory at a time."""
    for some in _batches(manifests):
        for frame in load_columns(io, some, fresh):
            live = frame.filter(pl.col("status") != int(EntryStatus.DELETED))
            yield from live.select("file_path", "content", "file_size_in_bytes").iter_rows()


def _named_files(metadata: TableMetadata, owners: Callable[[int], Owners]) -> Iterator[tuple[str, StoredFile, Owners]]:
    """Manifest lists and statistics: the table's metadata names them itself."""
    for snapshot in metadata.snapshots:
        if snapshot.manifest_list:
            file = StoredFile(snapshot.manifest_list, FileKind.MANIFEST_LIST)
            yield file.location, file, owners(snapshot.snapshot_id)
    statistics: list[StatisticsFile | PartitionStatisticsFile] = [*metadata.statistics, *metadata.partition_statistics]
    for one in statistics:
        file = StoredFile(one.statistics_path, FileKind.STATISTICS, one.file_size_in_bytes)
        yield file.location, file, owners(one.snapshot_id)


def _joined(things: Iterable[tuple[str, _Thing, Owners]]) -> list[tuple[_Thing, Owners]]:
    """Each thing once, whatever the spelling of its location, with all its owners."""
    known: dict[str, tuple[_Thing, Owners]] = {}
    for location, thing, by in things:
        key = normalized(location)
        before = known.get(key)
        known[key] = (thing, by) if before is None else (before[0], before[1] | by)
    return list(known.values())


def _batches(things: Sequence[_Thing]) -> Iterator[Sequence[_Thing]]:
    for start in range(0, len(things), _TOGETHER):
        yield things[start : start + _TOGETHER]
