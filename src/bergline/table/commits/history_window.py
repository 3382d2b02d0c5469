"""What others have committed to a branch since an operation read it: their snapshots and the entries in them."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from functools import cached_property
from typing import Any

import msgspec
import polars as pl

from bergline.errors import ConflictError
from bergline.expressions.bound_filter import EVERY_ROW, BoundFilter
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.columns import files_of
from bergline.format.manifest.inheritance import inherit_columns
from bergline.format.manifest.manifest import DataFile, ManifestContent, ManifestFile, partition_key_of
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.columns import check_partition, partition_values
from bergline.format.partition.spec import PartitionSpec
from bergline.format.types.types import IcebergType
from bergline.io.fileio import FileIO
from bergline.scan.manifests import load_columns, load_manifest_list, spec_of
from bergline.scan.pruning import Pruning


class Scope(msgspec.Struct, frozen=True):
    """Which rows an operation looked at: those that match a filter, or all in some partitions (see `partition_key`)."""

    row_filter: BoundFilter = EVERY_ROW
    partitions: frozenset[tuple[Any, ...]] | None = None


EVERYTHING = Scope()


class Written(msgspec.Struct, frozen=True):
    """Entries of one partition spec with their numbers filled in, in columns."""

    frame: pl.DataFrame
    spec: PartitionSpec


class WrittenFile(msgspec.Struct, frozen=True):
    """A file, its data sequence number, and the snapshot that wrote the entry."""

    file: DataFile
    number: int
    snapshot: Snapshot


class HistoryWindow:
    """The snapshots of a branch that came after the one that an operation started from.

    Without a start it is the whole history. ConflictError if the start is not in the history, because then it is not
    known what came after it. Snapshots from `earlier` in the same transaction are left out (see `CommitStamp`).
    """

    def __init__(
        self,
        io: FileIO,
        base: TableMetadata,
        parent: Snapshot | None,
        *,
        since: int | None,
        branch: str,
        earlier: Mapping[int, int | None],
    ) -> None:
        while since is not None and since in earlier:
            since = earlier[since]
        self._io = io
        self.base = base
        self.branch = branch
        between = _between(base, parent, since, branch)
        self.snapshots = tuple(s for s in between if s.snapshot_id not in earlier)
        start = None if since is None else base.snapshots_by_id.get(since)
        self.starting_number = 0 if start is None else start.sequence_number

    @cached_property
    def _manifests(self) -> list[tuple[Snapshot, ManifestFile]]:
        """The manifests that each snapshot added itself."""
        return [
            (s, m)
            for s in self.snapshots
            for m in load_manifest_list(self._io, s)
            if m.added_snapshot_id == s.snapshot_id
        ]

    def written(
        self, content: ManifestContent, operations: Collection[str], scope: Scope, entries: pl.Expr
    ) -> Iterator[Written]:
        """The entries written by snapshots of these operations that may be in the scope."""
        pruning = Pruning(scope.row_filter.on(self.base.schema), self.base.schema)
        by_spec: dict[int, list[ManifestFile]] = defaultdict(list)
        for snapshot, manifest in self._manifests:
            if manifest.content is content and snapshot.operation in operations:
                spec = spec_of(manifest, self.base)
                if pruning.may_match_manifest(manifest, spec):
                    by_spec[spec.spec_id].append(manifest)
        for spec_id, manifests in by_spec.items():
            spec = self.base.specs_by_id[spec_id]
            frames = load_columns(self._io, manifests)
            types = partition_types(spec, self.base.schema_for(spec))
            for frame, manifest in zip(frames, manifests, strict=True):
                check_partition(frame, types, manifest.manifest_path)
            found = pruning.matching(inherit_columns(frames, manifests).filter(entries), spec)
            if scope.partitions is not None:
                found = found.filter(_inside(found, spec_id, types, scope.partitions))
            if found.height:
                yield Written(found, spec)

    def files(
        self, content: ManifestContent, operations: Collection[str], scope: Scope, entries: pl.Expr
    ) -> Iterator[WrittenFile]:
        """The files of those entries that the snapshot itself added or removed, rather than carried forward."""
        snapshots = {s.snapshot_id: s for s in self.snapshots}
        by_them = pl.col("snapshot_id").is_in(list(snapshots))
        for written in self.written(content, operations, scope, entries & by_them):
            types = partition_types(written.spec, self.base.schema_for(written.spec))
            files = files_of(written.frame, types, written.spec.spec_id)
            columns = (written.frame[name].to_list() for name in ("sequence_number", "snapshot_id"))
            for file, number, snapshot_id in zip(files, *columns, strict=True):
                yield WrittenFile(file, number, snapshots[snapshot_id])


def _inside(
    frame: pl.DataFrame, spec_id: int, types: Mapping[int, IcebergType], partitions: frozenset[tuple[Any, ...]]
) -> pl.Series:
    """For each entry whether it is in one of the partitions."""
    values = [partition_values(frame, field_id, type_) for field_id, type_ in types.items()]
    rows = zip(*values, strict=True) if values else [()] * frame.height
    return pl.Series([partition_key_of(spec_id, row) in partitions for row in rows], dtype=pl.Boolean)


def _between(base: TableMetadata, parent: Snapshot | None, since: int | None, branch: str) -> tuple[Snapshot, ...]:
    found: list[Snapshot] = []
    for snapshot in base.ancestors(parent.snapshot_id if parent else None):
        if snapshot.snapshot_id == since:
            return tuple(found)
        found.append(snapshot)
    oldest = found[-1] if found else None
    if oldest is None or oldest.parent_snapshot_id == since:
        return tuple(found)
    if oldest.parent_snapshot_id is None:
        raise ConflictError(
            f"cannot determine what changed on `{branch}`: snapshot {since} is not in its history",
            hints=["the branch was moved elsewhere: look at it as it is now and plan the operation again"],
        )
    start = "its beginning" if since is None else f"snapshot {since}"
    raise ConflictError(
        f"cannot determine what changed on `{branch}` since {start}: snapshot {oldest.parent_snapshot_id}, "
        f"the parent of {oldest.snapshot_id}, has expired",
        hints=[
            "look at the table as it is now and plan the operation again; keep snapshots longer than operations run"
        ],
    )
