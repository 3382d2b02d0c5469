"""`bergline orphans`: found, shown, and deleted after a question."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import new_table, open_lake, path_of
from support.processes.command_line import run_here

NOW = ("--older-than", "0m", "--allow-recent")


@pytest.fixture
def stray(tmp_path: Path) -> Path:
    """A file that a writer left behind."""
    with open_lake(tmp_path) as lake:
        file = path_of(new_table(lake).location) / "data" / "stray.parquet"
    file.write_bytes(b"stray")
    time.sleep(0.01)
    return file


def orphans(directory: Path, *arguments: str) -> Any:
    uri = f"sqlite:///{directory}/catalog.db"
    return run_here("orphans", "db.orders", *arguments, "--catalog", uri, cwd=directory)


def test_plan_then_refusal_then_deletion(tmp_path: Path, stray: Path) -> None:
    plan = orphans(tmp_path, *NOW, "--plan")
    assert (plan.returncode, plan.stderr) == (0, "")
    assert str(stray) in plan.stdout
    asked = orphans(tmp_path, *NOW)
    assert (asked.returncode, asked.stdout, stray.exists()) == (2, "", True)
    done = orphans(tmp_path, *NOW, "--yes")
    assert (done.returncode, done.stdout) == (0, "db.orders: deleted 1 file of 5 B\n")
    assert not stray.exists()
    again = orphans(tmp_path, *NOW)
    assert (again.returncode, again.stdout, again.stderr) == (0, "db.orders: no orphan files\n", "")


def test_json(tmp_path: Path, stray: Path) -> None:
    found = json.loads(orphans(tmp_path, *NOW, "--plan", "--json").stdout)
    assert (found["planned"], found["deleted"], found["orphans"][0]["bytes"]) == (True, [], 5)
    done = json.loads(orphans(tmp_path, *NOW, "--yes", "--json").stdout)
    assert (done["planned"], len(done["deleted"]), done["deleted_bytes"], done["failed"]) == (False, 1, 5, [])


def test_recent_files_are_refused(tmp_path: Path, stray: Path) -> None:
    done = orphans(tmp_path, "--older-than", "1h", "--yes")
    assert (done.returncode, done.stdout, stray.exists()) == (1, "", True)
    assert done.stderr.startswith("error: ")
