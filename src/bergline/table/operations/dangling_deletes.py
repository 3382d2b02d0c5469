"""Delete files that are about nothing any more, once some data files are rewritten.

Manifests are looked at a few at a time: neither all data files nor all delete files are ever in memory together.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any

import polars as pl

from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.columns import entries_of
from bergline.format.manifest.manifest import (
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    ManifestFile,
    partition_key,
)
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.delete_tallies import only_paths
from bergline.scan.manifests import load_manifest_list
from bergline.scan.path_lookup import PathHashes, PathLookup
from bergline.scan.planned_files import FileGroup
from bergline.scan.planner import each_live_group


def dangling_deletes(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot, rewritten: Collection[DataFile], sequence_number: int
) -> tuple[DataFile, ...]:
    """The delete files of a snapshot that no data file needs, once the rewritten ones are replaced by others.

    The new files, in the same partitions, have the sequence number. What others add meanwhile has higher numbers.
    """
    manifests = [m for m in load_manifest_list(io, snapshot) if m.has_live_files]
    deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
    if not deletes:
        return ()
    data = [m for m in manifests if m.content is ManifestContent.DATA]
    left = _Left(io, metadata, data, rewritten, sequence_number)
    return tuple(
        entry.data_file
        for deletes_of_spec in each_live_group(io, deletes, metadata, left.may_dangle)
        for entry in deletes_of_spec
        if left.needs_no(entry)
    )


class _Left:
    """The data files that are left, and the lowest sequence numbers of them in each partition and in all."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        manifests: Sequence[ManifestFile],
        rewritten: Collection[DataFile],
        sequence_number: int,
    ) -> None:
        gone = PathLookup(f.file_path for f in rewritten)
        self._metadata = metadata
        self._old: dict[Any, float] = defaultdict(lambda: math.inf)
        hashes = []
        for paths, numbers in each_live_group(io, manifests, metadata, lambda files: _without(files, gone)):
            hashes.append(paths)
            for key, number in numbers:
                self._old[key] = min(self._old[key], number)
        self._paths = PathHashes(hashes)
        self._all = self._old.copy()
        for file in rewritten:
            key = partition_key(file)
            self._all[key] = min(self._all[key], sequence_number)

    def may_dangle(self, deletes: FileGroup) -> list[ManifestEntry]:
        """The delete files that are not about one data file that is left."""
        frame = deletes.frame
        is_needed = (frame["content"] == int(FileContent.POSITION_DELETES)) & self._paths.may_hold(only_paths(frame))
        some = frame.filter(~is_needed.fill_null(False))
        entries = entries_of(some, deletes.partition, deletes.spec_id, "delete manifests")
        paths = pl.Series([_only_path(entry.data_file) for entry in entries], dtype=pl.String)
        return [entry for entry, is_left in zip(entries, self._paths.may_hold(paths), strict=True) if not is_left]

    def needs_no(self, entry: ManifestEntry) -> bool:
        """Whether one of these applies to none of the data files."""
        delete, number = entry.data_file, entry.sequence_number or 0
        if delete.content is FileContent.POSITION_DELETES:
            # the new files have new paths, which no older delete file can name
            return _only_path(delete) is not None or number < self._old[partition_key(delete)]
        # spec: equality deletes apply to data with lower numbers
        if self._metadata.specs_by_id[delete.spec_id].is_unpartitioned:
            return number <= min(self._all.values(), default=math.inf)
        return number <= self._all[partition_key(delete)]


def _only_path(delete: DataFile) -> str | None:
    return only_data_file(delete) if delete.content is FileContent.POSITION_DELETES else None


def _without(files: FileGroup, gone: PathLookup) -> tuple[pl.Series, list[tuple[Any, int]]]:
    """The hashes of the paths that are not gone, and the lowest sequence number in each of their partitions."""
    left = files.frame.filter(~gone.holds(files.frame["file_path"]))
    if left.is_empty():
        return left["file_path"].hash(), []
    names = [str(field_id) for field_id in files.partition if str(field_id) in left.columns]
    lowest = left.group_by(names or pl.lit(0).alias("all")).agg(pl.col("sequence_number").min())
    partitions = FileGroup(lowest, files.spec_id, files.partition)
    return left["file_path"].hash(), list(zip(partitions.partition_keys, lowest["sequence_number"], strict=True))
