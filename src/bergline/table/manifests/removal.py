"""What a commit removes: given files, whole partitions, or everything; and finding such files in manifests."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Any, assert_never

import msgspec
import polars as pl

from bergline.expressions.metrics import must_match
from bergline.expressions.predicate import IsIn, IsNan, IsNull, Predicate, all_of, any_of
from bergline.expressions.project import partition_schema
from bergline.expressions.residual import residual
from bergline.expressions.summaries import may_match_manifest
from bergline.format.deletes.delete_files import only_data_file
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.manifest import (
    DataFile,
    EntryStatus,
    FileContent,
    ManifestFile,
    partition_key,
    partition_key_of,
)
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.columns import partition_values
from bergline.scan.manifests import spec_of
from bergline.scan.shared_keys import may_share_keys

POSITION = "position"
"""The column with the position of an entry in its manifest."""
Partition = tuple[int, tuple[Any, ...]]
FileKey = tuple[str, int | None]


class RemovedFiles(msgspec.Struct, frozen=True):
    """These data or delete files; if they must exist, a missing one is a conflict."""

    files: tuple[DataFile, ...]
    must_exist: bool = False


class RemovedPartitions(msgspec.Struct, frozen=True):
    """Every data and delete file of these partitions, each a spec id and its values."""

    partitions: tuple[Partition, ...]


class Everything(msgspec.Struct, frozen=True):
    """Every file."""


Removal = RemovedFiles | RemovedPartitions | Everything


def file_key(file: DataFile) -> FileKey:
    """The identity of a file in a snapshot: a Puffin file may hold many deletion vectors."""
    return file.file_path, file.content_offset


class FileSelector:
    """The removals of one commit, looked up in the manifests of one base."""

    def __init__(self, removals: Iterable[Removal], base: TableMetadata) -> None:
        self._base = base
        self._pickers = [_picker(removal, base) for removal in removals]

    def may_pick(self, manifest: ManifestFile) -> bool:
        """False only if nothing in the manifest is removed; looks at no file."""
        return any(picker.may_pick(manifest) for picker in self._pickers)

    def picks(self, live: pl.DataFrame, manifest: ManifestFile) -> set[int]:
        """The positions of the removed entries among the live ones."""
        return {p for picker in self._pickers if picker.may_pick(manifest) for p in picker.picks(live, manifest)}


class PartitionLookup:
    """Which manifests may list files of some partitions, by the summaries of the manifest list."""

    def __init__(self, partitions: Iterable[Partition], base: TableMetadata) -> None:
        self._base = base
        by_spec: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
        for spec_id, values in partitions:
            spec = base.specs_by_id.get(spec_id)
            if spec is not None and len(spec.fields) == len(values):  # otherwise it cannot contain any of them
                by_spec[spec_id].append(values)
        self._filters = {spec_id: _partition_filter(base, spec_id, values) for spec_id, values in by_spec.items()}

    def may_pick(self, manifest: ManifestFile) -> bool:
        """False only if no file of the manifest is in one of the partitions."""
        wanted = self._filters.get(manifest.partition_spec_id)
        if wanted is None:
            return False
        return may_match_manifest(wanted, manifest.partitions, spec_of(manifest, self._base), self._base.schema)


def live_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The live entries of a manifest, each with its position."""
    return frame.with_row_index(POSITION).filter(pl.col("status") != int(EntryStatus.DELETED))


class _PickFiles(PartitionLookup):
    def __init__(self, files: Collection[DataFile], base: TableMetadata) -> None:
        super().__init__({partition_key(f): (f.spec_id, f.partition) for f in files}.values(), base)
        self._keys = {file_key(f) for f in files}
        self._paths = pl.Series(list({path for path, _ in self._keys}), dtype=pl.String).implode()

    def picks(self, live: pl.DataFrame, _manifest: ManifestFile) -> list[int]:
        found = live.filter(pl.col("file_path").is_in(self._paths))
        rows = found.select(POSITION, "file_path", "content_offset").iter_rows()
        return [position for position, path, offset in rows if (path, offset) in self._keys]


class _PickPartitions(PartitionLookup):
    def __init__(self, partitions: Collection[Partition], base: TableMetadata) -> None:
        super().__init__(partitions, base)
        self._keys = {partition_key_of(spec_id, values) for spec_id, values in partitions}

    def picks(self, live: pl.DataFrame, manifest: ManifestFile) -> list[int]:
        spec = spec_of(manifest, self._base)
        types = partition_types(spec, self._base.schema_for(spec))
        columns = [partition_values(live, field_id, type_) for field_id, type_ in types.items()]
        rows = zip(*columns, strict=True) if columns else [()] * live.height
        positions = live[POSITION].to_list()
        keys = (partition_key_of(spec.spec_id, values) for values in rows)
        return [position for position, key in zip(positions, keys, strict=True) if key in self._keys]


class _PickAll:
    def may_pick(self, _manifest: ManifestFile) -> bool:
        return True

    def picks(self, live: pl.DataFrame, _manifest: ManifestFile) -> list[int]:
        return live[POSITION].to_list()


def matches_wholly(predicate: Predicate, file: DataFile, base: TableMetadata) -> bool:
    """True only if every row of a file satisfies a bound predicate, by its partition and metrics alone."""
    left = residual(predicate, base.specs_by_id[file.spec_id], file.partition, base.schema)
    return must_match(left, file, base.schema)


def _picker(removal: Removal, base: TableMetadata) -> _PickFiles | _PickPartitions | _PickAll:
    match removal:
        case RemovedFiles(files):
            return _PickFiles(files, base)
        case RemovedPartitions(partitions):
            return _PickPartitions(partitions, base)
        case Everything():
            return _PickAll()
        case _:
            assert_never(removal)


def _partition_filter(base: TableMetadata, spec_id: int, partitions: Collection[tuple[Any, ...]]) -> Predicate:
    """True for these partitions, and for others that combine their values."""
    spec = base.specs_by_id[spec_id]
    known = partition_schema(spec, base.schema).ids
    return all_of(
        _among(field.name, {values[index] for values in partitions})
        for index, field in enumerate(spec.fields)
        if field.field_id in known
    )


def _among(name: str, values: Collection[Any]) -> Predicate:
    nans = [v for v in values if isinstance(v, float) and math.isnan(v)]
    plain = tuple(v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v)))
    predicates: list[Predicate] = [IsIn(name, plain)] if plain else []
    predicates += [IsNull(name)] if None in values else []
    predicates += [IsNan(name)] if nans else []
    return any_of(predicates)


class DeleteTargets:
    """Data files by path and partition, to find those that a delete file may apply to."""

    def __init__(self, files: Collection[DataFile], base: TableMetadata) -> None:
        self._files = files
        self._base = base
        self._by_path = {f.file_path: [f] for f in files}
        self._by_partition: dict[tuple[Any, ...], list[DataFile]] = defaultdict(list)
        for file in files:
            self._by_partition[partition_key(file)].append(file)

    def of(self, delete: DataFile) -> list[DataFile]:
        """The files of which a delete file may delete rows, regardless of sequence numbers."""
        if delete.content is FileContent.EQUALITY_DELETES:
            everywhere = self._base.specs_by_id[delete.spec_id].is_unpartitioned
            near = self._files if everywhere else self._by_partition.get(partition_key(delete), ())
            return [f for f in near if may_share_keys(f, delete, self._base)]
        about = only_data_file(delete)
        return self._by_partition.get(partition_key(delete), []) if about is None else self._by_path.get(about, [])
