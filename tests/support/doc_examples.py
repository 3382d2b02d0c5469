"""Pages of the documentation, and what their examples print."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest

from support.paths import ROOT


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
    """What the one example of a page prints."""
    (example,) = code_blocks(name, "python")
    return output_of(example, directory)


def output_of(example: str, directory: Path) -> str:
    """What Python prints, run in a directory, as a program that leaves nothing open."""
    printed = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("default")  # a reader's program does not end with them
        patch.chdir(directory)
        exec(compile(example, "<example>", "exec"), {"__name__": "__main__"})  # noqa: S102
    return printed.getvalue()
