"""`bergline explain-expiry`: what expiry would remove, and why."""

from functools import partial
from typing import Annotated

import typer

from bergline.cli.durations import parse_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.problems import end_with_problems
from bergline.cli.output.rows import AsJson, print_lines, print_rows
from bergline.errors import FormatError, NotFoundError, StorageError
from bergline.reports.problem import Problem, problem_of
from bergline.table.expiry.retention import CleanupLevel

app = typer.Typer()


@app.command()
@with_lake
def explain_expiry(
    options: LakeOptions,
    table: Annotated[str, typer.Argument(help="Table, e.g. db.orders")],
    *,
    older_than: Annotated[
        str | None,
        typer.Option(help="As if expiry were called with this time, e.g. 2026-01-31T12:00Z, or age, e.g. 7d or 12h."),
    ] = None,
    retain_last: Annotated[int | None, typer.Option(help="As if expiry were called with this number.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what expiry would remove and keep, by which rule, and what only one branch or tag retains."""
    moment = parse_time(older_than)
    problems: list[Problem] = []
    with options.open() as lake:
        plan_with = partial(lake.load_table(table).plan_expiry, older_than=moment, retain_last=retain_last)
        try:
            plan = plan_with()
        except (FormatError, NotFoundError, StorageError) as error:
            problems.append(problem_of("the files that expiry would delete", error))
            plan = plan_with(level=CleanupLevel.NONE)
    if as_json:
        print_rows(plan.to_arrow(), as_json)
    else:
        first, *others = str(plan).splitlines()
        print_lines([first.partition(";")[0] if problems else first, *others])
    end_with_problems(problems)
