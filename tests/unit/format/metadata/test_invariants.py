"""What holds for all metadata."""

from typing import Any

import msgspec
import pytest

from bergline.errors import FormatError
from bergline.format.metadata.invariants import broken_invariants, check_invariants
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.table_metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


def changed(metadata: TableMetadata, **fields: Any) -> TableMetadata:
    return msgspec.structs.replace(metadata, **fields)


def test_consistent_metadata_passes(metadata: TableMetadata) -> None:
    assert check_invariants(metadata) is metadata


INCONSISTENT: dict[str, tuple[Any, str]] = {
    "two schemas of one id": (lambda m: {"schemas": m.schemas * 2}, "each schema-id once, found 0 twice"),
    "two specs of one id": (lambda m: {"partition_specs": m.partition_specs * 2}, "each spec-id once"),
    "two orders of one id": (lambda m: {"sort_orders": m.sort_orders * 2}, "each order-id once"),
    "two snapshots of one id": (
        lambda m: {"snapshots": (*m.snapshots, m.snapshots[0])},
        "each snapshot-id once, found 101 twice",
    ),
    "unknown schema": (lambda _: {"current_schema_id": 8}, r"current-schema-id to be one of \[0\], found 8"),
    "unknown spec": (lambda _: {"default_spec_id": 8}, "default-spec-id"),
    "unknown order": (lambda _: {"default_sort_order_id": 8}, "default-sort-order-id"),
    "number above the last": (lambda _: {"last_sequence_number": 2}, "up to 2, found 3 for snapshot 103"),
    "dangling ref": (
        lambda m: {"refs": m.refs | {"x": SnapshotRef(5, TAG)}},
        "known snapshot for ref `x`, found 5",
    ),
    "main elsewhere": (lambda m: {"refs": m.refs | {"main": SnapshotRef(102, BRANCH)}}, "`main` to be the current"),
    "main missing": (lambda _: {"refs": {}}, "current snapshot 103, found None"),
    "main without current": (lambda _: {"current_snapshot_id": None}, "`main` to be the current"),
    "main a tag": (lambda m: {"refs": m.refs | {"main": SnapshotRef(103, TAG)}}, "`main` to be a branch"),
    "snapshot log out of order": (
        lambda m: {"snapshot_log": (SnapshotLogEntry(m.last_updated_ms, 103), SnapshotLogEntry(1, 103))},
        "in the snapshot-log",
    ),
    "metadata log after the update": (
        lambda m: {"metadata_log": (MetadataLogEntry(m.last_updated_ms + 60_001, "f"),)},
        "in the metadata-log",
    ),
}


@pytest.mark.parametrize(("change", "message"), INCONSISTENT.values(), ids=list(INCONSISTENT))
def test_contradiction_is_refused(metadata: TableMetadata, change: Any, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        check_invariants(changed(metadata, **change(metadata)))


def test_clocks_may_differ_by_a_minute(metadata: TableMetadata) -> None:
    log = (MetadataLogEntry(metadata.last_updated_ms + 60_000, "f"),)
    assert check_invariants(changed(metadata, metadata_log=log)).metadata_log == log


def test_every_kind_of_contradiction_is_found_at_once(metadata: TableMetadata) -> None:
    assert broken_invariants(metadata) == []
    broken = msgspec.structs.replace(metadata, current_snapshot_id=1, default_spec_id=7, last_sequence_number=1)
    found = [str(error) for error in broken_invariants(broken)]
    assert ["default-spec-id" in found[0], "sequence numbers" in found[1], "`main`" in found[2], len(found)] == [
        True,
        True,
        True,
        3,
    ]
