"""`bergline log`."""

import json
from pathlib import Path

from bergline import Lake, Table
from support.fixtures.rows import ORDERS, order_rows
from support.processes.command_line import Command


def test_graph_shows_branches_tags_and_merges(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_tag("v1")
    orders.append(order_rows(2, 3), branch="audit")
    orders.append(order_rows(4))
    orders.refs.merge("audit", into="main")
    first, audited, fourth, merged = (str(s.snapshot_id) for s in orders.metadata.snapshots)
    done = bl("log", "db.orders", "--graph")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.partition(",")[0].rstrip() for line in done.stdout.splitlines()]
    assert lines == [
        f"* {merged} (main) append +2 rows",
        f"* {fourth} append +1 row",
        f"| * {audited} (audit) append +2 rows",
        "|/",
        f"* {first} (tag: v1) append +1 row",
    ]
    assert f"[replays {audited}]" in done.stdout.splitlines()[0]


def test_limit_and_ref_bound_what_is_shown(bl: Command, orders: Table) -> None:
    for number in range(4):
        orders.append(order_rows(number))
    orders.refs.create_tag("v1", at=orders.metadata.snapshots[1].snapshot_id)
    for graph in ([], ["--graph"]):
        done = bl("log", "db.orders", "-n", "3", *graph)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 3)
        assert done.stderr == "1 older snapshot not shown: --limit takes more\n"
    found = json.loads(bl("log", "db.orders", "--ref", "v1", "--json").stdout)
    assert [entry["snapshot_id"] for entry in found] == [
        str(s.snapshot_id) for s in reversed(orders.metadata.snapshots[:2])
    ]
    assert found[0]["refs"] == [{"name": "v1", "is_branch": False}]
    assert (found[0]["added_rows"], found[0]["parent_id"], found[1]["parent_id"]) == (1, found[1]["snapshot_id"], None)
    done = bl("log", "db.orders", "--ref", "v3")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "error: no branch or tag `v3`\n")


def test_staged_and_lost_snapshots_are_marked(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.append(order_rows(2), wap_id="[nightly]")
    orders.append(order_rows(3)).refs.rollback(to=orders.metadata.snapshots[0].snapshot_id)
    done = bl("log", "db.orders")
    assert (done.returncode, done.stderr) == (0, "")
    assert "[staged as [nightly]]" in done.stdout
    assert "[on no ref]" in done.stdout


def test_log_of_all_tables_is_in_the_order_of_time(bl: Command, lake: Lake, orders: Table) -> None:
    items = lake.create_table("db.items", ORDERS)
    orders.append(order_rows(1))
    items.append(order_rows(2))
    orders.append(order_rows(3))
    found = json.loads(bl("log", "--json").stdout)
    times = [entry["timestamp_ms"] for entry in found]
    assert times == sorted(times, reverse=True)
    assert sorted(entry["table"] for entry in found) == ["db.items", "db.orders", "db.orders"]
    assert [line.split()[0] for line in bl("log", "--graph").stdout.splitlines()] == [
        "db.items",
        "*",
        "db.orders",
        "*",
        "*",
    ]


def test_broken_table_is_an_error_beside_the_others(bl: Command, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1))
    broken = lake.create_table("db.broken", ORDERS)
    Path(broken.metadata_location.removeprefix("file://")).write_text("{")
    done = bl("log")
    assert (done.returncode, done.stdout.startswith("db.orders ")) == (1, True)
    assert done.stderr.startswith("error: table `db.broken`: ") or "`db.broken`" in done.stderr
