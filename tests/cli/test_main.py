"""The list of commands: its help, its errors, and the module of each."""

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import bergline
from bergline import Table
from bergline.cli.main import COMMANDS, load_command
from support.paths import ROOT
from support.processes.command_line import run, run_here

NEEDS_NO_LAKE = {"quickstart"}
NO_JSON = {"serve", "ui", "audit export"}  # the last has no other form


def every_command() -> Iterator[tuple[str, Any]]:
    """Each command by its whole name."""
    for name in COMMANDS:
        found = load_command(name)
        if commands := getattr(found, "commands", None):
            yield from ((f"{name} {inner}", command) for inner, command in commands.items())
        else:
            yield name, found


ALL = dict(every_command())


def test_help_lists_every_command_with_its_line(tmp_path: Path) -> None:
    done = run_here("--help", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for name in COMMANDS:
        assert f"│ {name} " in done.stdout


def test_version_is_printed(tmp_path: Path) -> None:
    done = run("--version", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"bergline {bergline.__version__}\n", "")


def test_command_line_is_the_package_run_as_a_module(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bergline", "--version"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == f"bergline {bergline.__version__}\n"


def test_command_that_is_not_there_is_a_usage_error_with_near_names(tmp_path: Path) -> None:
    done = run_here("tabel", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'table'" in done.stderr


def test_every_module_with_a_command_is_listed() -> None:
    folder = ROOT / "src/bergline/cli/commands"
    modules = [".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py")]
    with_command = {m for m in modules if hasattr(importlib.import_module(f"bergline.cli.commands.{m}"), "app")}
    assert {listed.module for listed in COMMANDS.values()} == with_command


@pytest.mark.parametrize("name", ALL)
def test_every_command_takes_what_opens_a_lake_and_prints_json(name: str) -> None:
    parameters = set(inspect.signature(ALL[name].callback).parameters)
    options = {option for parameter in ALL[name].params for option in parameter.opts}
    assert parameters
    assert {"--catalog", "--warehouse", "--name", "--property"} <= options or name in NEEDS_NO_LAKE
    assert "--json" in options or name in NO_JSON
    assert ALL[name].help


@pytest.mark.parametrize("name", ALL)
def test_no_help_has_brackets_that_would_be_taken_for_markup(name: str) -> None:
    texts = [getattr(parameter, "help", None) or "" for parameter in ALL[name].params]
    assert [text for text in texts if re.search(r"(?<!\\)\[", text)] == []


def test_missing_table_is_one_error_with_a_hint(tmp_path: Path, orders: Table) -> None:
    done = run("refs", "db.ordres", "--catalog", f"sqlite:///{tmp_path}/catalog.db", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: no table `db.ordres`\nhint: did you mean `db.orders`?\n"
