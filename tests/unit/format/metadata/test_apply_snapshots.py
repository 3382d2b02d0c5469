"""Updates of snapshots and refs, and the logs."""

import random
import re

import msgspec
import pytest

from bergline.errors import BerglineError, InvalidInputError
from bergline.format.metadata.apply import apply_updates
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import (
    EncryptedKey,
    MetadataLogEntry,
    PartitionStatisticsFile,
    SnapshotLogEntry,
    StatisticsFile,
    TableMetadata,
)
from bergline.format.metadata.updates import (
    AddEncryptionKey,
    AddSnapshot,
    RemoveEncryptionKey,
    RemovePartitionStatistics,
    RemoveProperties,
    RemoveSnapshotRef,
    RemoveSnapshots,
    RemoveStatistics,
    SetPartitionStatistics,
    SetProperties,
    SetSnapshotRef,
    SetStatistics,
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


def test_one_snapshot_does_not_take_all_sequence_numbers(metadata: TableMetadata) -> None:
    last = metadata.last_sequence_number
    assert apply(metadata, AddSnapshot(snapshot(104, last + 2**32))).last_sequence_number == last + 2**32
    with pytest.raises(InvalidInputError, match="others would have none left"):
        apply(metadata, AddSnapshot(snapshot(104, last + 2**32 + 1)))


def test_removing_snapshots_cuts_the_log_before_the_hole(metadata: TableMetadata) -> None:
    base = apply(metadata, RemoveSnapshotRef("audit"))
    after = apply(base, RemoveSnapshots((102,)))
    assert [s.snapshot_id for s in after.snapshots] == [101, 103]
    assert [e.snapshot_id for e in after.snapshot_log] == [103]


def test_removing_unknown_snapshots_and_refs_changes_nothing(metadata: TableMetadata) -> None:
    after = apply(metadata, RemoveSnapshots((5,)), RemoveSnapshotRef("nothing"))
    assert (after.snapshots, after.refs) == (metadata.snapshots, metadata.refs)


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


SAME = (
    "snapshots",
    "refs",
    "statistics",
    "partition_statistics",
    "properties",
    "encryption_keys",
    "current_snapshot_id",
    "last_sequence_number",
)


def some_update(chance: random.Random) -> Update:
    one, text = chance.choice((101, 102, 103, 201, 202, 203)), f"x{chance.randrange(3)}"
    return chance.choice(
        (
            AddSnapshot(snapshot(one, chance.randrange(4, 30), chance.choice((None, 103)))),
            AddSnapshot(snapshot(one, chance.randrange(20, 30))),
            RemoveSnapshots((one, 999)),
            move("main", one),
            move(text, one, chance.choice((BRANCH, BRANCH, TAG))),
            RemoveSnapshotRef(chance.choice(("main", text))),
            SetStatistics(StatisticsFile(one, str(chance.random()), 1, 1, ())),
            SetPartitionStatistics(PartitionStatisticsFile(one, str(chance.random()), 1)),
            RemoveStatistics(one),
            RemovePartitionStatistics(one),
            SetProperties({text: str(one)}),
            RemoveProperties((text, "none")),
            AddEncryptionKey(EncryptedKey(text, str(one).encode())),
            RemoveEncryptionKey(text),
        )
    )


@pytest.mark.parametrize("seed", range(100))
def test_updates_at_once_make_what_they_make_one_by_one(metadata: TableMetadata, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311  (no secret)
    updates: list[Update] = []
    after = metadata
    for _ in range(30):
        update = some_update(chance)
        try:
            after = apply(after, update)
        except BerglineError as error:
            with pytest.raises(type(error), match=f"^{re.escape(str(error))}$"):
                apply(metadata, *updates, update)
        else:
            updates.append(update)
    together = apply(metadata, *updates)
    assert [getattr(together, field) for field in SAME] == [getattr(after, field) for field in SAME]
    assert together.snapshots_by_id == {s.snapshot_id: s for s in together.snapshots}
