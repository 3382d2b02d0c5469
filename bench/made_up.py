"""Tables of many files that exist in metadata only; shared by the benchmarks."""

import struct
from collections.abc import Sequence

import pyarrow as pa

from bergline import Lake, Table
from bergline.format.manifest.manifest import DataFile, ManifestFile
from bergline.format.metadata.snapshot import Snapshot, SnapshotOperation
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.table.commits.snapshot_producer import Draft, SnapshotProducer
from bergline.table.operations.append import AddedFiles

COLUMNS = 10
SCHEMA = pa.schema([(f"c{n}", pa.int64()) for n in range(COLUMNS)] + [("region", pa.string())])
REGIONS = ("ap", "eu", "us")


def made_up_file(number: int, location: str) -> DataFile:
    """A data file with metrics of all columns; ten rows of ascending numbers."""
    ids = range(1, COLUMNS + 1)
    region = REGIONS[number % len(REGIONS)]
    low, high = struct.pack("<q", number * 10), struct.pack("<q", number * 10 + 9)
    return DataFile(
        file_path=f"{location}/data/region={region}/{number:08d}-5e2b7f1c-made-up.parquet",
        file_format="PARQUET",
        partition=(region,),
        record_count=10,
        file_size_in_bytes=4000 + number,
        column_sizes=dict.fromkeys([*ids, COLUMNS + 1], 120),
        value_counts=dict.fromkeys([*ids, COLUMNS + 1], 10),
        null_value_counts=dict.fromkeys([*ids, COLUMNS + 1], 0),
        nan_value_counts={},
        lower_bounds={**dict.fromkeys(ids, low), COLUMNS + 1: region.encode()},
        upper_bounds={**dict.fromkeys(ids, high), COLUMNS + 1: region.encode()},
        split_offsets=(4,),
        sort_order_id=0,
    )


class AppendInManifests(SnapshotProducer):
    """One snapshot of several new manifests."""

    def __init__(self, table: Table, groups: Sequence[Sequence[DataFile]]) -> None:
        super().__init__(table.io, "main", {})
        self._added = [AddedFiles(self, group) for group in groups]

    def draft(self, base: TableMetadata, parent: Snapshot | None) -> Draft:
        """All groups, each in a manifest of its own."""
        manifests: list[ManifestFile] = [m for added in self._added for m in added.manifests(base)]
        return Draft(SnapshotOperation.APPEND, tuple(manifests), added=tuple(f for a in self._added for f in a.files))


def table_of(lake: Lake, name: str, manifests: int, files: int) -> Table:
    """A table whose files are spread evenly over so many manifests."""
    table = lake.create_table(name, SCHEMA, partition_by=["region"])
    each = files // manifests
    groups = [[made_up_file(m * each + n, table.location) for n in range(each)] for m in range(manifests)]
    table.commit(AppendInManifests(table, groups))
    return table
