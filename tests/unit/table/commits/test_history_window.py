"""What others committed to a branch since an operation looked at it."""

import datetime as dt

import polars as pl
import pytest

from bergline import Lake, Table
from bergline.errors import ConflictError
from bergline.expressions.bound_filter import bind_filter
from bergline.expressions.parse import parse_predicate
from bergline.format.manifest.manifest import EntryStatus, ManifestContent
from bergline.table.commits.history_window import EVERYTHING, HistoryWindow, Scope
from support.fixtures.rows import ORDERS, order_rows

ADDED = pl.col("status") == int(EntryStatus.ADDED)


def window(table: Table, since: int | None, earlier: dict[int, int | None] | None = None) -> HistoryWindow:
    head = table.metadata.current_snapshot
    return HistoryWindow(table.io, table.metadata, head, since=since, branch="main", earlier=earlier or {})


@pytest.fixture
def parts(lake: Lake) -> Table:
    """Three appends, to `eu`, `us` and `eu`."""
    table = lake.create_table("db.parts", ORDERS, partition_by=["region"])
    return table.append(order_rows(1)).append(order_rows(2, region="us")).append(order_rows(3))


def test_window_ends_before_the_start(parts: Table) -> None:
    first, second, third = parts.metadata.snapshots
    assert window(parts, third.snapshot_id).snapshots == ()
    assert window(parts, first.snapshot_id).snapshots == (third, second)
    assert window(parts, None).snapshots == (third, second, first)
    assert window(parts, first.snapshot_id).starting_number == first.sequence_number


def test_own_snapshots_of_a_transaction_are_not_others(parts: Table) -> None:
    first, second, third = parts.metadata.snapshots
    earlier = {second.snapshot_id: first.snapshot_id, third.snapshot_id: second.snapshot_id}
    assert window(parts, third.snapshot_id, earlier).snapshots == ()


def test_files_are_those_that_may_concern_the_scope(parts: Table) -> None:
    found = window(parts, None)
    us = Scope(bind_filter(parse_predicate("region = 'us'"), parts.schema))
    none = Scope(partitions=frozenset())
    counts = [
        len(list(found.files(ManifestContent.DATA, {"append"}, scope, ADDED))) for scope in (EVERYTHING, us, none)
    ]
    assert counts == [3, 1, 0]
    assert list(found.files(ManifestContent.DATA, {"delete"}, EVERYTHING, ADDED)) == []
    assert list(found.files(ManifestContent.DELETES, {"append"}, EVERYTHING, ADDED)) == []


def test_start_that_is_elsewhere_or_expired_is_a_conflict(parts: Table) -> None:
    first, *_ = parts.metadata.snapshots
    with pytest.raises(ConflictError, match="snapshot 7 is not in its history"):
        window(parts, 7)
    parts.expire(older_than=dt.datetime(2200, 1, 1, tzinfo=dt.UTC))
    with pytest.raises(ConflictError, match="has expired"):
        window(parts, first.snapshot_id)
