"""`bergline tag`."""

import json

from bergline import Table
from support.fixtures.rows import order_rows
from support.processes.command_line import Command


def test_tags_are_created_renamed_moved_and_dropped(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2))
    first, second = (str(s.snapshot_id) for s in orders.metadata.snapshots)
    done = bl("tag", "create", "db.orders", "v1", "--at", first, "--max-ref-age", "90d")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tag `v1` is at snapshot {first}\n", "")
    assert bl("tag", "create", "db.orders", "v1").returncode == 1
    assert bl("tag", "rename", "db.orders", "v1", "v2").returncode == 0
    done = bl("tag", "replace", "db.orders", "v2")
    assert (done.returncode, orders.refresh().refs["v2"].snapshot_id) == (2, int(first))
    done = bl("tag", "replace", "db.orders", "v2", "--at", "main", "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout)[0]["snapshot_id"]) == (0, second)
    (tag,) = json.loads(bl("tag", "list", "db.orders", "--json").stdout)
    assert (tag["name"], tag["max_ref_age_ms"]) == ("v2", 90 * 86_400_000)
    (tag,) = json.loads(bl("tag", "retention", "db.orders", "v2", "--clear", "max-ref-age", "--json").stdout)
    assert tag["max_ref_age_ms"] is None
    assert bl("tag", "drop", "db.orders", "v2").returncode == 2
    done = bl("tag", "drop", "db.orders", "v2", "--yes")
    assert (done.returncode, done.stdout) == (0, "dropped tag `v2`\n")
    assert list(orders.refresh().refs) == ["main"]


def test_a_branch_is_no_tag(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("b")
    done = bl("tag", "drop", "db.orders", "b", "--yes")
    assert (done.returncode, done.stdout, "b" in orders.refresh().refs) == (2, "", True)
