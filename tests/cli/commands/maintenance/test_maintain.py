"""`bergline maintain`: a plan, a report for people or as JSON, and exit codes."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Lake, Table
from bergline.cli.main import main
from support.fixtures.rows import ORDERS, ids, order_rows
from support.processes.command_line import run_here

SOON = ("--policy", "compaction.min-input-files=2", "--policy", "manifests.min-count=50")


@pytest.fixture
def small(lake: Lake) -> Table:
    """Three small files."""
    table = lake.create_table("db.orders", ORDERS)
    for i in range(3):
        table.append(order_rows(i))
    return table


def maintain(tmp_path: Path, *arguments: str) -> Any:
    return run_here("maintain", *arguments, "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)


def test_plan_then_report_then_nothing_to_do(tmp_path: Path, small: Table) -> None:
    before = small.metadata_location
    done = maintain(tmp_path, "--plan", *SOON)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("maintenance plan of 1 table, 1 planned, 3 nothing to do\ndb.orders\n")
    assert "compaction `main`: planned: 3 small files" in done.stdout
    assert small.refresh().metadata_location == before
    done = maintain(tmp_path, "--json", "db.orders", *SOON)
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    assert (report["ok"], report["planned"]) == (True, False)
    assert [(s["step"], s["status"]) for s in report["tables"][0]["steps"]] == [
        ("compaction", "done"),
        ("manifests", "nothing to do"),
        ("expiry", "nothing to do"),
        ("orphans", "nothing to do"),
    ]
    assert ids(small.refresh().scan().to_arrow()) == [0, 1, 2]
    done = maintain(tmp_path, "--step", "compaction", "--step", "expiry", "--budget", "10m", "--threads", "2", *SOON)
    assert done.stdout.splitlines()[0] == "maintenance of 1 table, 2 nothing to do"


def test_failure_of_a_table_is_in_the_report_and_in_the_exit_code(tmp_path: Path, lake: Lake, small: Table) -> None:
    broken = lake.create_table("db.broken", ORDERS)
    Path(broken.metadata_location.removeprefix("file://")).unlink()
    done = maintain(tmp_path, "--namespace", "db", "--pattern", "db.*", *SOON)
    assert (done.returncode, done.stderr) == (1, "")
    assert "db.broken\n  failed: " in done.stdout
    assert "compaction `main`: done: 3 small files" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["db.orders", "--namespace", "db"],
            2,
            "error: expected either tables or a namespace and a pattern, found both",
        ),
        (["--policy", "compactions=1"], 2, "error: expected a maintenance property, found `bergline.maintain."),
        (["--budget", "soon"], 2, "error: expected a duration like 90d, 12h or 30m, found `soon`"),
        (["--pattern", "x.*"], 1, "error: no table matches `x.*`"),
        (["--step", "vacuum"], 2, "Invalid value for '--step'"),
    ],
)
def test_bad_option_is_one_error(
    tmp_path: Path,
    small: Table,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    before = small.metadata_location
    given = ["bergline", "maintain", *arguments, "--catalog", f"sqlite:///{tmp_path}/catalog.db"]
    monkeypatch.setattr(sys, "argv", given)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (code, "")
    assert message in said.err
    assert small.refresh().metadata_location == before


def test_tables_in_a_database_are_maintained(tmp_path: Path, postgres: str) -> None:
    with bergline.connect(postgres, warehouse=str(tmp_path / "wh"), name="maintained", create=True) as lake:
        lake.create_namespace("db")
        table = lake.create_table("db.orders", ORDERS, properties={"bergline.maintain.compaction.min-input-files": "2"})
        for i in range(3):
            table.append(order_rows(i))
        done = run_here("maintain", "--json", "--catalog", postgres, "--name", "maintained", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert json.loads(done.stdout)["tables"][0]["steps"][0]["status"] == "done"
        assert len(table.refresh().scan().plan().files) == 1


def test_what_would_delete_files_is_shown_and_asked_about(tmp_path: Path, small: Table) -> None:
    small.set_properties({"history.expire.max-snapshot-age-ms": "1"})
    arguments = ("maintain", "--step", "expiry", "--catalog", f"sqlite:///{tmp_path}/catalog.db")
    asked = run_here(*arguments, cwd=tmp_path)
    assert (asked.returncode, asked.stdout) == (2, "")
    assert "expiry: planned" in asked.stderr
    assert len(small.refresh().metadata.snapshots) == 3
    done = run_here(*arguments, "--yes", cwd=tmp_path)
    assert (done.returncode, "expiry: done" in done.stdout) == (0, True)
    assert len(small.refresh().metadata.snapshots) == 1
    again = run_here(*arguments, cwd=tmp_path)  # asks nothing, because nothing is to do
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.startswith("maintenance of 1 table, 1 nothing to do\n")
