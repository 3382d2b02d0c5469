"""Counts of rows and files by partition, in a Parquet file with the layout of the specification."""

import math
import uuid
from collections.abc import Iterator
from typing import Any, Final

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from bergline.catalog.metadata_files import metadata_directory
from bergline.datafiles.file.arrow_schema import arrow_schema, arrow_type
from bergline.datafiles.file.constants import plain_to_arrow
from bergline.errors import InvalidInputError
from bergline.format.manifest.manifest import EntryStatus, FileContent
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, PartitionStatisticsFile, TableMetadata
from bergline.format.partition.columns import partition_values
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, IcebergType, NestedField, StructType
from bergline.io.fileio import FileIO
from bergline.io.locations import join
from bergline.table.inspection.metadata_view import MetadataView
from bergline.table.scans.partition_union import partition_union

_IS_VECTOR: Final = pl.col("file_format").str.to_uppercase() == "PUFFIN"
_Row = dict[str, Any]


def write_partition_statistics(
    io: FileIO, metadata: TableMetadata, snapshot: Snapshot
) -> PartitionStatisticsFile | None:
    """Compute the statistics of a snapshot's partitions and write them to a new file; None if it has none."""
    union = partition_union(metadata)
    if not union.fields:
        raise InvalidInputError("expected a partitioned table to compute partition statistics of, found no partitions")
    rows = sorted(_rows(io, metadata, snapshot, union), key=lambda row: [_order(v) for v in row["partition"]])
    if not rows:
        return None
    data = _parquet(rows, partition_statistics_schema(metadata, union), union)
    location = join(metadata_directory(metadata), f"partition-stats-{snapshot.snapshot_id}-{uuid.uuid4()}.parquet")
    io.create(location, data)
    return PartitionStatisticsFile(snapshot.snapshot_id, location, len(data))


def partition_statistics_schema(metadata: TableMetadata, union: StructType) -> Schema:
    """The columns of the file, with the ids of the specification; those of deletes are required from v3 on."""
    v3 = metadata.format_version >= ROW_LINEAGE_VERSION
    columns: list[tuple[int, str, IcebergType, bool]] = [
        (1, "partition", union, True),
        (2, "spec_id", INT, True),
        (3, "data_record_count", LONG, True),
        (4, "data_file_count", INT, True),
        (5, "total_data_file_size_in_bytes", LONG, True),
        (6, "position_delete_record_count", LONG, v3),
        (7, "position_delete_file_count", INT, v3),
        (8, "equality_delete_record_count", LONG, v3),
        (9, "equality_delete_file_count", INT, v3),
        (10, "total_record_count", LONG, False),
        (11, "last_updated_at", LONG, False),
        (12, "last_updated_snapshot_id", LONG, False),
        *([(13, "dv_count", INT, True)] if v3 else []),
    ]
    return Schema(fields=tuple(NestedField(i, name, required, type_) for i, name, type_, required in columns))


def _rows(io: FileIO, metadata: TableMetadata, snapshot: Snapshot, union: StructType) -> Iterator[_Row]:
    view = MetadataView(io, metadata, "", snapshot)
    times = pl.DataFrame(
        [(s.snapshot_id, s.timestamp_ms) for s in metadata.snapshots],
        schema={"snapshot_id": pl.Int64, "last_updated_at": pl.Int64},
        orient="row",
    )
    for spec_id, entries in view.entries(view.manifests()).items():
        # entries of removed files count as updates of their partition, as in Java
        dated = entries.join(times, on="snapshot_id", how="left", maintain_order="left")
        keys = [name for name in entries.columns if name.isdecimal()]
        sums = dated.group_by(keys, maintain_order=True).agg(**_sums()) if keys else dated.select(**_sums())
        columns = [partition_values(sums, f.id, f.type) for f in union.fields]
        for partition, counts in zip(zip(*columns, strict=True), sums.drop(keys).iter_rows(named=True), strict=True):
            # Java's next file would carry the total forward unchanged, whatever was added since: so leave it unknown,
            # as Java does
            yield {**counts, "partition": partition, "spec_id": spec_id, "total_record_count": None}


def _sums() -> dict[str, pl.Expr]:
    live, content = pl.col("status") != int(EntryStatus.DELETED), pl.col("content").fill_null(0)
    data, by_position, by_equality = (
        live & (content == int(kind))
        for kind in (FileContent.DATA, FileContent.POSITION_DELETES, FileContent.EQUALITY_DELETES)
    )
    records, latest = pl.col("record_count"), pl.col("last_updated_at").arg_max()
    return {
        "data_record_count": records.filter(data).sum(),
        "data_file_count": data.sum(),
        "total_data_file_size_in_bytes": pl.col("file_size_in_bytes").filter(data).sum(),
        "position_delete_record_count": records.filter(by_position).sum(),
        "position_delete_file_count": (by_position & ~_IS_VECTOR).sum(),
        "dv_count": (by_position & _IS_VECTOR).sum(),
        "equality_delete_record_count": records.filter(by_equality).sum(),
        "equality_delete_file_count": by_equality.sum(),
        "last_updated_at": pl.col("last_updated_at").max(),
        "last_updated_snapshot_id": pl.col("snapshot_id").get(latest),
    }


def _parquet(rows: list[_Row], schema: Schema, union: StructType) -> bytes:
    wanted = arrow_schema(schema)
    partitions = [plain_to_arrow(f.type, [row["partition"][n] for row in rows]) for n, f in enumerate(union.fields)]
    arrays = [pa.StructArray.from_arrays(partitions, fields=list(arrow_type(union)))]
    arrays += [pa.array([row[f.name] for row in rows], f.type) for f in list(wanted)[1:]]
    output = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(arrays, schema=wanted), output, compression="zstd")
    return output.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _order(value: Any) -> tuple[Any, ...]:
    """Nulls first, NaN last."""
    if isinstance(value, float):
        return (1, math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1, value))
    return (0,) if value is None else (1, value)
