"""Reports of what happened to a ref."""

import pytest

from bergline import Table
from bergline.format.metadata.refs import SnapshotRefType
from bergline.lake.ref_report import RefReport, TableRefChange, WatchedRef
from bergline.table.commits.operation import MetadataOperation
from bergline.table.references.ref_changes import Retention, create_ref, drop_ref, replace_ref
from support.fixtures.rows import order_rows


def test_outcome_is_what_the_last_attempt_did_to_the_ref(orders: Table) -> None:
    first = orders.append(order_rows(1)).metadata.refs["main"].snapshot_id
    second = orders.append(order_rows(2)).metadata.refs["main"].snapshot_id
    tag = SnapshotRefType.TAG
    steps = {
        "created": lambda base: create_ref(base, "v1", tag, first, Retention()),
        "unchanged": lambda base: replace_ref(base, "v1", tag, first, Retention()),
        "replaced": lambda base: replace_ref(base, "v1", tag, second, Retention()),
        "dropped": lambda base: drop_ref(base, "v1", tag),
    }
    found = []
    for change in steps.values():
        watched = WatchedRef(MetadataOperation(change), "v1")
        orders.commit(watched)
        found.append(watched.outcome("db.orders"))
    assert [one.what for one in found] == list(steps)
    assert [(one.previous, one.head) for one in found] == [
        (None, first),
        (first, first),
        (first, second),
        (second, None),
    ]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (TableRefChange("db.t", "created", None, 2), "db.t: created 2"),
        (TableRefChange("db.t", "unchanged", 2, 2), "db.t: unchanged 2"),
        (TableRefChange("db.t", "merged", 2, 9, {7: 9}), "db.t: merged 2 → 9, 1 snapshot replayed"),
    ],
)
def test_report_has_a_line_for_each_table(change: TableRefChange, text: str) -> None:
    assert str(RefReport("created tag `v1`", "v1", (change,))) == f"created tag `v1`, 1 table:\n  {text}"
