"""The summary of a manifest in the manifest list: counts, minimum sequence number, partition field ranges."""

import math
import struct
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from bergline.format.manifest.manifest import EntryStatus, FieldSummary, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.partition.spec import PartitionSpec
from bergline.format.schema.schema import Schema
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import StructType


def describe_manifest(
    path: str,
    length: int,
    entries: Sequence[ManifestEntry],
    *,
    spec: PartitionSpec,
    schema: Schema,
    content: ManifestContent,
    snapshot_id: int,
) -> ManifestFile:
    """The manifest list row of a new manifest, whose sequence number is assigned later."""
    rows = {s: [e.data_file.record_count for e in entries if e.status is s] for s in EntryStatus}
    numbers = [e.sequence_number for e in entries if e.is_live and e.sequence_number is not None]
    return ManifestFile(
        manifest_path=path,
        manifest_length=length,
        partition_spec_id=spec.spec_id,
        content=content,
        added_snapshot_id=snapshot_id,
        min_sequence_number=min(numbers, default=None),
        added_files_count=len(rows[EntryStatus.ADDED]),
        existing_files_count=len(rows[EntryStatus.EXISTING]),
        deleted_files_count=len(rows[EntryStatus.DELETED]),
        added_rows_count=sum(rows[EntryStatus.ADDED]),
        existing_rows_count=sum(rows[EntryStatus.EXISTING]),
        deleted_rows_count=sum(rows[EntryStatus.DELETED]),
        partitions=summarize_partitions(entries, spec.partition_type(schema)),
    )


def summarize_partitions(entries: Iterable[ManifestEntry], partition: StructType) -> tuple[FieldSummary, ...]:
    """The value range of each partition field over all entries."""
    columns = list(zip(*(e.data_file.partition for e in entries), strict=True)) or [()] * len(partition.fields)
    return tuple(_summary(values, f.type) for values, f in zip(columns, partition.fields, strict=True))


def _summary(values: Sequence[Any], type_: Any) -> FieldSummary:
    nans = [v for v in values if isinstance(v, float) and math.isnan(v)]
    present = [v for v in values if v is not None and not (isinstance(v, float) and math.isnan(v))]
    return FieldSummary(
        contains_null=any(v is None for v in values),
        contains_nan=bool(nans),
        lower_bound=encode_value(type_, min(present, key=_order)) if present else None,
        upper_bound=encode_value(type_, max(present, key=_order)) if present else None,
    )


def _order(value: Any) -> Any:
    """Sort keys: -0.0 below 0.0, UUIDs as two signed longs, because Java prunes in that order."""
    match value:
        case float():
            return value, math.copysign(1, value)
        case UUID(bytes=data):
            return struct.unpack(">qq", data)
    return value
