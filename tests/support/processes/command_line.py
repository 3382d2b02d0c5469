"""The `bergline` command in a process of its own."""

import subprocess
import sys
from pathlib import Path


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Exit code, stdout and stderr of a command."""
    program = "from bergline.cli.entry import main; main()"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )
