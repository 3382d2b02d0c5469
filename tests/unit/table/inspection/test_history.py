"""The metadata tables refs, snapshots, history and metadata_log_entries."""

import pytest

from bergline import Table
from support.fixtures.rows import order_rows

pytestmark = pytest.mark.long


def test_refs_show_retention(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev", min_snapshots_to_keep=3, max_snapshot_age_ms=4, max_ref_age_ms=5)
    head = orders.metadata.current_snapshot_id
    assert [tuple(row.values()) for row in orders.inspect("refs").to_pylist()] == [
        ("main", "BRANCH", head, None, None, None),
        ("dev", "BRANCH", head, 5, 3, 4),
    ]


def test_snapshots_show_parent_operation_and_summary(orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first, second = orders.inspect("snapshots").to_pylist()
    assert (first["parent_id"], first["operation"]) == (None, "append")
    assert (second["parent_id"], second["operation"]) == (first["snapshot_id"], "overwrite")
    assert dict(second["summary"])["total-records"] == "1"
    assert "operation" not in dict(second["summary"])


def test_history_follows_main_only(orders: Table) -> None:
    orders.append(order_rows(1)).append(order_rows(2), branch="dev").append(order_rows(3))
    rows = orders.inspect("history").to_pylist()
    assert [row["is_current_ancestor"] for row in rows] == [True, True]
    assert rows[1]["parent_id"] == rows[0]["snapshot_id"]


def test_the_metadata_log_ends_in_the_current_file(orders: Table) -> None:
    created = orders.metadata_location
    orders.append(order_rows(1)).set_properties({"owner": "us"})
    rows = orders.inspect("metadata_log_entries").to_pylist()
    assert [row["file"] for row in rows][::2] == [created, orders.metadata_location]
    assert [row["latest_sequence_number"] for row in rows] == [None, 1, 1]
    assert rows[-1]["latest_snapshot_id"] == orders.metadata.current_snapshot_id
