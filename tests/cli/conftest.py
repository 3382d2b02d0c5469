"""The command line in a directory whose `bergline.toml` names the lake."""

from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from bergline import Lake
from support.processes.command_line import Command, run_here


@pytest.fixture
def bl(tmp_path: Path, lake: Lake) -> Command:
    """A command on the lake of the test."""
    (tmp_path / "bergline.toml").write_text('catalog = "sqlite:///catalog.db"')

    def command(*arguments: str, **options: Any) -> CompletedProcess[str]:
        return run_here(*arguments, cwd=tmp_path, **options)

    return command
