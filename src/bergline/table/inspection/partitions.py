"""The metadata table of partitions, with totals of their files."""

from collections.abc import Hashable
from typing import Any

import polars as pl
import pyarrow as pa

from bergline.datafiles.file.constants import plain_to_arrow
from bergline.format.manifest.manifest import FileContent
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.partition.columns import partition_values
from bergline.format.types.types import StructType
from bergline.table.inspection.arrow_columns import column_array, struct_array
from bergline.table.inspection.files import partition_type
from bergline.table.inspection.history import INSTANT
from bergline.table.inspection.metadata_view import MetadataView
from bergline.table.scans.partition_union import partition_union

_SUMS: dict[str, tuple[pa.DataType, FileContent, str | None]] = {
    "record_count": (pa.int64(), FileContent.DATA, "record_count"),
    "file_count": (pa.int32(), FileContent.DATA, None),
    "total_data_file_size_in_bytes": (pa.int64(), FileContent.DATA, "file_size_in_bytes"),
    "position_delete_record_count": (pa.int64(), FileContent.POSITION_DELETES, "record_count"),
    "position_delete_file_count": (pa.int32(), FileContent.POSITION_DELETES, None),
    "equality_delete_record_count": (pa.int64(), FileContent.EQUALITY_DELETES, "record_count"),
    "equality_delete_file_count": (pa.int32(), FileContent.EQUALITY_DELETES, None),
}


def partitions_table(view: MetadataView) -> pa.Table:
    """Each partition that the snapshot has files in; deletes are counted, not applied."""
    union = partition_union(view.metadata)
    partitions = _Partitions(union, view.metadata)
    frames = [partitions.placed(s, frame) for s, frame in view.live_entries(view.manifests()).items()]
    sums = _summed(pl.concat(frames), view.metadata) if frames else _summed(_NO_FILES, view.metadata)
    schema, arrays = list(_own_schema()), [column_array(sums[f.name], f.type) for f in _own_schema()]
    if union.fields:
        values = partitions.values(sums["partition"].to_list())
        schema = [
            pa.field("partition", partition_type(union), nullable=False),
            pa.field("spec_id", pa.int32(), nullable=False),
            *schema,
        ]
        arrays = [values, column_array(sums["spec_id"], pa.int32()), *arrays]
    return pa.Table.from_arrays(arrays, schema=pa.schema(schema))


class _Partitions:
    """The partitions seen so far, by number."""

    def __init__(self, union: StructType, metadata: TableMetadata) -> None:
        self._union = union
        self._metadata = metadata
        self._numbers: dict[Hashable, int] = {}
        self._values: list[tuple[Any, ...]] = []

    def placed(self, spec_id: int, frame: pl.DataFrame) -> pl.DataFrame:
        """The columns to sum for some files, with the number of each file's partition."""
        spec = self._metadata.specs_by_id[spec_id]
        own = {f.field_id for f in spec.fields}
        columns = [partition_values(frame, f.id, f.type) for f in self._union.fields]
        # a null value and a missing field are different partitions
        known = sum(f.id in own for f in self._union.fields)
        rows = zip(*columns, strict=True) if columns else [()] * frame.height
        numbers = [self._number(known, values) for values in rows]
        return frame.select(
            pl.Series("partition", numbers, pl.Int64),
            pl.lit(spec_id, pl.Int32).alias("spec_id"),
            pl.col("content").fill_null(0),
            "record_count",
            "file_size_in_bytes",
            "snapshot_id",
        )

    def values(self, numbers: list[int]) -> pa.Array:
        """The partitions of these numbers."""
        rows = [self._values[number] for number in numbers]
        arrays = [plain_to_arrow(f.type, [row[i] for row in rows]) for i, f in enumerate(self._union.fields)]
        return struct_array(arrays, partition_type(self._union), len(rows))

    def _number(self, known: int, values: tuple[Any, ...]) -> int:
        # as text NaN equals itself, and -0.0 is not 0.0
        key = (known, *(repr(v) if isinstance(v, float) else v for v in values))
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self._values):
            self._values.append(values)
        return number


_NO_FILES = pl.DataFrame(
    schema=dict.fromkeys(("partition", "record_count", "file_size_in_bytes", "snapshot_id"), pl.Int64)
    | dict.fromkeys(("spec_id", "content"), pl.Int32)
)


def _own_schema() -> pa.Schema:
    return pa.schema(
        [
            *(pa.field(name, type_, nullable=False) for name, (type_, _, _) in _SUMS.items()),
            pa.field("last_updated_at", INSTANT),
            pa.field("last_updated_snapshot_id", pa.int64()),
        ]
    )


def _summed(files: pl.DataFrame, metadata: TableMetadata) -> pl.DataFrame:
    """A row for each partition."""
    times = {s.snapshot_id: s.timestamp_ms * 1000 for s in metadata.snapshots}
    known = pl.DataFrame(
        {"snapshot_id": list(times), "updated_at": list(times.values())},
        schema={"snapshot_id": pl.Int64, "updated_at": pl.Int64},
    )
    dated = files.join(known, on="snapshot_id", how="left", maintain_order="left")
    latest = pl.col("updated_at").arg_max()
    sums = {
        name: (pl.col(column) if column else pl.lit(1, pl.Int64)).filter(pl.col("content") == int(content)).sum()
        for name, (_, content, column) in _SUMS.items()
    }
    return dated.group_by("partition", maintain_order=True).agg(
        pl.col("spec_id").get(latest).fill_null(pl.col("spec_id").max()),
        pl.col("updated_at").max().alias("last_updated_at"),
        pl.col("snapshot_id").get(latest).alias("last_updated_snapshot_id"),
        **sums,
    )
