"""`bergline compact`."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.fixtures.damaged_tables import data_files, new_table, open_lake, rows
from support.processes.command_line import run_here


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A lake with a table of three small files in each of two partitions, and a branch."""
    with open_lake(tmp_path) as lake:
        table = new_table(lake, commits=3)
        table.refs.create_branch("audit")
        table.append(rows(50), branch="audit")
    return tmp_path


def compact(directory: Path, *arguments: str) -> Any:
    return run_here("compact", *arguments, "--catalog", f"sqlite:///{directory}/catalog.db", cwd=directory)


def files(directory: Path) -> int:
    with open_lake(directory) as lake:
        return len(data_files(lake.load_table("db.orders")))


def test_small_files_become_few_once(directory: Path) -> None:
    done = compact(directory, "db.orders")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("db.orders: 6 files of ")
    assert done.stdout.endswith(" became 2 files\n")
    assert files(directory) == 2
    assert compact(directory, "db.orders").stdout == "db.orders: nothing to compact\n"


def test_some_files_of_a_branch_as_json(directory: Path) -> None:
    done = compact(directory, "db.orders", "--branch", "audit", "--where", "region = 'north'", "--sort", "id", "--json")
    found = json.loads(done.stdout)
    assert (found["table"], found["branch"], found["rewritten_data_files"], found["added_data_files"]) == (
        "db.orders",
        "audit",
        4,
        1,
    )
    assert files(directory) == 6


def test_unknown_table_branch_and_option(directory: Path) -> None:
    assert compact(directory, "db.none").returncode == 1
    assert compact(directory, "db.orders", "--branch", "none").returncode == 1
    assert compact(directory, "db.orders", "--option", "speed").returncode == 2
    assert compact(directory, "db.orders", "--option", "speed=high").returncode == 1
