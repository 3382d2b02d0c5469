"""The writers themselves: someone takes over from each that was killed, and nobody else ends unseen."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import bergline
from support.processes.writer_jobs import CHANGES, TABLE, Step, change_rows
from support.processes.writers import Writers

PLAN = [[Step(kind="append", ref="main", change=number) for number in range(2)]]


@pytest.fixture
def lake(tmp_path: Path) -> dict[str, str]:
    arguments = {"uri": f"sqlite:///{tmp_path}/catalog.db"}
    with bergline.connect(**arguments, create=True) as lake:
        lake.create_namespace("db")
        lake.create_table(TABLE, CHANGES).append(change_rows(-1))
    return arguments


@pytest.fixture
def writer() -> Iterator[Writers]:
    with Writers(1) as running:
        yield running


def test_another_takes_over_from_one_that_was_killed_after_its_last_step(
    writer: Writers, lake: dict[str, str], tmp_path: Path
) -> None:
    writer.run(lake, tmp_path / "first", [PLAN[0][:1]])
    writer.processes[0].kill()
    journal = writer.run(lake, tmp_path / "second", [PLAN[0][1:]])
    assert not journal.errors
    assert [step["change"] for step in journal.steps("done", "append")] == [1]


def test_a_writer_that_ends_by_itself_is_an_error(writer: Writers, lake: dict[str, str], tmp_path: Path) -> None:
    writer.run(lake, tmp_path / "first", [PLAN[0][:1]])
    os.kill(writer.processes[0].pid, signal.SIGSEGV)
    with pytest.raises(AssertionError, match="a writer that nobody killed ended with exit code -11"):
        writer.run(lake, tmp_path / "second", [PLAN[0][1:]])
