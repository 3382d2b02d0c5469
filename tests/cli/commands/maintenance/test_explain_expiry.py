"""`bergline explain-expiry`."""

import datetime as dt
import json
from pathlib import Path

from bergline import Table
from support.fixtures.rows import order_rows
from support.processes.command_line import Command, run_here


def test_expiry_is_explained(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    uri = f"sqlite:///{tmp_path}/catalog.db"
    moment = ("--older-than", "2099-01-01 01:00+01:00")
    done = run_here("explain-expiry", "db.orders", *moment, "--catalog", uri, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    plan = orders.plan_expiry(older_than=dt.datetime(2099, 1, 1, tzinfo=dt.UTC))
    assert done.stdout == f"{plan}\n"
    done = run_here(
        "explain-expiry", "db.orders", *moment, "--retain-last", "2", "--json", "--catalog", uri, cwd=tmp_path
    )
    rows = json.loads(done.stdout)
    assert [(r["snapshot_id"], r["reason"]) for r in rows if r["kind"] == "snapshot"] == [
        (str(orders.metadata.snapshots[0].snapshot_id), "among the newest 2 of `main`"),
        (str(orders.metadata.snapshots[1].snapshot_id), "branch `main`"),
    ]
    done = run_here("explain-expiry", "db.orders", "--older-than", "soon", "--catalog", uri, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: expected a time like 2026-01-31T12:00Z or an age like 7d, 12h or 30m, found `soon`\n"
    )
    done = run_here("explain-expiry", "db.orders", "--older-than", "7d", "--catalog", uri, cwd=tmp_path)
    assert done.stdout.startswith("0 of 1 ref and 0 of ")


def test_decisions_are_shown_where_files_cannot_be_read(bl: Command, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    first = orders.metadata.snapshots[0]
    Path(first.manifest_list.removeprefix("file://")).unlink()
    done = bl("explain-expiry", "db.orders", "--older-than", "2099-01-01")
    assert done.returncode == 1
    assert done.stdout.startswith("0 of 1 ref and 1 of 2 snapshots would be removed\n\nrefs\n")
    assert done.stderr.startswith("error: cannot show the files that expiry would delete: ")
