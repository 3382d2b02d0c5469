"""Summary entries of callers: any but those that merges, picks and publishing go by."""

from collections.abc import Callable

import pytest

from bergline import Table
from bergline.errors import InvalidInputError
from support.fixtures.rows import ids, order_rows

OWN = [
    "source-snapshot-id",
    "origin-snapshot-id",
    "squashed-snapshot-ids",
    "squashed-since-snapshot-id",
    "replace-partitions",
    "replayed-replace-partitions",
    "wap.id",
    "published-wap-id",
]


def check_unchanged(orders: Table, key: str, write: Callable[[dict[str, str]], object]) -> None:
    """The entry is refused, and nothing is written."""
    orders.append(order_rows(1, 2))
    before = orders.metadata_location, set(orders.io.list(orders.location))
    with pytest.raises(InvalidInputError, match=f"found `{key}`, which bergline writes itself"):
        write({"run": "7", key: str(orders.refs["main"].snapshot_id)})
    assert (orders.refresh().metadata_location, set(orders.io.list(orders.location))) == before


@pytest.mark.parametrize("key", OWN)
def test_entries_that_merges_go_by_are_refused(orders: Table, key: str) -> None:
    check_unchanged(orders, key, lambda summary: orders.append(order_rows(3), summary=summary))


@pytest.mark.parametrize(
    "write",
    [
        lambda table, summary: table.overwrite(order_rows(3), summary=summary),
        lambda table, summary: table.overwrite(order_rows(3), "id = 1", summary=summary),
        lambda table, summary: table.overwrite_partitions(order_rows(3), summary=summary),
        lambda table, summary: table.delete("id = 1", summary=summary),
        lambda table, summary: table.compact(summary=summary),
    ],
    ids=["overwrite", "overwrite by filter", "overwrite partitions", "delete", "compact"],
)
def test_every_write_refuses_them(orders: Table, write: Callable[[Table, dict[str, str]], object]) -> None:
    check_unchanged(orders, "source-snapshot-id", lambda summary: write(orders, summary))


def test_other_entries_are_written(orders: Table) -> None:
    orders.append(order_rows(1), summary={"run": "7", "Source-Snapshot-Id": "8"})
    summary = orders.metadata.snapshots[-1].summary
    assert (summary["run"], summary["Source-Snapshot-Id"]) == ("7", "8")
    assert ids(orders.scan().to_arrow()) == [1]
