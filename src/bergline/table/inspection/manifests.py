"""Metadata tables of manifests, with the ranges of their partitions as text."""

from typing import Any

import pyarrow as pa

from bergline.errors import FormatError
from bergline.format.manifest.avro import partition_types
from bergline.format.manifest.manifest import FieldSummary, ManifestContent, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.paths import render_partition_value
from bergline.format.partition.spec import PartitionField
from bergline.format.types.single_values import decode_value
from bergline.format.types.types import DOUBLE, FLOAT, IcebergType
from bergline.scan.manifests import load_manifest_list, spec_of, with_counts
from bergline.scan.restrictions import check_rows_readable
from bergline.table.inspection.metadata_view import MetadataView

_COUNTS = ("added", "existing", "deleted")


def manifests_table(view: MetadataView) -> pa.Table:
    """The manifests of the snapshot; counts that an old list leaves out are counted."""
    rows = [_row(with_counts(view.io, m), view.metadata) for m in view.manifests()]
    for row in rows:
        row["partition_summaries"] = row["partition_summaries"] or []
    return pa.Table.from_pylist(rows, schema=_schema(required=True))


def all_manifests_table(view: MetadataView) -> pa.Table:
    """The manifests of every snapshot, once for each snapshot that has them.

    Here `contains_nan` is never null: if an old list does not say, floats count as containing NaN.
    """
    check_rows_readable(view.metadata)
    extra = [pa.field("reference_snapshot_id", pa.int64(), nullable=False), pa.field("key_metadata", pa.binary())]
    rows = [
        _row(manifest, view.metadata, nan_known=True)
        | {"reference_snapshot_id": snapshot.snapshot_id, "key_metadata": manifest.key_metadata}
        for snapshot in view.metadata.snapshots
        for manifest in load_manifest_list(view.io, snapshot)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([*_schema(required=False), *extra]))


def _schema(*, required: bool) -> pa.Schema:
    """The columns of both tables; those that old lists may omit are required only in the table of one snapshot."""
    summary = pa.struct(
        [
            pa.field("contains_null", pa.bool_(), nullable=False),
            pa.field("contains_nan", pa.bool_(), nullable=required),
            pa.field("lower_bound", pa.string()),
            pa.field("upper_bound", pa.string()),
        ]
    )
    return pa.schema(
        [
            pa.field("content", pa.int32(), nullable=False),
            pa.field("path", pa.string(), nullable=False),
            pa.field("length", pa.int64(), nullable=False),
            pa.field("partition_spec_id", pa.int32(), nullable=not required),
            pa.field("added_snapshot_id", pa.int64(), nullable=not required),
            *(pa.field(f"{count}_data_files_count", pa.int32(), nullable=not required) for count in _COUNTS),
            *(pa.field(f"{count}_delete_files_count", pa.int32(), nullable=False) for count in _COUNTS),
            pa.field(
                "partition_summaries",
                pa.list_(pa.field("element", summary, nullable=False)),
                nullable=not required,
            ),
        ]
    )


def _row(manifest: ManifestFile, metadata: TableMetadata, *, nan_known: bool = False) -> dict[str, Any]:
    of_data = manifest.content is ManifestContent.DATA
    counts = {count: getattr(manifest, f"{count}_files_count") for count in _COUNTS}
    return {
        "content": int(manifest.content),
        "path": manifest.manifest_path,
        "length": manifest.manifest_length,
        "partition_spec_id": manifest.partition_spec_id,
        "added_snapshot_id": manifest.added_snapshot_id,
        **{f"{count}_data_files_count": number if of_data else 0 for count, number in counts.items()},
        **{f"{count}_delete_files_count": 0 if of_data else number for count, number in counts.items()},
        "partition_summaries": _summaries(manifest, metadata, nan_known=nan_known),
    }


def _summaries(manifest: ManifestFile, metadata: TableMetadata, *, nan_known: bool) -> list[dict[str, Any]] | None:
    if manifest.partitions is None:
        return None
    spec = spec_of(manifest, metadata)
    types = partition_types(spec, metadata.schema_for(spec))
    if len(manifest.partitions) != len(spec.fields):
        raise FormatError(
            f"expected the ranges of {len(spec.fields)} partition fields, "
            f"found {len(manifest.partitions)} for {manifest.manifest_path}"
        )
    return [
        {
            "contains_null": summary.contains_null,
            "contains_nan": _may_contain_nan(summary, types[field.field_id]) if nan_known else summary.contains_nan,
            "lower_bound": _text(field, types[field.field_id], summary.lower_bound),
            "upper_bound": _text(field, types[field.field_id], summary.upper_bound),
        }
        for field, summary in zip(spec.fields, manifest.partitions, strict=True)
    ]


def _may_contain_nan(summary: FieldSummary, type_: IcebergType) -> bool:
    return type_ in (FLOAT, DOUBLE) if summary.contains_nan is None else summary.contains_nan


def _text(field: PartitionField, type_: IcebergType, bound: bytes | None) -> str:
    """A bound as text; as in Java, it is the word `null` if there are only nulls."""
    return render_partition_value(field.transform, type_, None if bound is None else decode_value(type_, bound))
