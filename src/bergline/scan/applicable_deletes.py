"""The deletes that may apply to some data files; manifests of other deletes are not read, nor other entries kept."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import polars as pl

from bergline.format.deletes.delete_files import FILE_PATH_ID
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.columns import entries_of
from bergline.format.manifest.inheritance import inherit
from bergline.format.manifest.manifest import EntryStatus, FieldSummary, FileContent, ManifestEntry, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.columns import partition_column
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import DOUBLE, FLOAT, UNKNOWN, UUID, DecimalType, IcebergType
from bergline.io.fileio import FileIO
from bergline.scan.manifests import each_batch, spec_of
from bergline.scan.planned_files import FileGroup
from bergline.scan.pruning import values_of

# NaN, signed zeros, and values with several representations or none cannot rule anything out for certain
_NOT_COMPARED = (FLOAT, DOUBLE, UUID, UNKNOWN)


def applicable_deletes(
    io: FileIO, manifests: Sequence[ManifestFile], metadata: TableMetadata, groups: Sequence[FileGroup]
) -> Iterator[ManifestEntry]:
    """The live entries of delete manifests, except those ruled out by partition, path or sequence number."""
    groups = [group for group in groups if group.frame.height]
    if not groups:
        return
    files = _DataFiles(groups)
    kept = [m for m in manifests if files.may_need(m, metadata)]

    def applicable(frames: Sequence[pl.DataFrame], places: Sequence[int]) -> list[tuple[int, list[ManifestEntry]]]:
        return [(p, files.applicable(frame, kept[p], metadata)) for frame, p in zip(frames, places, strict=True)]

    found = dict(pair for batch in each_batch(io, kept, applicable) for pair in batch)
    for place in range(len(kept)):
        yield from found[place]


class _DataFiles:
    """The data files, in the form that deletes are compared with."""

    def __init__(self, groups: Sequence[FileGroup]) -> None:
        self._groups = {group.spec_id: group for group in groups}
        self._paths = pl.concat([group.frame["file_path"] for group in groups])
        numbers: list[Any] = [group.frame["sequence_number"].min() for group in groups]
        self._oldest: int = min(numbers)

    def may_need(self, manifest: ManifestFile, metadata: TableMetadata) -> bool:
        """False only if no delete of the manifest can apply, by its sequence number and partitions."""
        if (manifest.sequence_number or 0) < self._oldest:
            return False
        spec = spec_of(manifest, metadata)
        if spec.is_unpartitioned:  # spec: its equality deletes apply to the files of every spec
            return True
        group = self._groups.get(spec.spec_id)
        if group is None:
            return False
        summaries = manifest.partitions
        if summaries is None or len(summaries) != len(spec.fields):
            return True
        ids = [field.field_id for field in spec.fields]
        return all(_may_meet(group, i, s) for i, s in zip(ids, summaries, strict=True) if i in group.partition)

    def applicable(self, frame: pl.DataFrame, manifest: ManifestFile, metadata: TableMetadata) -> list[ManifestEntry]:
        """The deletes of a manifest that may apply."""
        spec = spec_of(manifest, metadata)
        types = partition_types(spec, metadata.schema_for(spec))
        some = frame.filter(self._may_apply(frame, manifest, types))
        return list(inherit(entries_of(some, types, spec.spec_id, manifest.manifest_path), manifest))

    def _may_apply(self, frame: pl.DataFrame, manifest: ManifestFile, types: Mapping[int, IcebergType]) -> pl.Series:
        numbers = frame["sequence_number"].fill_null(manifest.sequence_number or 0)
        is_live = (frame["status"] != int(EntryStatus.DELETED)) & (numbers >= self._oldest)
        referenced, paths = frame["referenced_data_file"], self._paths.implode()
        about = referenced.is_in(paths).fill_null(False)
        if not referenced.null_count():
            return is_live & about
        lower, upper = (
            values_of(frame[name], FILE_PATH_ID).cast(pl.String, strict=False)
            for name in ("lower_bounds", "upper_bounds")
        )
        of_positions = (frame["content"] == int(FileContent.POSITION_DELETES)).fill_null(False)
        only = of_positions & referenced.is_null() & (lower == upper).fill_null(False)
        beside = (upper < self._paths.min()).fill_null(False) | (lower > self._paths.max()).fill_null(False)
        of_several = referenced.is_null() & ~only & ~(of_positions & beside)
        about |= only & lower.is_in(paths).fill_null(False)
        return is_live & (about | (of_several & self._is_in_partition(frame, manifest, types)))

    def _is_in_partition(
        self, frame: pl.DataFrame, manifest: ManifestFile, types: Mapping[int, IcebergType]
    ) -> pl.Series:
        """For each delete, whether any file is in its partition, by the fields that can be compared."""
        group = self._groups.get(manifest.partition_spec_id)
        every = pl.repeat(True, frame.height, dtype=pl.Boolean, eager=True)
        if group is None or not types:
            return every
        ours, theirs = _compared(frame, types), _compared(group.frame, group.partition)
        names = [name for name in ours if name in theirs and ours[name].dtype == theirs[name].dtype]
        if not names:
            return every
        deletes = pl.DataFrame({name: ours[name] for name in names}).with_row_index("row")
        files = pl.DataFrame({name: theirs[name] for name in names}).unique()
        found = deletes.join(files, on=names, how="semi", nulls_equal=True)["row"]
        return deletes["row"].is_in(found.implode())


def _compared(frame: pl.DataFrame, types: Mapping[int, IcebergType]) -> dict[str, pl.Series]:
    """The partition columns whose values are certain to have the same form in all manifests."""
    return {
        str(field_id): partition_column(frame, field_id, type_)
        for field_id, type_ in types.items()
        if _is_compared(type_) and str(field_id) in frame.columns
    }


def _is_compared(type_: IcebergType) -> bool:
    return type_ not in _NOT_COMPARED and not isinstance(type_, DecimalType)


def _may_meet(group: FileGroup, field_id: int, summary: FieldSummary) -> bool:
    """False only if, for some partition field, no file has a value between the bounds of the manifest."""
    type_ = group.partition[field_id]
    if not _is_compared(type_) or str(field_id) not in group.frame.columns:
        return True
    column = partition_column(group.frame, field_id, type_)
    if summary.contains_null and column.null_count():
        return True
    lowest: Any = column.min()
    highest: Any = column.max()
    if lowest is None:
        return summary.contains_null
    if summary.lower_bound is None or summary.upper_bound is None:
        return True
    first, last = decode_value(type_, summary.lower_bound), decode_value(type_, summary.upper_bound)
    # bounds from before a type promotion, such as dates, cannot be compared with the values
    if not type(first) is type(last) is type(lowest):
        return True
    return bool(lowest <= last and first <= highest)
