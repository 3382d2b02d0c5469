"""Updates and what they make of metadata."""

from typing import Any

import msgspec
import pytest

from bergline.errors import BerglineError, ConflictError, InvalidInputError
from bergline.format.encoding.wire import decode_json, encode_json
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import MetadataLogEntry, SnapshotLogEntry, TableMetadata
from bergline.format.metadata.updates import (
    AddSnapshot,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetProperties,
    SetSnapshotRef,
    Update,
    set_ref,
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


def test_commit_to_main_moves_head_number_and_log(metadata: TableMetadata) -> None:
    after = apply(metadata, AddSnapshot(snapshot(104, 4)), move("main", 104))
    assert (after.current_snapshot_id, after.last_sequence_number, after.last_updated_ms) == (104, 4, NOW)
    assert after.snapshot_log[-1] == SnapshotLogEntry(NOW - 10, 104)
    assert metadata.current_snapshot_id == 103


def test_commit_to_another_branch_leaves_main_and_log_alone(metadata: TableMetadata) -> None:
    after = apply(metadata, AddSnapshot(snapshot(104, 4, 102)), move("audit", 104))
    assert (after.current_snapshot_id, after.refs["audit"].snapshot_id) == (103, 104)
    assert after.snapshot_log == metadata.snapshot_log


def test_rollback_is_logged_with_the_time_of_the_rollback(metadata: TableMetadata) -> None:
    after = apply(metadata, move("main", 101))
    assert after.current_snapshot_id == 101
    assert after.snapshot_log[-1] == SnapshotLogEntry(NOW, 101)


def test_setting_a_ref_to_what_it_is_changes_nothing(metadata: TableMetadata) -> None:
    after = apply(metadata, set_ref("audit", metadata.refs["audit"]), move("main", 103))
    assert (after.refs, after.snapshot_log) == (metadata.refs, metadata.snapshot_log)


def test_retention_of_a_ref_is_replaced_as_a_whole(metadata: TableMetadata) -> None:
    after = apply(metadata, set_ref("audit", SnapshotRef(102, BRANCH, max_ref_age_ms=9)))
    assert after.refs["audit"] == SnapshotRef(102, BRANCH, max_ref_age_ms=9)


def test_snapshots_passed_over_in_one_commit_are_not_logged(metadata: TableMetadata) -> None:
    after = apply(
        metadata,
        AddSnapshot(snapshot(104, 4)),
        move("main", 104),
        AddSnapshot(snapshot(105, 5, 104)),
        move("main", 105),
    )
    assert [e.snapshot_id for e in after.snapshot_log] == [101, 102, 103, 105]


def test_snapshot_without_parent_may_come_late_and_the_number_of_the_table_stays(metadata: TableMetadata) -> None:
    assert apply(metadata, AddSnapshot(snapshot(104, 2, None))).last_sequence_number == 3


def test_removing_snapshots_cuts_the_log_before_the_hole(metadata: TableMetadata) -> None:
    base = apply(metadata, RemoveSnapshotRef("audit"))
    after = apply(base, RemoveSnapshots((102,)))
    assert [s.snapshot_id for s in after.snapshots] == [101, 103]
    assert [e.snapshot_id for e in after.snapshot_log] == [103]


def test_removing_unknown_snapshots_and_refs_changes_nothing(metadata: TableMetadata) -> None:
    after = apply(metadata, RemoveSnapshots((5,)), RemoveSnapshotRef("nothing"))
    assert (after.snapshots, after.refs) == (metadata.snapshots, metadata.refs)


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


def test_base_is_remembered_in_the_metadata_log(metadata: TableMetadata) -> None:
    after = apply(metadata, location="v3.json")
    assert after.metadata_log == (MetadataLogEntry(metadata.last_updated_ms, "v3.json"),)


@pytest.mark.parametrize(("limit", "kept"), [("2", 2), ("0", 1), ("many", 4), ("\u00b2", 4), (None, 4)])
def test_metadata_log_is_kept_short(metadata: TableMetadata, limit: str | None, kept: int) -> None:
    old = tuple(MetadataLogEntry(n, f"v{n}") for n in range(3))
    properties = {} if limit is None else {"write.metadata.previous-versions-max": limit}
    base = msgspec.structs.replace(metadata, metadata_log=old, properties=properties)
    log = apply(base, location="v3.json").metadata_log
    assert len(log) == kept
    assert log[-1].metadata_file == "v3.json"


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
