"""`bergline refs`."""

import json

from bergline import Lake, Table
from support.fixtures.rows import order_rows
from support.processes.command_line import Command


def test_refs_are_listed_with_ages_and_retention(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch(
        "staging", min_snapshots_to_keep=3, max_snapshot_age_ms=7 * 86_400_000, max_ref_age_ms=3_600_000
    )
    orders.refs.create_tag("v[1]")
    head = str(orders.metadata.current_snapshot_id)
    done = bl("refs", "db.orders")
    assert (done.returncode, done.stderr) == (0, "")
    header, main, staging, tag = done.stdout.splitlines()
    assert header.split() == ["name", "type", "snapshot_id", "age", "retention", "rules"]
    assert main.split()[:3] == ["main", "branch", head]
    assert staging.rstrip().endswith("at least 3 snapshots, snapshots for 7 days, the ref for 1 hour")
    assert tag.split()[:3] == ["v[1]", "tag", head]


def test_json_has_exact_values(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1))
    (main,) = json.loads(bl("refs", "db.orders", "--json").stdout)
    snapshot = orders.metadata.snapshots[0]
    assert main == {
        "name": "main",
        "type": "branch",
        "snapshot_id": str(snapshot.snapshot_id),
        "timestamp_ms": snapshot.timestamp_ms,
        "min_snapshots_to_keep": None,
        "max_snapshot_age_ms": None,
        "max_ref_age_ms": None,
        "rules": [],
    }


def test_rules_of_all_scopes_are_shown(bl: Command, lake: Lake, orders: Table) -> None:
    orders.append(order_rows(1)).refs.create_branch("dev")
    orders.refs.protect("main", only_publish=True)
    lake.rules.protect("main", namespace="db", no_rollback=True)
    _, main, dev = bl("refs", "db.orders").stdout.splitlines()
    assert main.rstrip().endswith("`main` (only-publish), `main` of namespace `db` (no-rollback)")
    assert dev.split()[:2] == ["dev", "branch"]
    assert "rule" not in dev
    shown = json.loads(bl("refs", "db.orders", "--json").stdout)[0]["rules"]
    assert shown[1] == {"pattern": "main", "of": "namespace", "namespace": "db", "rule": "no-rollback"}
    overview = bl("table", "show", "db.orders").stdout
    assert "rules of main   `main` (only-publish), `main` of namespace `db` (no-rollback)" in overview


def test_refs_of_an_empty_table_are_none(bl: Command, orders: Table) -> None:
    assert (bl("refs", "db.orders", "--json").stdout, len(bl("refs", "db.orders").stdout.splitlines())) == ("[]\n", 1)
