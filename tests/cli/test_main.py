"""The commands: exit code, stdout, stderr."""

import datetime as dt
import inspect
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import run
from glue_server import GlueProxy
from rows import ORDERS, order_rows

import bergline
from bergline import Lake, Table
from bergline.cli.main import app


def test_refs_are_shown_as_a_table(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1))
    orders.refs.create_branch("staging", min_snapshots_to_keep=3)
    done = run("refs", "db.orders", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    head = orders.metadata.current_snapshot_id
    assert (done.returncode, done.stderr) == (0, "")
    header, main, staging = (line.split() for line in done.stdout.splitlines())
    assert header[:3] == ["name", "type", "snapshot_id"]
    assert main == ["main", "BRANCH", str(head)]
    assert staging == ["staging", "BRANCH", str(head), "3"]


def test_missing_table_is_one_error_with_a_hint(tmp_path: Path, orders: Table) -> None:
    done = run("refs", "db.ordres", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no table `db.ordres`\nhint: did you mean `db.orders`?\n"


@pytest.mark.parametrize("damage", [lambda file: file.unlink(), lambda file: file.write_text("[/red] {")])
def test_table_that_cannot_be_read_is_listed_beside_the_others(
    tmp_path: Path, lake: Lake, orders: Table, damage: Callable[[Path], object]
) -> None:
    broken = lake.create_table("db.broken", ORDERS)
    damage(Path(broken.metadata_location.removeprefix("file://")))
    done = run("tables", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    _, *rows = (line.split() for line in done.stdout.splitlines())
    assert rows == [["db.broken", broken.metadata_location], ["db.orders", orders.metadata_location]]
    assert done.stderr.startswith("error: table `db.broken`")
    assert done.stderr.count("`db.broken`") == 1
    assert broken.metadata_location in done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)


def test_tables_of_a_database_and_of_glue_are_shown(tmp_path: Path, postgres: str, glue: GlueProxy) -> None:
    for uri, properties in ((postgres, {}), ("glue://", glue.properties)):
        warehouse = str(tmp_path / "wh")
        with bergline.connect(uri, warehouse=warehouse, properties=properties, create=True) as lake:
            lake.create_namespace("cli")
            orders = lake.create_table("cli.orders", ORDERS).append(order_rows(1))
        options = [text for key, value in properties.items() for text in ("--property", f"{key}={value}")]
        done = run("tables", "--json", "--catalog", uri, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert {"table": "cli.orders", "pointer": orders.metadata_location} in json.loads(done.stdout)
        done = run("refs", "cli.orders", "--catalog", uri, "--warehouse", warehouse, *options, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")


def test_expiry_is_explained(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1)).overwrite(order_rows(2))
    uri = f"sqlite:///{tmp_path}/catalog.db"
    moment = ("--older-than", "2099-01-01 01:00+01:00")
    done = run("explain-expiry", "db.orders", *moment, "--catalog", uri, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    plan = orders.plan_expiry(older_than=dt.datetime(2099, 1, 1, tzinfo=dt.UTC))
    assert done.stdout == f"{plan}\n"
    done = run("explain-expiry", "db.orders", *moment, "--retain-last", "2", "--json", "--catalog", uri, cwd=tmp_path)
    rows = json.loads(done.stdout)
    assert [(r["snapshot_id"], r["reason"]) for r in rows if r["kind"] == "snapshot"] == [
        (str(orders.metadata.snapshots[0].snapshot_id), "among the newest 2 of `main`"),
        (str(orders.metadata.snapshots[1].snapshot_id), "branch `main`"),
    ]
    done = run("explain-expiry", "db.orders", "--older-than", "soon", "--catalog", uri, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: expected a time like `2026-01-31 12:00:00`, found `soon`\n"


@pytest.mark.parametrize("command", ["tables", "refs", "snapshots", "history", "explain_expiry"])
def test_every_command_takes_what_opens_a_catalog(command: str) -> None:
    (callback,) = (c.callback for c in app.registered_commands if c.callback and c.callback.__name__ == command)
    assert {"catalog", "warehouse", "name", "properties", "as_json"} <= set(inspect.signature(callback).parameters)
