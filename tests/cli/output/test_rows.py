"""Rows on stdout."""

import json
from pathlib import Path

from bergline import Lake, Table
from support.fixtures.rows import ORDERS, order_rows
from support.processes.command_line import run_here


def test_json_has_exact_values_and_ids_as_text(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1))
    uri = f"sqlite:///{tmp_path}/catalog.db"
    (snapshot,) = json.loads(
        run_here("table", "inspect", "db.orders", "snapshots", "--json", "--catalog", uri, cwd=tmp_path).stdout
    )
    assert snapshot["snapshot_id"] == str(orders.metadata.current_snapshot_id)
    assert snapshot["summary"]["total-records"] == "1"
    (entry,) = json.loads(
        run_here("table", "inspect", "db.orders", "history", "--json", "--catalog", uri, cwd=tmp_path).stdout
    )
    assert entry["is_current_ancestor"] is True


def test_brackets_of_names_are_shown(tmp_path: Path, lake: Lake) -> None:
    lake.create_table("db.[red]x[/red]", ORDERS)
    done = run_here("table", "list", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert "db.[red]x[/red]" in done.stdout
    done = run_here("refs", "db.[bold]", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert done.stderr.startswith("error: no table `db.[bold]`")
