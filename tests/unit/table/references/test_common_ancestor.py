"""Where two lines of history part."""

import pytest

from bergline import Table
from bergline.format.metadata.snapshot import Snapshot
from bergline.table.references.common_ancestor import (
    Divergence,
    find_divergence,
    first_ids,
    known_by,
    parts_of,
    repetition,
)
from bergline.table.references.summary import ORIGIN, SOURCE, SQUASHED
from support.fixtures.rows import order_rows


def snapshot(snapshot_id: int, **summary: str) -> Snapshot:
    return Snapshot(snapshot_id=snapshot_id, timestamp_ms=0, sequence_number=snapshot_id, summary=summary)


@pytest.fixture
def parted(orders: Table) -> Table:
    """One common snapshot, then one of `main` and two of `dev`."""
    orders.append(order_rows(1)).refs.create_branch("dev")
    return orders.append(order_rows(2)).append(order_rows(3), branch="dev").append(order_rows(4), branch="dev")


def divergence(table: Table) -> Divergence:
    refs = table.metadata.refs
    found = find_divergence(table.metadata, refs["dev"].snapshot_id, refs["main"].snapshot_id)
    assert found is not None
    return found


def test_lines_part_at_their_last_common_snapshot(parted: Table) -> None:
    first, second, third, fourth = parted.metadata.snapshots
    found = divergence(parted)
    assert found == Divergence(first, (third, fourth), (second,))
    assert (found.ancestor_id, found.ancestor_number) == (first.snapshot_id, first.sequence_number)
    assert (found.present(), found.leading_present(), found.partly_present()) == (frozenset(), 0, None)


def test_merged_snapshots_are_known_by_their_source(parted: Table) -> None:
    before = divergence(parted).picked
    parted.refs.merge("dev", into="main")
    parted.append(order_rows(5), branch="dev")
    found = divergence(parted)
    assert found.present() == {s.snapshot_id for s in before}
    assert found.leading_present() == 2


def test_lines_without_common_snapshot_began_with_nothing(orders: Table) -> None:
    orders.refs.create_branch("dev")
    orders.append(order_rows(1))
    found = divergence(orders)
    assert (found.ancestor, found.ancestor_id, found.ancestor_number) == (None, None, 0)


def test_replays_name_their_source_and_origin() -> None:
    first = snapshot(1)
    second = snapshot(2, **repetition(first))
    third = snapshot(3, **repetition(second))
    assert second.summary == {SOURCE: "1"}
    assert third.summary == {SOURCE: "2", ORIGIN: "1"}
    assert known_by((first,), (third,)) == {1}
    assert known_by((third,), (first,)) == {3}
    assert known_by((snapshot(9),), (third,)) == frozenset()


def test_squashed_snapshot_is_known_only_with_all_its_parts() -> None:
    squashed = snapshot(9, **{SOURCE: "2", SQUASHED: "1,2"})
    assert parts_of(squashed) == first_ids((squashed,)) == {1, 2}
    assert known_by((squashed,), (snapshot(1),)) == frozenset()
    assert known_by((squashed,), (snapshot(1), snapshot(2))) == {9}
