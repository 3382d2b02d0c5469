"""Reads of what appends brought."""

import pytest

from bergline import Table
from bergline.errors import InvalidInputError, NotFoundError
from support.fixtures.rows import ids, order_rows


@pytest.fixture
def snapshots(orders: Table) -> list[int]:
    """Appends of rows 1, 2, 3, a delete of row 2, and an append of row 4."""
    for n in (1, 2, 3):
        orders.append(order_rows(n))
    orders.delete("id = 2")
    orders.append(order_rows(4))
    return [s.snapshot_id for s in orders.metadata.snapshots]


def test_rows_of_appends_are_read_as_they_were_added(orders: Table, snapshots: list[int]) -> None:
    assert ids(orders.scan_appends(snapshots[0]).to_arrow()) == [2, 3, 4]
    assert ids(orders.scan_appends(snapshots[0], snapshots[1]).to_arrow()) == [2]
    assert ids(orders.scan_appends(snapshots[2], snapshots[3]).to_arrow()) == []
    assert ids(orders.scan_appends(snapshots[4]).to_arrow()) == []


def test_filters_prune_the_files_of_appends(orders: Table, snapshots: list[int]) -> None:
    assert len(orders.scan_appends(snapshots[0]).where("id > 2").plan().files) == 2


def test_both_ends_must_be_snapshots_of_one_line(orders: Table, snapshots: list[int]) -> None:
    with pytest.raises(InvalidInputError, match=f"expected a snapshot before {snapshots[1]} to start from"):
        orders.scan_appends(snapshots[2], snapshots[1])
    with pytest.raises(NotFoundError, match="no snapshot with id 7"):
        orders.scan_appends(snapshots[0], 7)


def test_the_start_may_have_expired(orders: Table, snapshots: list[int]) -> None:
    orders.expire(snapshot_ids=snapshots[:1])
    assert ids(orders.scan_appends(snapshots[0]).to_arrow()) == [2, 3, 4]
