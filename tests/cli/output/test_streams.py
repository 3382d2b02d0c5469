"""Commands whose stdin or stdout is closed, full, or of a small encoding: an error of one line, and no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

from bergline import Lake
from support.processes.command_line import Command

NO_TERMINAL = "error: nothing was done: there is no terminal to ask at\n"


@pytest.fixture
def words(lake: Lake) -> None:
    """A table with a branch of a hostile name."""
    table = lake.create_table("db.words", pa.schema([("word", pa.string())]))
    table.append(pa.table({"word": ["Übung"]}))
    table.refs.create_branch("a\x1b[31m")
    table.refs.create_branch("old")


def in_shell(arguments: str, directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command by a shell, which redirects its streams."""
    uri = f"sqlite:///{directory}/catalog.db"
    return subprocess.run(
        ["/bin/bash", "-c", f"{sys.executable} -c 'from bergline.cli.entry import main; main()' {arguments}"],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env={**os.environ, "BERGLINE_CATALOG": uri, **variables},
    )


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ("refs db.words --json >/dev/full", 1, "error: the operating system refused: No space left on device\n"),
        ("refs db.words --json >&-", 0, ""),
        ("sql --engine duckdb <&-", 0, ""),
        ("branch drop db.words old <&-", 2, NO_TERMINAL),
    ],
)
def test_streams_that_are_closed_or_full(tmp_path: Path, arguments: str, code: int, said: str) -> None:
    done = in_shell(arguments, tmp_path)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("words")
def test_text_that_the_encoding_does_not_have_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    done = in_shell("read db.words", tmp_path, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "error: cannot write '\\xdc' in the encoding `ascii` of the output\n"
        "hint: set PYTHONUTF8=1, or a locale with UTF-8\n"
    )


@pytest.mark.usefixtures("words")
@pytest.mark.parametrize("command", [["explain-expiry"], ["expire", "--plan"], ["refs"], ["log", "--graph"]])
def test_hostile_names_do_not_reach_the_terminal(bl: Command, command: list[str]) -> None:
    done = bl(*command, "db.words")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "a\\x1b[31m" in done.stdout
