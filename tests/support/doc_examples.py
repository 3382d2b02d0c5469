"""Pages of the documentation, and what their examples print."""

import re
import subprocess
import sys
from pathlib import Path

from support_path import ROOT


def page(name: str) -> str:
    """The text of a page."""
    return (ROOT / "docs" / name).read_text()


def code_blocks(name: str, language: str) -> list[str]:
    """The blocks of code of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page(name), re.DOTALL | re.MULTILINE)


def statements(text: str) -> list[str]:
    """The statements of a block of SQL."""
    return [statement for statement in text.split(";\n") if statement.strip()]


def output_of_example(name: str, directory: Path) -> str:
    """What the one example of a page prints, run in a process of its own."""
    (example,) = code_blocks(name, "python")
    return output_of(example, directory)


def output_of(example: str, directory: Path) -> str:
    """What Python prints, run in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", example], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
