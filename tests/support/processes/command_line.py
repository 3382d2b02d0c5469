"""The `bergline` command: in a process of its own, or in this one, which is quicker."""

import contextlib
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from bergline.cli.main import run as run_command

Command: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Exit code, stdout and stderr of a command in a process of its own."""
    program = "from bergline.cli.entry import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def run_here(*arguments: str, cwd: Path, stdin: io.StringIO | None = None) -> subprocess.CompletedProcess[str]:
    """The same in this process; no terminal is there unless `stdin` is one."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.chdir(cwd)
        patch.setattr(sys, "stdin", stdin or io.StringIO())
        with pytest.raises(SystemExit) as ended:
            run_command(arguments)
    code = ended.value.code
    return subprocess.CompletedProcess(arguments, code if isinstance(code, int) else 0, out.getvalue(), err.getvalue())


class Terminal(io.StringIO):
    """Somebody who types these lines."""

    def isatty(self) -> bool:
        return True
