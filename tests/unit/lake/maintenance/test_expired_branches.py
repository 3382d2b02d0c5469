"""Branches of the lake whose time is over."""

import time

import pytest

from bergline import Lake, Table, maintain
from bergline.governance.governance import governance_of
from bergline.governance.lake_branches.model import NewLakeBranch
from support.fixtures.rows import ORDERS, order_rows


@pytest.fixture
def expired(lake: Lake, orders: Table) -> Lake:
    """`old` has expired, with `db.orders` on it; `new` has not."""
    orders.append(order_rows(1))
    lake.create_table("db.other", ORDERS)
    kept = governance_of(lake.catalog).lake_branches
    assert kept is not None
    kept.create(NewLakeBranch("old", (), time.time_ns() // 1_000_000 + 1000))
    lake.branches.create("new", expires="7d")
    for name in ("old", "new"):
        lake.at(name).load_table("db.orders").append(order_rows(2))
    lake.at("old").create_table("db.more", ORDERS).append(order_rows(3))
    time.sleep(1.1)
    return lake


def steps(lake: Lake, **options: object) -> dict[str, list[tuple[str, str, str | None]]]:
    report = maintain(lake, steps=["expiry"], **options)  # type: ignore[arg-type]
    assert report.ok
    return {
        table.table: [(step.status.value, step.reason, step.branch) for step in table.steps if step.branch]
        for table in report.tables
    }


def test_expired_branch_is_dropped_in_all_its_tables(expired: Lake) -> None:
    reason = "the branch of the lake has expired"
    planned = steps(expired, plan=True)
    assert planned["db.orders"] == planned["db.more"] == [("planned", reason, "old")]
    assert [branch.name for branch in expired.branches.list()] == ["new", "old"]
    done = steps(expired)
    assert done == {"db.orders": [("done", reason, "old")], "db.more": [("done", reason, "old")], "db.other": []}
    assert [branch.name for branch in expired.branches.list()] == ["new"]
    assert set(expired.load_table("db.orders").refs) == {"main", "new"}
    assert not expired.table_exists("db.more")
    assert steps(expired) == {"db.orders": [], "db.other": []}


def test_run_of_some_tables_leaves_it_alone(expired: Lake) -> None:
    for some in ({"namespace": "db"}, {"tables": ["db.orders"]}, {"pattern": "db.*"}):
        assert steps(expired, **some)["db.orders"] == []
    assert [branch.name for branch in expired.branches.list()] == ["new", "old"]
