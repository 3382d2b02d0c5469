"""Hints for the command line: the matching command if there is one, else a note that the hint is Python."""

import re
import shlex
from collections.abc import Callable

_NAME = r'"((?:[^"\\]|\\.)*)"'
_PYTHON = re.compile(r"`(?:refs|table|lake|view)\.[a-z_.]+\(|\b[a-z]+(?:_[a-z]+)*=(?:True|\")")
_SAID = ("in Python", "in Spark")

_COMMANDS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...] = (
    (
        re.compile(rf"refs\.diff\({_NAME}, {_NAME}\)"),
        lambda found: _command("branch diff TABLE", found[1], found[2]),
    ),
    (
        re.compile(rf"refs\.merge\({_NAME}, into={_NAME}(, squash=True)?\)"),
        lambda found: _command("branch merge TABLE", found[1], "--into", found[2], *(["--squash"] if found[3] else [])),
    ),
    (
        re.compile(rf"refs\.create_branch\({_NAME}, at=(\d+)\)"),
        lambda found: _command("branch create TABLE", found[1], "--at", found[2]),
    ),
    (
        re.compile(r'refs\.set_current\("main", to=(\d+)\)'),
        lambda found: f"bergline sql \"CALL system.set_current_snapshot('TABLE', {found[1]})\"",
    ),
    (
        re.compile(r"refs\.cherry_pick\b(?!\()"),
        lambda _: "bergline sql \"CALL system.cherrypick_snapshot('TABLE', ID)\"",
    ),
    (re.compile(r"(?<=`)squash=True(?=`)"), lambda _: "--squash"),
    (re.compile(r"\ballow_recent=True\b"), lambda _: "--allow-recent"),
    (re.compile(r", or connect with a longer busy_timeout"), lambda _: ""),
)


def command_hint(hint: str) -> str:
    """The hint with commands in place of calls; `TABLE` stands for the table that the error is about."""
    for pattern, command in _COMMANDS:
        hint = pattern.sub(command, hint)
    is_python = _PYTHON.search(hint) is not None and not any(said in hint for said in _SAID)
    return f"in Python: {hint}" if is_python else hint


def _command(command: str, *arguments: str) -> str:
    return " ".join(["bergline", command, *map(shlex.quote, arguments)])
