"""Summaries of manifests in the manifest list."""

import uuid
from typing import Any

import pytest

from bergline.format.manifest.manifest import DataFile, EntryStatus, FieldSummary, ManifestContent, ManifestEntry
from bergline.format.manifest.summary import describe_manifest, summarize_partitions
from bergline.format.partition.spec import PartitionSpec, parse_partition_by
from bergline.format.schema.schema import Schema
from bergline.format.types.types import FLOAT, STRING, UUID, IcebergType, NestedField


def partitions(*values: Any) -> list[ManifestEntry]:
    return [ManifestEntry(EntryStatus.ADDED, DataFile("f", "PARQUET", (v,), 1, 1)) for v in values]


@pytest.mark.parametrize(
    ("type_", "values", "expected"),
    [
        (STRING, ["b", "a", None], FieldSummary(True, False, b"a", b"b")),
        (STRING, [None], FieldSummary(True, False)),
        (STRING, [], FieldSummary(False, False)),
        (FLOAT, [float("nan"), 1.0], FieldSummary(False, True, b"\x00\x00\x80\x3f", b"\x00\x00\x80\x3f")),
        (FLOAT, [float("nan")], FieldSummary(False, True)),
    ],
)
def test_summary_is_the_range_of_the_partition_values(
    type_: IcebergType, values: list[Any], expected: FieldSummary
) -> None:
    schema = Schema(fields=(NestedField(1, "c", False, type_),))
    struct = parse_partition_by(["c"], schema).partition_type(schema)
    assert summarize_partitions(partitions(*values), struct) == (expected,)


def test_summary_of_uuids_is_in_the_order_of_java() -> None:
    low, high = uuid.UUID(int=2**127), uuid.UUID(int=2**127 - 1)
    schema = Schema(fields=(NestedField(1, "c", False, UUID),))
    (summary,) = summarize_partitions(
        partitions(uuid.UUID(int=0), high, low), parse_partition_by(["c"], schema).partition_type(schema)
    )
    assert (summary.lower_bound, summary.upper_bound) == (low.bytes, high.bytes)


def test_new_manifest_is_described_by_counts_rows_and_the_smallest_sequence_number() -> None:
    def entry(status: EntryStatus, rows: int, number: int | None) -> ManifestEntry:
        file = DataFile("f", "PARQUET", (), rows, 1)
        return ManifestEntry(status, file, sequence_number=number)

    found = describe_manifest(
        "m.avro",
        99,
        [
            entry(EntryStatus.ADDED, 5, None),
            entry(EntryStatus.EXISTING, 7, 4),
            entry(EntryStatus.EXISTING, 1, 3),
            entry(EntryStatus.DELETED, 9, 1),
        ],
        spec=PartitionSpec(0, ()),
        schema=Schema(fields=()),
        content=ManifestContent.DATA,
        snapshot_id=42,
    )
    assert (found.added_files_count, found.existing_files_count, found.deleted_files_count) == (1, 2, 1)
    assert (found.added_rows_count, found.existing_rows_count, found.deleted_rows_count) == (5, 8, 9)
    assert (found.sequence_number, found.min_sequence_number) == (None, 3)
    assert (found.manifest_path, found.manifest_length, found.added_snapshot_id) == ("m.avro", 99, 42)
