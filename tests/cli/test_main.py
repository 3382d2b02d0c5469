"""The commands: exit code, stdout, stderr."""

import datetime as dt
import inspect
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from glue_server import GlueProxy
from rows import ORDERS, order_rows

import bergline
from bergline import Lake, Table
from bergline.cli.main import app


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    program = "from bergline.cli.entry import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


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


def test_json_has_exact_values_and_ids_as_text(tmp_path: Path, orders: Table) -> None:
    orders.append(order_rows(1))
    uri = f"sqlite:///{tmp_path}/catalog.db"
    (snapshot,) = json.loads(run("snapshots", "db.orders", "--json", "--catalog", uri, cwd=tmp_path).stdout)
    assert snapshot["snapshot_id"] == str(orders.metadata.current_snapshot_id)
    assert snapshot["summary"]["total-records"] == "1"
    (entry,) = json.loads(run("history", "db.orders", "--json", "--catalog", uri, cwd=tmp_path).stdout)
    assert entry["is_current_ancestor"] is True
    (table,) = json.loads(run("tables", "--json", "--catalog", uri, cwd=tmp_path).stdout)
    assert table == {"table": "db.orders", "pointer": orders.metadata_location}


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


def test_brackets_of_names_are_shown(tmp_path: Path, lake: Lake) -> None:
    lake.create_table("db.[red]x[/red]", ORDERS)
    done = run("tables", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert "db.[red]x[/red]" in done.stdout
    done = run("refs", "db.[bold]", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert done.stderr.startswith("error: no table `db.[bold]`")


@pytest.mark.parametrize(
    "command", ["tables", "refs db.t", "snapshots db.t", "history db.t", "explain-expiry db.t", "audit list"]
)
def test_looking_where_there_is_no_lake_creates_none(tmp_path: Path, command: str) -> None:
    done = run(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: no catalog at `sqlite:///./lake/catalog.db`: no such file\nhint: name one with --catalog\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_looking_by_a_name_that_the_database_does_not_have_is_an_error(tmp_path: Path, orders: Table) -> None:
    done = run("tables", "--catalog", f"sqlite:///{tmp_path}/catalog.db", "--name", "lak", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: no catalog `lak` in {tmp_path}/catalog.db, which has `lake`\n"
        "hint: did you mean `lake`?\nhint: name one with --name\n"
    )


def test_without_its_parts_the_command_line_says_what_to_install(tmp_path: Path) -> None:
    program = "import sys; sys.modules['typer'] = None; from bergline.cli.entry import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "bergline: the command line needs more parts: pip install 'bergline[cli]'\n"


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


@pytest.mark.parametrize("text", ["s3.endpoint", "=x"])
def test_property_without_a_value_is_refused_and_not_shown(tmp_path: Path, orders: Table, text: str) -> None:
    uri = f"sqlite:///{tmp_path}/catalog.db"
    done = run("tables", "--catalog", uri, "--property", text, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "error: expected --property key=value, found another text\n")
