"""What a snapshot changed, and what two snapshots differ in."""

import pytest

from bergline import Lake, Table
from bergline.format.metadata.snapshot import SnapshotOperation
from bergline.table.references.snapshot_change import (
    differing_entries,
    load_change,
    load_difference,
    replaces_partitions,
)
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def parts(lake: Lake) -> Table:
    """An append to `eu` and `us`, then `eu` is replaced."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    table.append(order_rows(1)).append(order_rows(2, region="us"))
    return table.overwrite_partitions(order_rows(3))


def test_change_of_a_snapshot_is_what_it_wrote_itself(parts: Table) -> None:
    first, _, last = parts.metadata.snapshots
    appended, replaced = (load_change(parts.io, parts.metadata, s) for s in (first, last))
    assert (appended.operation, len(appended.added), appended.removed) == (SnapshotOperation.APPEND, 1, ())
    assert (len(replaced.added_data), replaced.removed_data) == (1, appended.added_data)
    assert (appended.replaced, len(replaced.replaced)) == (frozenset(), 1)
    assert [replaces_partitions(s) for s in (first, last)] == [False, True]


def test_difference_leaves_out_what_came_and_went_in_between(parts: Table) -> None:
    first, second, last = parts.metadata.snapshots
    added = load_difference(parts.io, parts.metadata, first, second)
    assert (added.operation, len(added.added), added.removed) == (SnapshotOperation.APPEND, 1, ())
    every = load_difference(parts.io, parts.metadata, None, last)
    assert (every.operation, len(every.added), every.removed) == (SnapshotOperation.APPEND, 2, ())
    replaced = load_difference(parts.io, parts.metadata, second, last)
    assert (replaced.operation, len(replaced.added), len(replaced.removed)) == (SnapshotOperation.OVERWRITE, 1, 1)


def test_manifests_that_both_have_are_left_out(parts: Table) -> None:
    first, second, _ = parts.metadata.snapshots
    old, new = differing_entries(parts.io, parts.metadata, first, second)
    assert (len(old), len(new)) == (0, 1)


def test_rewrite_of_manifests_is_no_change(parts: Table) -> None:
    rewritten = parts.rewrite_manifests().current_snapshot
    assert rewritten is not None
    assert load_change(parts.io, parts.metadata, rewritten).is_nothing
