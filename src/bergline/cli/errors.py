"""Errors on stderr: one line each, with their hints."""

import re

from rich.console import Console
from rich.markup import escape

from bergline.errors import BerglineError

_PLAN = re.compile(r";\s*\n[\s'+:]*\w.*\Z|\n\s*(?:Driver stacktrace|JVM stacktrace):.*\Z", re.DOTALL)
_HINT = "hint: "


def show_error(error: BaseException, prefix: str = "") -> None:
    """Show an error, ours or Spark's; without a traceback, and without the plan that Spark adds."""
    text = str(error) if isinstance(error, BerglineError) else _PLAN.sub("", str(error)).strip()
    notes = [note.removeprefix(_HINT) for note in getattr(error, "__notes__", ()) if note.startswith(_HINT)]
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    # brackets in messages are not markup
    console.print(f"[red]error[/red]: {escape(prefix + (text or type(error).__name__))}")
    for hint in notes:
        console.print(f"[dim]hint[/dim]: {escape(hint)}")
