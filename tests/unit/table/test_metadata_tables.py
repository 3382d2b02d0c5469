"""Metadata tables: the official columns, and rows that agree with the metadata."""

import pytest
from rows import order_rows

from bergline import Table
from bergline.errors import NotFoundError


def test_refs_have_the_official_columns(orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("dev", min_snapshots_to_keep=3, max_snapshot_age_ms=4, max_ref_age_ms=5)
    table = orders.inspect("refs")
    assert table.column_names == [
        "name",
        "type",
        "snapshot_id",
        "max_reference_age_in_ms",
        "min_snapshots_to_keep",
        "max_snapshot_age_in_ms",
    ]
    head = orders.metadata.current_snapshot_id
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        ("main", "BRANCH", head, None, None, None),
        ("dev", "BRANCH", head, 5, 3, 4),
    ]


def test_main_is_absent_while_the_table_is_empty(orders: Table) -> None:
    assert orders.inspect("refs").num_rows == 0


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


def test_unknown_metadata_table_lists_near_names(orders: Table) -> None:
    with pytest.raises(NotFoundError, match="no metadata table `snapshot`") as caught:
        orders.inspect("snapshot")
    assert "snapshots" in caught.value.near
