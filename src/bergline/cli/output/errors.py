"""Errors on stderr, one line each with their hints, and the exit codes that tell them apart."""

import re
from collections.abc import Iterable

from bergline.cli.output.command_hints import command_hint
from bergline.cli.output.visible import visible
from bergline.errors import BerglineError, CommitUnknownError, ConflictError, InvalidInputError

FAILED, USAGE, CONFLICT, UNKNOWN = 1, 2, 3, 4
_CODES: dict[type[BerglineError], int] = {
    InvalidInputError: USAGE,
    ConflictError: CONFLICT,
    CommitUnknownError: UNKNOWN,
}
_PLAN = re.compile(r";\s*\n[\s'+:]*\w.*\Z|\n\s*(?:Driver stacktrace|JVM stacktrace):.*\Z", re.DOTALL)
_HINT = "hint: "
_LINES = "\n\t"


def exit_code(error: BaseException) -> int:
    """1 failed, 2 usage, 3 conflict, 4 unknown outcome."""
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), FAILED)


def exit_code_of_several(errors: Iterable[BaseException]) -> int:
    """The exit code of the most important error: an unknown outcome, then a conflict, then a failure."""
    return max((FAILED if (code := exit_code(error)) == USAGE else code for error in errors), default=0)


def show_error(error: BaseException, prefix: str = "") -> None:
    """Show an error, ours or Spark's; without a traceback, and without the plan that Spark adds."""
    from rich.console import Console  # noqa: PLC0415  (help needs none of it)
    from rich.markup import escape  # noqa: PLC0415

    text = str(error) if isinstance(error, BerglineError) else _PLAN.sub("", str(error)).strip()
    notes = [note.removeprefix(_HINT) for note in getattr(error, "__notes__", ()) if note.startswith(_HINT)]
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # brackets in messages are not markup
    console.print(f"[red]error[/red]: {escape(visible(prefix + (text or type(error).__name__), keep=_LINES))}")
    for hint in map(command_hint, notes):
        console.print(f"[dim]hint[/dim]: {escape(visible(hint, keep=_LINES))}")
