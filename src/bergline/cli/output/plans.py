"""Confirmation of destructive commands, after showing their plan."""

import sys
from typing import Annotated, TypeAlias

import typer

from bergline.cli.output.errors import FAILED
from bergline.cli.output.visible import visible
from bergline.errors import InvalidInputError

Yes: TypeAlias = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]

_NEWLINE = "\n"


def confirm(plan: str, yes: bool) -> None:
    """Show a plan and ask whether to carry it out; ends the command if not, or if nobody can be asked."""
    sys.stderr.write(f"{visible(plan, keep=_NEWLINE)}\n")
    sys.stderr.flush()
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInputError(
            "nothing was done: there is no terminal to ask at", hints=["--yes does what is shown without asking"]
        )
    sys.stderr.write("Go ahead? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        sys.stderr.write("nothing was done\n")
        raise typer.Exit(FAILED)
