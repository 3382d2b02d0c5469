"""The prompt: statements of several lines, with history, and completion by what the lake has."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bergline.cli.sql_shell.completion import DELIMITERS, Completion
from bergline.errors import SqlSyntaxError
from bergline.sql.text.script import split_script

# Windows lacks this module
_READLINE: Any = importlib.import_module("readline") if importlib.util.find_spec("readline") else None
_EXITS = {"\\q", "exit", "quit"}


def run_prompt(run: Callable[[str], object], completion: Completion) -> None:
    """Read statements, which may have several lines, and run each at its semicolon."""
    sys.stderr.write("Statements end with a semicolon; \\q or Ctrl-D ends the session.\n")
    pending = ""
    with _history(), _completed(completion, lambda: pending):
        while True:
            try:
                line = input("    -> " if pending else "sql> ")
            except EOFError:
                sys.stderr.write("\n")
                return
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                pending = ""
                continue
            if not pending and line.strip().rstrip(";").strip().lower() in _EXITS:
                return
            pending = f"{pending}\n{line}" if pending else line
            with contextlib.suppress(SqlSyntaxError):  # a quote or comment that continues on the next line
                found = split_script(pending)
                pending = found.rest
                for text in found.statements:
                    run(text)


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """The history of earlier prompts, if readline is available."""
    if _READLINE is None:
        yield
        return
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    file = state / "bergline" / "sql_history"
    with contextlib.suppress(OSError):
        _READLINE.read_history_file(file)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            _READLINE.set_history_length(1000)
            _READLINE.write_history_file(file)


@contextlib.contextmanager
def _completed(completion: Completion, pending: Callable[[], str]) -> Iterator[None]:
    """Complete words with the tab key, if readline is available."""
    if _READLINE is None:
        yield
        return

    def complete(word: str, number: int) -> str | None:
        found = completion.of(word, f"{pending()} {_READLINE.get_line_buffer()}")
        return found[number] if number < len(found) else None

    before = _READLINE.get_completer(), _READLINE.get_completer_delims()
    _READLINE.set_completer(complete)
    _READLINE.set_completer_delims(DELIMITERS)
    _READLINE.parse_and_bind("tab: complete")
    try:
        yield
    finally:
        _READLINE.set_completer(before[0])
        _READLINE.set_completer_delims(before[1])
