"""`bergline expire`: the plan, the question, and what is done."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import new_table, open_lake
from support.processes.command_line import Terminal, run_here


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A lake with a table of three snapshots, all of whose files the last one replaced."""
    with open_lake(tmp_path) as lake:
        new_table(lake).delete("id >= 0")
    return tmp_path


def expire(directory: Path, *arguments: str, answer: str | None = None) -> Any:
    return run_here(
        "expire",
        "db.orders",
        *arguments,
        "--catalog",
        f"sqlite:///{directory}/catalog.db",
        cwd=directory,
        stdin=None if answer is None else Terminal(answer),
    )


def snapshots(directory: Path) -> int:
    with open_lake(directory) as lake:
        return len(lake.load_table("db.orders").metadata.snapshots)


def test_without_a_terminal_the_plan_is_shown_and_nothing_done(directory: Path) -> None:
    done = expire(directory, "--older-than", "0m")
    assert (done.returncode, done.stdout) == (2, "")
    assert "2 of 3 snapshots would be removed" in done.stderr
    assert "--yes" in done.stderr
    assert snapshots(directory) == 3


def test_no_is_an_answer(directory: Path) -> None:
    done = expire(directory, "--older-than", "0m", answer="n\n")
    assert (done.returncode, done.stdout.strip()) == (1, "")
    assert "nothing was done" in done.stderr
    assert snapshots(directory) == 3


def test_yes_removes_snapshots_and_files(directory: Path) -> None:
    assert expire(directory, "--older-than", "0m", answer="y\n").returncode == 0
    assert snapshots(directory) == 1
    assert not list((directory / "warehouse").rglob("*.parquet"))
    done = expire(directory, "--older-than", "0m")
    assert (done.returncode, done.stdout, done.stderr) == (0, "db.orders: nothing to expire\n", "")


def test_plan_and_result_as_json(directory: Path) -> None:
    plan = expire(directory, "--older-than", "0m", "--plan", "--json")
    assert (plan.returncode, plan.stderr) == (0, "")
    planned = json.loads(plan.stdout)
    assert (planned["planned"], len(planned["removed_snapshots"]), snapshots(directory)) == (True, 2, 3)
    done = json.loads(expire(directory, "--older-than", "0m", "--yes", "--json").stdout)
    assert done == {**planned, "planned": False, "deleted_bytes": done["deleted_bytes"]}
    assert all(isinstance(snapshot, str) for snapshot in done["removed_snapshots"])


def test_bad_time_and_bad_id_are_usage(directory: Path) -> None:
    assert expire(directory, "--older-than", "soon").returncode == 2
    assert expire(directory, "--snapshot-id", "x").returncode == 2
