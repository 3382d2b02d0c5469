"""Manifest lists and manifests of a snapshot: read in parallel, cached, validated, with inheritance applied."""

import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from operator import attrgetter
from typing import Protocol, TypeVar

import msgspec
import polars as pl

from bergline.errors import FormatError, UnsupportedError
from bergline.format.encoding.avro_container import read_header
from bergline.format.encoding.integers import MAX_INT
from bergline.format.manifest.avro import parse_manifest_list, partition_types
from bergline.format.manifest.columns import (
    decode_manifests,
    entries_of,
    manifest_groups,
    read_manifests_columns,
)
from bergline.format.manifest.inheritance import inherit, inherit_columns
from bergline.format.manifest.manifest import MANIFEST_COUNTS, EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.columns import check_partition
from bergline.format.partition.spec import PartitionSpec
from bergline.io.fileio import FileIO
from bergline.scan.manifest_cache import DEFAULT_LIMIT, MANIFEST_LISTS, MANIFESTS, FreshReads
from bergline.scan.path_lookup import PathHashes

_READERS = 32
_CORES = os.cpu_count() or 1
_MOST_DIGITS = len(str(MAX_INT))
_MOST_BYTES = 2**30  # the size limit for a manifest or manifest list
_MOST_KEPT = DEFAULT_LIMIT // 2  # a scan that would fill the cache leaves it to others, and finds its start there again

_Result = TypeVar("_Result")


class ManifestFiles(Protocol):
    """Where manifests and their lists are read from: a storage, or a layer in front of it."""

    def read(self, location: str, most: int | None = None) -> bytes:
        """Read a file, as `FileIO.read` does."""
        ...


def load_manifest_list(
    io: FileIO, snapshot: Snapshot, fresh: FreshReads | None = None, *, files: ManifestFiles | None = None
) -> list[ManifestFile]:
    """The manifests of a snapshot, read from storage, not the cache, if `fresh`; old v1 snapshots list them.

    What is not in the cache is read from `files` if given: a layer between a writer and the storage.
    """
    if snapshot.key_id is not None:
        raise UnsupportedError(
            f"cannot read the encrypted manifest list of snapshot {snapshot.snapshot_id} at {snapshot.manifest_list}"
        )
    if snapshot.manifest_list is None:
        return [_named_manifest(io, path, snapshot) for path in snapshot.manifests or ()]
    known = MANIFEST_LISTS.find(io, snapshot.manifest_list, fresh)
    if known is None:
        known = tuple(parse_manifest_list(_read(files or io, snapshot.manifest_list), snapshot.manifest_list))
        keep_manifest_list(io, snapshot.manifest_list, known, fresh)
    return list(known)


def load_manifest_lists(
    io: FileIO, snapshots: Sequence[Snapshot], fresh: FreshReads | None = None
) -> list[list[ManifestFile]]:
    """The manifests of several snapshots, read in parallel."""
    if len(snapshots) == 1:
        return [load_manifest_list(io, snapshots[0], fresh)]
    return list(_threads(os.getpid()).map(lambda s: load_manifest_list(io, s, fresh), snapshots))


def keep_manifest_list(
    io: FileIO, location: str, manifests: Sequence[ManifestFile], fresh: FreshReads | None = None
) -> None:
    """Cache the content of a manifest list that was just written."""
    MANIFEST_LISTS.keep(io, location, tuple(manifests), len(manifests) + 1, fresh)


def load_columns(io: FileIO, manifests: Sequence[ManifestFile], fresh: FreshReads | None = None) -> list[pl.DataFrame]:
    """The entries of each manifest as stored; read from storage and not the cache if `fresh`."""
    _check_not_encrypted(manifests)
    paths = [m.manifest_path for m in manifests]
    known = {path: MANIFESTS.find(io, path, fresh) for path in paths}
    frames = {path: frame for path, frame in known.items() if frame is not None}
    frames |= _load(io, [path for path in known if path not in frames], fresh)
    return [_checked(frames[m.manifest_path], m) for m in manifests]


def each_batch(
    io: FileIO, manifests: Sequence[ManifestFile], use: Callable[[Sequence[pl.DataFrame], Sequence[int]], _Result]
) -> Iterator[_Result]:
    """Apply `use` to the stored entries of a few manifests at a time; it may run in several threads.

    It also gets the indexes of these manifests, in any order. What it does not return takes no memory.
    """
    _check_not_encrypted(manifests)
    places: dict[str, list[int]] = defaultdict(list)
    for place, manifest in enumerate(manifests):
        places[manifest.manifest_path].append(place)
    known = {path: MANIFESTS.find(io, path) for path in places}

    def used(frames: Mapping[str, pl.DataFrame]) -> _Result:
        pairs = [(_checked(frame, manifests[place]), place) for path, frame in frames.items() for place in places[path]]
        return use(*zip(*pairs, strict=True))

    if at_hand := {path: frame for path, frame in known.items() if frame is not None}:
        yield used(at_hand)
    room = _MOST_KEPT

    def decoded(frames: Mapping[str, pl.DataFrame]) -> _Result:
        nonlocal room
        for path, frame in frames.items():
            size = int(frame.estimated_size())
            room -= size
            if room >= 0:
                MANIFESTS.keep(io, path, frame, size)
        return used(frames)

    yield from _decoded(io, [path for path in known if path not in at_hand], decoded)


def resolved_columns(io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata) -> dict[int, pl.DataFrame]:
    """All entries of manifests by partition spec, validated, with inheritance applied."""
    by_spec = resolved_by_spec(load_columns(io, manifests), manifests, metadata)
    return {spec_id: frame for spec_id, (frame, _) in by_spec.items()}


def resolved_by_spec(
    frames: Sequence[pl.DataFrame], manifests: Sequence[ManifestFile], metadata: TableMetadata
) -> dict[int, tuple[pl.DataFrame, list[int]]]:
    """Entries as stored, by partition spec, validated, with inheritance applied; with the indexes of the manifests."""
    by_spec: dict[int, list[int]] = defaultdict(list)
    for place, (frame, manifest) in enumerate(zip(frames, manifests, strict=True)):
        spec = spec_of(manifest, metadata)
        check_partition(frame, partition_types(spec, metadata.schema_for(spec)), manifest.manifest_path)
        by_spec[manifest.partition_spec_id].append(place)
    return {
        spec_id: (inherit_columns([frames[p] for p in places], [manifests[p] for p in places]), places)
        for spec_id, places in by_spec.items()
    }


def load_entries(io: FileIO, manifest: ManifestFile, metadata: TableMetadata) -> list[ManifestEntry]:
    """All entries of a manifest with inheritance applied."""
    return _entries(_columns(io, manifest), manifest, metadata)


def live_deletes(
    io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata, data_paths: pl.Series
) -> Iterator[ManifestEntry]:
    """The live entries of delete manifests, without those that refer to a single data file not among the paths."""
    wanted = PathHashes([data_paths.hash()])

    def about_them(frames: Sequence[pl.DataFrame], places: Sequence[int]) -> list[tuple[int, list[ManifestEntry]]]:
        some = [frame.filter(_is_about(frame["referenced_data_file"], wanted)) for frame in frames]
        return [(p, _entries(frame, manifests[p], metadata)) for frame, p in zip(some, places, strict=True)]

    found = dict(pair for batch in each_batch(io, manifests, about_them) for pair in batch)
    for place in range(len(manifests)):
        yield from (entry for entry in found[place] if entry.is_live)


def _is_about(referenced: pl.Series, wanted: PathHashes) -> pl.Series:
    """Whether a delete file refers to no single data file, or to one with a wanted hash (which others may share)."""
    return referenced.is_null() | wanted.may_hold(referenced)


def live_entries(io: FileIO, manifests: Iterable[ManifestFile], metadata: TableMetadata) -> Iterator[ManifestEntry]:
    """The entries of the files that are in the snapshot."""
    for manifest in manifests:
        if manifest.has_live_files:
            yield from (e for e in load_entries(io, manifest, metadata) if e.is_live)


def spec_of(manifest: ManifestFile, metadata: TableMetadata) -> PartitionSpec:
    """The partition spec of a manifest's files."""
    spec = metadata.specs_by_id.get(manifest.partition_spec_id)
    if spec is None:
        raise FormatError(
            f"expected a partition spec of {sorted(metadata.specs_by_id)}, "
            f"found {manifest.partition_spec_id} for {manifest.manifest_path}"
        )
    return spec


_counts = attrgetter(*MANIFEST_COUNTS)


def with_counts(io: FileIO, manifest: ManifestFile) -> ManifestFile:
    """A manifest with its counts, which v1 lists may omit and later lists must have."""
    if None not in _counts(manifest):
        return manifest
    frame = _columns(io, manifest)
    by_status = {s: frame.filter(pl.col("status") == int(s))["record_count"] for s in EntryStatus}
    added, existing, deleted = (by_status[s] for s in (EntryStatus.ADDED, EntryStatus.EXISTING, EntryStatus.DELETED))
    return msgspec.structs.replace(
        manifest,
        added_files_count=len(added),
        existing_files_count=len(existing),
        deleted_files_count=len(deleted),
        added_rows_count=int(added.sum()),
        existing_rows_count=int(existing.sum()),
        deleted_rows_count=int(deleted.sum()),
    )


def _entries(frame: pl.DataFrame, manifest: ManifestFile, metadata: TableMetadata) -> list[ManifestEntry]:
    spec = spec_of(manifest, metadata)
    types = partition_types(spec, metadata.schema_for(spec))
    return list(inherit(entries_of(frame, types, spec.spec_id, manifest.manifest_path), manifest))


def _columns(io: FileIO, manifest: ManifestFile) -> pl.DataFrame:
    (frame,) = load_columns(io, [manifest])
    return frame


def _load(io: FileIO, paths: Sequence[str], fresh: FreshReads | None) -> dict[str, pl.DataFrame]:
    """Load manifests that are not in the cache."""
    frames = {path: frame for some in _decoded(io, paths, dict) for path, frame in some.items()}
    for path, frame in frames.items():
        MANIFESTS.keep(io, path, frame, int(frame.estimated_size()), fresh)
    return frames


def _decoded(
    io: FileIO, paths: Sequence[str], use: Callable[[Mapping[str, pl.DataFrame]], _Result]
) -> Iterator[_Result]:
    """Read in many threads, decompress in this one, and meanwhile decode and use in others.

    Decompressing small blocks in several threads would make them wait for each other at every block.
    """
    if len(paths) <= 1:
        yield from (use(read_manifests_columns([(_read(io, path), path)])) for path in paths)
        return
    threads = _threads(os.getpid())
    under_way: deque[Future[_Result]] = deque()
    for group in manifest_groups(_read_ahead(io, paths)):
        under_way.append(threads.submit(lambda some: use(decode_manifests(some)), group))
        if len(under_way) > _CORES:  # limits the memory for data that is decompressed but not yet decoded
            yield under_way.popleft().result()
    for future in under_way:
        yield future.result()


def _read_ahead(io: FileIO, paths: Sequence[str]) -> Iterator[tuple[bytes, str]]:
    """The content of files with their paths, in order; as many are read ahead as there are threads."""
    threads = _threads(os.getpid())
    ahead: deque[tuple[Future[bytes], str]] = deque()
    for path in paths:
        ahead.append((threads.submit(_read, io, path), path))
        if len(ahead) > _READERS:
            future, first = ahead.popleft()
            yield future.result(), first
    for future, path in ahead:
        yield future.result(), path


def _read(io: ManifestFiles, location: str) -> bytes:
    """Read a manifest or manifest list; FormatError if it is too large."""
    return io.read(location, _MOST_BYTES)


@cache
def _threads(process: int) -> ThreadPoolExecutor:  # noqa: ARG001  (a forked process has none of its parent's threads)
    return ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-manifests")


def _check_not_encrypted(manifests: Iterable[ManifestFile]) -> None:
    for manifest in manifests:
        if manifest.key_metadata is not None:
            raise UnsupportedError(f"cannot read the encrypted manifest {manifest.manifest_path}")


def _checked(frame: pl.DataFrame, manifest: ManifestFile) -> pl.DataFrame:
    counts = (manifest.added_files_count, manifest.existing_files_count, manifest.deleted_files_count)
    # a manifest truncated between two blocks still parses, but the manifest list has its entry count
    if None not in counts and frame.height != (expected := sum(c or 0 for c in counts)):
        raise FormatError(f"expected {expected} entries, found {frame.height} in {manifest.manifest_path}")
    return frame


def _named_manifest(io: FileIO, path: str, snapshot: Snapshot) -> ManifestFile:
    """A manifest known only by its path: the partition spec comes from its header; v1 has no sequence numbers."""
    data = _read(io, path)
    return ManifestFile(
        manifest_path=path,
        manifest_length=len(data),
        partition_spec_id=_spec_id(data, path),
        content=ManifestContent.DATA,
        added_snapshot_id=snapshot.snapshot_id,
        sequence_number=0,
        min_sequence_number=0,
    )


def _spec_id(data: bytes, path: str) -> int:
    """The partition spec id in a manifest's header; 0 if it is too old to have one."""
    text = read_header(data, path).get("partition-spec-id", b"0")
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        raise FormatError(f"expected a whole number for partition-spec-id, found {text!r} in {path}")
    return int(text)
