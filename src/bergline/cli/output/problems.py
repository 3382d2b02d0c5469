"""Problems in addition to the results that can be shown: on stderr, and in the exit code."""

from collections.abc import Iterable

import typer

from bergline.cli.output.errors import FAILED, show_error
from bergline.errors import BerglineError
from bergline.reports.problem import Problem


def end_with_problems(problems: Iterable[Problem]) -> None:
    """Show problems and end the command with a matching exit code; does nothing if there are none."""
    shown = list(problems)
    for problem in shown:
        show_error(BerglineError(str(problem), hints=problem.hints))
    if shown:
        raise typer.Exit(FAILED)


def json_problem(problem: Problem) -> dict[str, str]:
    """A problem as `--json` shows it."""
    return {"what": problem.what, "message": problem.message, "code": problem.code}
