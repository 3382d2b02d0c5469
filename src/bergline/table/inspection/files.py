"""Metadata tables of files and of manifest entries, column by column."""

from collections.abc import Iterator, Mapping

import polars as pl
import pyarrow as pa

from bergline.datafiles.file.arrow_schema import arrow_type
from bergline.datafiles.file.constants import plain_to_arrow
from bergline.format.manifest.manifest import ManifestContent
from bergline.format.partition.columns import partition_column, partition_values
from bergline.format.schema.schema import Schema
from bergline.format.types.types import UUID, VARIANT, DecimalType, IcebergType, NestedField, StructType, child_fields
from bergline.scan.pruning import column_metrics, values_of
from bergline.table.inspection.arrow_columns import (
    BOUNDS,
    COUNTS,
    INTS,
    LONGS,
    column_array,
    struct_array,
    value_array,
)
from bergline.table.inspection.metadata_view import MetadataView, of_content
from bergline.table.scans.partition_union import partition_union

_SLICE_ROWS = 1 << 16
"""The rows of one Arrow chunk: few enough for 32-bit offsets."""


def files_table(view: MetadataView, content: ManifestContent | None = None) -> pa.Table:
    """The files of the snapshot."""
    return _files(view, view.live_entries(of_content(view.manifests(), content)))


def all_files_table(view: MetadataView, content: ManifestContent | None = None) -> pa.Table:
    """The files of all snapshots; a file appears once for each manifest that lists it."""
    return _files(view, view.live_entries(of_content(view.all_manifests(), content)))


def entries_table(view: MetadataView) -> pa.Table:
    """The entries of the snapshot's manifests, including removed files."""
    return _entries(view, view.entries(view.manifests()))


def all_entries_table(view: MetadataView) -> pa.Table:
    """The entries of the manifests of all snapshots."""
    return _entries(view, view.entries(view.all_manifests()))


def partition_type(union: StructType) -> pa.StructType:
    """The Arrow type of a `partition` column."""
    return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in union.fields])


def partition_array(entries: pl.DataFrame, union: StructType) -> pa.Array:
    """The partitions of entries; null in the fields that their spec does not have."""
    arrays = [_partition_field(entries, field) for field in union.fields]
    return struct_array(arrays, partition_type(union), entries.height)


def _files(view: MetadataView, by_spec: Mapping[int, pl.DataFrame]) -> pa.Table:
    metadata, union = view.metadata, partition_union(view.metadata)
    schema = pa.schema([*_file_type(union), pa.field("readable_metrics", metrics_type(metadata.schema))])
    batches = [
        pa.record_batch([*_file_arrays(piece, spec_id, union), metrics_array(piece, metadata.schema)], schema=schema)
        for spec_id, piece in _pieces(by_spec)
    ]
    return pa.Table.from_batches(batches, schema)


def _entries(view: MetadataView, by_spec: Mapping[int, pl.DataFrame]) -> pa.Table:
    metadata, union = view.metadata, partition_union(view.metadata)
    numbers = {"status": pa.int32(), "snapshot_id": pa.int64()}
    numbers |= dict.fromkeys(("sequence_number", "file_sequence_number"), pa.int64())
    schema = pa.schema(
        [
            *(pa.field(name, type_, nullable=name != "status") for name, type_ in numbers.items()),
            pa.field("data_file", file_type := _file_type(union), nullable=False),
            pa.field("readable_metrics", metrics_type(metadata.schema)),
        ]
    )
    batches = [
        pa.record_batch(
            [
                *(column_array(piece[name], type_) for name, type_ in numbers.items()),
                struct_array(_file_arrays(piece, spec_id, union), file_type, piece.height),
                metrics_array(piece, metadata.schema),
            ],
            schema=schema,
        )
        for spec_id, piece in _pieces(by_spec)
    ]
    return pa.Table.from_batches(batches, schema)


def _pieces(by_spec: Mapping[int, pl.DataFrame]) -> Iterator[tuple[int, pl.DataFrame]]:
    for spec_id, frame in by_spec.items():
        for piece in frame.iter_slices(_SLICE_ROWS):
            yield spec_id, piece


def _partition_field(entries: pl.DataFrame, field: NestedField) -> pa.Array:
    if str(field.id) not in entries.columns:
        return pa.nulls(entries.height, arrow_type(field.type))
    if field.type == UUID or isinstance(field.type, DecimalType):
        return plain_to_arrow(field.type, partition_values(entries, field.id, field.type))
    return value_array(partition_column(entries, field.id, field.type), field.type)


def _file_type(union: StructType) -> pa.StructType:
    partition = [pa.field("partition", partition_type(union), nullable=False)] if union.fields else []
    required = {"file_path", "file_format", "record_count", "file_size_in_bytes"}
    fields = [pa.field(name, type_, nullable=name not in required) for name, type_ in _FILE_COLUMNS.items()]
    index = [f.name for f in fields].index("record_count")
    return pa.struct([*fields[:index], *partition, *fields[index:]])


def _file_arrays(entries: pl.DataFrame, spec_id: int, union: StructType) -> list[pa.Array]:
    last_offset = pl.col("split_offsets").list.last()
    entries = entries.with_columns(
        pl.col("content").fill_null(0),
        pl.col("file_format").str.to_uppercase(),
        pl.lit(spec_id, pl.Int32).alias("spec_id"),
        # as in Java: offsets beyond the end of the file cannot be trusted
        pl.when(last_offset < pl.col("file_size_in_bytes")).then(pl.col("split_offsets")),
    )
    return [
        partition_array(entries, union) if f.name == "partition" else column_array(entries[f.name], f.type)
        for f in _file_type(union)
    ]


_FILE_COLUMNS: dict[str, pa.DataType] = {
    "content": pa.int32(),
    "file_path": pa.string(),
    "file_format": pa.string(),
    "spec_id": pa.int32(),
    "record_count": pa.int64(),
    "file_size_in_bytes": pa.int64(),
    "column_sizes": COUNTS,
    "value_counts": COUNTS,
    "null_value_counts": COUNTS,
    "nan_value_counts": COUNTS,
    "lower_bounds": BOUNDS,
    "upper_bounds": BOUNDS,
    "key_metadata": pa.binary(),
    "split_offsets": LONGS,
    "equality_ids": INTS,
    "sort_order_id": pa.int32(),
    "first_row_id": pa.int64(),
    "referenced_data_file": pa.string(),
    "content_offset": pa.int64(),
    "content_size_in_bytes": pa.int64(),
}


def metrics_type(schema: Schema) -> pa.StructType:
    """A struct of metrics for each column, nested ones by their dotted names."""
    return pa.struct([pa.field(name, _column_type(field.type)) for name, field in _columns(schema)])


def metrics_array(files: pl.DataFrame, schema: Schema) -> pa.Array:
    """The metrics of files, one row each."""
    columns = [_column_array(files, field) for _, field in _columns(schema)]
    return struct_array(columns, metrics_type(schema), files.height)


def _columns(schema: Schema) -> list[tuple[str, NestedField]]:
    """The columns that hold values themselves, in the order of Java's strings."""
    leaves = ((n, f) for n, f in schema.names.items() if not child_fields(f.type) and f.type != VARIANT)
    return sorted(leaves, key=lambda column: column[0].encode("utf-16-be"))


def _column_type(type_: IcebergType) -> pa.StructType:
    counts = ("column_size", "value_count", "null_value_count", "nan_value_count")
    bound = arrow_type(type_)
    return pa.struct([*((name, pa.int64()) for name in counts), ("lower_bound", bound), ("upper_bound", bound)])


def _column_array(files: pl.DataFrame, field: NestedField) -> pa.Array:
    found = column_metrics(files, field.id, field.type)
    counts = (values_of(files["column_sizes"], field.id), found.value_count, found.null_count, found.nan_count)
    arrays = [
        *(column_array(count, pa.int64()) for count in counts),
        value_array(found.lower, field.type),
        value_array(found.upper, field.type),
    ]
    return struct_array(arrays, _column_type(field.type), files.height)
