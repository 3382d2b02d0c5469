"""Replay: the change of a snapshot on top of another line of history."""

import pytest

from bergline import Table
from bergline.errors import ConflictError
from bergline.table.commits.operation import CommitStamp
from bergline.table.references.merge_conflicts import MergeConflicts
from bergline.table.references.merge_plan import MergeRequest
from bergline.table.references.replay import Replay, ReplayBase
from bergline.table.references.snapshot_change import ChangedFile, load_change
from bergline.table.references.summary import SOURCE
from support.fixtures.rows import ids, order_rows

REQUEST = MergeRequest("dev", "main", "onto")
STAMP = CommitStamp(1, 4_000_000_000_000)


@pytest.fixture
def parted(orders: Table) -> Table:
    """`main` and `dev` have each appended since a common snapshot."""
    orders.append(order_rows(1, 2)).refs.create_branch("dev")
    return orders.append(order_rows(3)).append(order_rows(4), branch="dev", summary={"job": "7"})


def replay_base(table: Table) -> ReplayBase:
    ancestor, head = table.metadata.snapshots[0], table.metadata.current_snapshot
    assert head is not None
    conflicts = MergeConflicts(table.io, table.metadata, head, since=ancestor.snapshot_id, branch="main")
    return ReplayBase(conflicts, ancestor.sequence_number)


def replay(table: Table, snapshot_id: int | None = None) -> Replay:
    source = table.metadata.snapshot(table.refs["dev"].snapshot_id)
    change = load_change(table.io, table.metadata, source)
    return Replay(table.io, change, request=REQUEST, snapshot_id=snapshot_id)


def test_replay_reuses_data_files_and_names_its_source(parted: Table) -> None:
    operation, source = replay(parted), parted.refs["dev"].snapshot_id
    change = operation.attempt_on(parted.metadata, STAMP, replay_base(parted))
    snapshot = change.updates[0].snapshot  # type: ignore[union-attr]
    assert (snapshot.snapshot_id, snapshot.parent_snapshot_id) == (
        operation.snapshot_id,
        parted.refs["main"].snapshot_id,
    )
    assert (snapshot.summary[SOURCE], snapshot.summary["job"]) == (str(source), "7")
    parted.refs.merge("dev", into="main")
    files = {ref: {p.file.file_path for p in parted.scan("id = 4", ref=ref).plan().files} for ref in ("main", "dev")}
    assert files["main"] == files["dev"]
    assert ids(parted.scan().to_arrow()) == [1, 2, 3, 4]


def test_snapshot_id_is_given_or_new(parted: Table) -> None:
    assert replay(parted, 7).snapshot_id == 7
    assert replay(parted).snapshot_id != replay(parted).snapshot_id


def test_conflict_names_the_snapshot_that_cannot_be_replayed(parted: Table) -> None:
    parted.delete("id = 1").delete("id = 2", branch="dev")
    source = parted.refs["dev"].snapshot_id
    with pytest.raises(ConflictError, match=f"cannot merge `dev` into `main`: snapshot {source}.* cannot be replayed"):
        replay(parted).attempt_on(parted.metadata, STAMP, replay_base(parted))


def test_given_sequence_numbers_follow_the_line(parted: Table) -> None:
    base = replay_base(parted)
    file = parted.scan().plan().files[0].file
    assert base.number_of(ChangedFile(file, 9)) is None
    assert base.number_of(ChangedFile(file, 1, pinned=True)) == 1
    assert base.number_of(ChangedFile(file, 9, pinned=True)) == base.ancestor_number
    change = load_change(parted.io, parted.metadata, parted.metadata.snapshot(parted.refs["dev"].snapshot_id))
    after = base.after(change, 20)
    assert after.replayed == {change.added_data[0].file_path: 20}
    assert after.number_of(ChangedFile(file, 9, pinned=True)) == 20
