"""Updates in the words of the REST protocol."""

from typing import Any

import msgspec
import pytest

from bergline.errors import BerglineError, ConflictError, InvalidInputError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.metadata.updates import (
    AddSnapshot,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    Update,
)

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG
NOW = 1_700_000_100_000


def snapshot(snapshot_id: int, number: int, parent: int | None = 103, time_ms: int = NOW - 10) -> Snapshot:
    return Snapshot(
        snapshot_id=snapshot_id,
        timestamp_ms=time_ms,
        manifest_list=f"snap-{snapshot_id}",
        summary={"operation": "append"},
        parent_snapshot_id=parent,
        sequence_number=number,
        schema_id=0,
    )


def apply(metadata: TableMetadata, *updates: Update, now_ms: int = NOW, location: str | None = None) -> TableMetadata:
    return apply_updates(metadata, updates, base_location=location, now_ms=now_ms)


def move(name: str, snapshot_id: int, kind: SnapshotRefType = BRANCH) -> SetSnapshotRef:
    return SetSnapshotRef(name, snapshot_id, kind)


def test_properties_are_set_and_removed(metadata: TableMetadata) -> None:
    after = apply(metadata, SetProperties({"a": "1", "b": "2"}), RemoveProperties(("owner", "b", "unknown")))
    assert after.properties == {"a": "1"}


@pytest.mark.parametrize(
    ("updates", "kind", "message"),
    [
        ([AddSnapshot(snapshot(103, 4))], ConflictError, "found 103 in the table already"),
        ([AddSnapshot(snapshot(104, 3))], ConflictError, "sequence number above 3, found 3"),
        ([move("x", 5)], ConflictError, "known snapshot for ref `x`, found 5"),
        ([move("v1", 103)], ConflictError, "ref `v1` to be a branch, found a tag"),
        ([move("audit", 103, TAG)], ConflictError, "ref `audit` to be a tag, found a branch"),
        ([move("main", 103, TAG)], InvalidInputError, "`main` to be a branch"),
        ([move("", 103)], InvalidInputError, "ref name of 1 to 255"),
        ([SetSnapshotRef("x", 103, BRANCH, min_snapshots_to_keep=0)], InvalidInputError, "above 0"),
        ([RemoveSnapshots((101, 102))], ConflictError, "`audit`, `v1`"),
    ],
)
def test_update_that_cannot_be_applied(
    metadata: TableMetadata, updates: list[Update], kind: type[BerglineError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        apply(metadata, *updates)


def test_time_never_goes_backwards(metadata: TableMetadata) -> None:
    assert apply(metadata, SetProperties({}), now_ms=5).last_updated_ms == metadata.last_updated_ms


@pytest.mark.parametrize(
    ("update", "wire"),
    [
        (
            SetSnapshotRef("x", 5, TAG, max_ref_age_ms=9),
            {"action": "set-snapshot-ref", "ref-name": "x", "snapshot-id": 5, "type": "tag", "max-ref-age-ms": 9},
        ),
        (RemoveSnapshotRef("x"), {"action": "remove-snapshot-ref", "ref-name": "x"}),
        (RemoveSnapshots((1, 2)), {"action": "remove-snapshots", "snapshot-ids": [1, 2]}),
        (SetProperties({"a": "b"}), {"action": "set-properties", "updates": {"a": "b"}}),
        (RemoveProperties(("a",)), {"action": "remove-properties", "removals": ["a"]}),
    ],
)
def test_updates_have_the_words_of_the_rest_protocol(update: Update, wire: dict[str, Any]) -> None:
    data = encode_json(update)
    assert msgspec.json.decode(data) == wire
    assert decode_json(data, Update, "x") == update
