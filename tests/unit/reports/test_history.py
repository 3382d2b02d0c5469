"""The history of a table: order, lanes, refs and marks."""

import time
from collections.abc import Mapping

import msgspec

from bergline import Lake, Table
from bergline.format.metadata.refs import SnapshotRef, SnapshotRefType
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.reports.history import HistoryRef, TableHistory, table_history
from support.fixtures.rows import ORDERS, order_rows

BRANCH, TAG = SnapshotRefType.BRANCH, SnapshotRefType.TAG


def with_snapshots(
    base: TableMetadata, parents: Mapping[int, int | None], heads: Mapping[str, int], **times: int
) -> TableMetadata:
    """A table of snapshots by parent, in the order of their times unless told otherwise, and of branches."""
    snapshots = tuple(
        Snapshot(
            snapshot_id=i,
            parent_snapshot_id=parent,
            sequence_number=number,
            timestamp_ms=times.get(f"at_{i}", number * 1000),
            summary={"operation": "append"},
        )
        for number, (i, parent) in enumerate(parents.items(), 1)
    )
    refs = {name: SnapshotRef(i, TAG if name.startswith("v") else BRANCH) for name, i in heads.items()}
    return msgspec.structs.replace(base, snapshots=snapshots, refs=refs, current_snapshot_id=heads.get("main"))


def lanes(history: TableHistory) -> dict[int, int]:
    return {e.snapshot_id: e.lane for e in history.entries}


def test_a_table_without_snapshots_has_no_history(orders: Table) -> None:
    assert table_history(orders.metadata) == TableHistory((), (), 0)


def test_entries_tell_what_commits_did_and_where_refs_are(lake: Lake) -> None:
    table = lake.create_table("db.log", ORDERS)
    table.append(order_rows(1, 2), summary={"engine-name": "spark", "engine-version": "4.1", "app-name": "nightly"})
    table.refs.create_branch("audit")
    table.append(order_rows(3), branch="audit", summary={"author": "ann"})
    table.refs.create_tag("v1", at="audit")
    table.delete("id = 1")
    deleted, audited, first = table_history(table.metadata).entries
    assert (first.operation, first.added_rows, first.removed_rows, first.added_files) == ("append", 2, 0, 1)
    assert (first.engine, first.app, first.author, first.refs) == ("spark 4.1", "nightly", None, ())
    assert (audited.author, audited.lane, audited.parent_id) == ("ann", 1, first.snapshot_id)
    assert audited.refs == (HistoryRef("audit", True), HistoryRef("v1", False))
    assert (deleted.lane, deleted.removed_rows, deleted.refs) == (0, 2, (HistoryRef("main", True),))
    assert deleted.added_rows == 1  # the file was written again without the row
    assert first.forks == (1,)


def test_positions_of_a_replaced_deletion_vector_are_not_deleted_again(lake: Lake) -> None:
    properties = {"format-version": "3", "write.delete.mode": "merge-on-read"}
    table = lake.create_table("db.vectors", ORDERS, properties=properties)
    table.append(order_rows(1, 2, 3, 4)).delete("id = 1").delete("id > 2")
    assert [e.removed_rows for e in table_history(table.metadata).entries] == [2, 1, 0]


def test_a_staged_snapshot_is_marked_until_it_is_published(lake: Lake) -> None:
    table = lake.create_table("db.log", ORDERS)
    table.append(order_rows(1))
    table.append(order_rows(2), wap_id="job-7")
    staged = table_history(table.metadata).entries[0]
    assert (staged.wap_id, staged.is_staged, staged.on_ref, staged.lane) == ("job-7", True, False, 1)
    table.refs.publish("job-7")
    published = table_history(table.metadata).entries[0]
    assert (published.is_staged, published.on_ref, published.lane) == (False, True, 0)


def test_main_stays_on_the_first_lane_though_a_branch_is_newer(orders: Table) -> None:
    metadata = with_snapshots(orders.metadata, {1: None, 2: 1, 3: 1, 4: 3, 5: 2}, {"main": 5, "dev": 4})
    history = table_history(metadata)
    assert lanes(history) == {5: 0, 4: 1, 3: 1, 2: 0, 1: 0}
    assert [(e.child_row, e.child_lane, e.parent_row, e.parent_lane) for e in history.edges] == [
        (0, 0, 3, 0),
        (1, 1, 2, 1),
        (2, 1, 4, 0),
        (3, 0, 4, 0),
    ]
    assert list(history.passing()) == [(), (0,), (0,), (1,), (1,)]


def test_lines_one_after_the_other_share_a_lane_and_lines_at_once_do_not(orders: Table) -> None:
    after = with_snapshots(orders.metadata, {1: None, 2: 1, 3: 1, 4: 3, 5: 3}, {"main": 5, "old": 2, "new": 4})
    assert lanes(table_history(after)) == {5: 0, 4: 1, 3: 0, 2: 1, 1: 0}
    at_once = with_snapshots(orders.metadata, {1: None, 2: 1, 3: 1, 4: 1}, {"main": 4, "a": 2, "b": 3})
    assert lanes(table_history(at_once)) == {4: 0, 3: 1, 2: 2, 1: 0}


def test_a_child_comes_before_its_parent_whatever_the_clocks_say(orders: Table) -> None:
    metadata = with_snapshots(orders.metadata, {1: None, 2: 1, 3: 2}, {"main": 3}, at_1=9000, at_2=8000, at_3=7000)
    assert [e.snapshot_id for e in table_history(metadata).entries] == [3, 2, 1]


def test_an_expired_parent_is_marked(orders: Table) -> None:
    entry = table_history(with_snapshots(orders.metadata, {2: 1}, {"main": 2})).entries[0]
    assert (entry.parent_expired, entry.parent_id) == (True, 1)


def test_a_circle_of_parents_is_still_shown(orders: Table) -> None:
    history = table_history(with_snapshots(orders.metadata, {1: 2, 2: 1, 3: 2}, {"main": 3}))
    assert sorted(e.snapshot_id for e in history.entries) == [1, 2, 3]


def test_no_two_lines_are_on_one_lane_beside_each_other(orders: Table) -> None:
    parents: dict[int, int | None] = {1: None}
    for i in range(2, 2001):
        parents[i] = max(1, i - 1 - i * 7919 % 31 * (i % 3 == 0))
    metadata = with_snapshots(orders.metadata, parents, {"main": 2000, "dev": 1990, "v1": 1500})
    started = time.perf_counter()
    history = table_history(metadata)
    assert time.perf_counter() - started < 1
    assert len(history.entries) == 2000
    assert history.lanes > 5
    taken: dict[tuple[int, int], int] = {}
    for edge in history.edges:
        for row in range(edge.child_row + 1, edge.parent_row):
            assert taken.setdefault((row, edge.child_lane), edge.child_row) == edge.child_row
            assert history.entries[row].lane != edge.child_lane
