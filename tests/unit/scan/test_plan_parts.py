"""Scans planned by ranges of manifests."""

import pytest

from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.format.manifest.avro import render_manifest, render_manifest_list
from bergline.format.manifest.manifest import DataFile, EntryStatus, ManifestContent, ManifestEntry, ManifestFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.types.single_values import encode_value
from bergline.format.types.types import LONG
from bergline.io.memory import MemoryFileIO
from bergline.scan.plan_parts import PlanParts

MANIFESTS = {"memory:/m0": [(0, 9), (10, 19)], "memory:/m1": [(20, 29)], "memory:/m2": [(30, 39)]}


def file(low: int, high: int) -> DataFile:
    bounds = {1: encode_value(LONG, low)}, {1: encode_value(LONG, high)}
    return DataFile(f"memory:/{low}", "PARQUET", ("eu",), 10, 1, lower_bounds=bounds[0], upper_bounds=bounds[1])


@pytest.fixture
def io(metadata: TableMetadata) -> MemoryFileIO:
    io = MemoryFileIO()
    rows = []
    for path, ranges in MANIFESTS.items():
        entries = [ManifestEntry(EntryStatus.ADDED, file(*r)) for r in ranges]
        io.create(path, render_manifest(entries, metadata.schema, metadata.spec))
        counts = {"added_rows_count": 0, "existing_rows_count": 0, "deleted_rows_count": 0}
        rows.append(ManifestFile(path, 1, 0, ManifestContent.DATA, 103, 3, 3, len(ranges), 0, 0, **counts))
    io.create(metadata.snapshot(103).manifest_list, render_manifest_list(rows, 103, 102, 3))
    return io


def parts(io: MemoryFileIO, metadata: TableMetadata, text: str, snapshot_id: int | None = 103) -> PlanParts:
    row_filter = bind_filter(parse_predicate(text), metadata.schema)
    return PlanParts(io, metadata, snapshot_id=snapshot_id, schema=metadata.schema, row_filter=row_filter)


def test_parts_together_are_the_whole_plan(io: MemoryFileIO, metadata: TableMetadata) -> None:
    found = parts(io, metadata, "id >= 15")
    assert len(found) == len(MANIFESTS)
    whole = [f.file.file_path for f in found.files(0, 3)]
    assert whole == ["memory:/10", "memory:/20", "memory:/30"]
    assert [f.file.file_path for n in range(3) for f in found.files(n, n + 1)] == whole


def test_files_of_a_manifest_are_counted_without_reading_it(io: MemoryFileIO, metadata: TableMetadata) -> None:
    io.delete(MANIFESTS)
    assert [parts(io, metadata, "true").files_at(n) for n in range(3)] == [2, 1, 1]


def test_table_without_snapshots_has_no_parts(metadata: TableMetadata) -> None:
    assert len(parts(MemoryFileIO(), metadata, "true", None)) == 0
