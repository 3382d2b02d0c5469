"""`bergline maintain`: compaction, manifests, expiry and orphan files of many tables, by their policies."""

from typing import Annotated

import msgspec
import typer

from bergline.arguments import parse_duration
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.errors import FAILED, UNKNOWN
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.progress import progress_line
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.lake.maintenance.maintain import maintain as maintain_tables
from bergline.lake.maintenance.report import MaintenanceReport, MaintenanceStep, StepStatus
from bergline.table.evolution.maintenance_policy import policy_of

app = typer.Typer()


@app.command()
@with_lake
def maintain(
    options: LakeOptions,
    tables: Annotated[list[str] | None, typer.Argument(help="Tables, e.g. db.orders \\[default: all]")] = None,
    *,
    namespace: Annotated[str | None, typer.Option(help="Only tables in this namespace and below it.")] = None,
    pattern: Annotated[str | None, typer.Option(help="Only tables whose names match, e.g. 'db.orders_*'.")] = None,
    plan: Annotated[bool, typer.Option("--plan", help="Show what would be done and why, and change nothing.")] = False,
    steps: Annotated[
        list[MaintenanceStep] | None, typer.Option("--step", help="Only this step; may be repeated \\[default: all]")
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="What tables do not say themselves, e.g. compaction.min-input-files=10; may be repeated.",
        ),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(help="Time after which nothing more is begun, e.g. 30m, 12h or 1d.")
    ] = None,
    threads: Annotated[int, typer.Option(help="How many tables are maintained in parallel.", min=1)] = 1,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Compact data files, rewrite manifests, expire snapshots and delete orphan files, as tables' properties say.

    A plan that deletes files is shown first and needs confirmation; any other plan is carried out directly.
    """
    settings = policy_of(settings_of(policy, "--policy"))
    seconds = None if budget is None else parse_duration(budget)
    with options.open() as lake:

        def run(what: str, *, only_plan: bool) -> MaintenanceReport:
            with progress_line() as show:
                return maintain_tables(
                    lake,
                    settings,
                    tables=tables or None,
                    namespace=namespace,
                    pattern=pattern,
                    steps=steps or None,
                    plan=only_plan,
                    budget=seconds,
                    threads=threads,
                    progress=None if show is None else lambda _, done, of: show(what, done, of),
                )

        report = run("tables planned", only_plan=True) if plan or not yes else None
        if report is None or (not plan and report.count(StepStatus.PLANNED)):
            if report is not None and _deletes(report):
                confirm(str(report), yes)
            report = run("tables maintained", only_plan=False)
        elif not plan:  # nothing to do: what was planned is what would be reported
            report = msgspec.structs.replace(report, planned=False)
    if as_json:
        print_json(report.to_dict())
    else:
        print_lines([str(report)])
    if not report.ok:
        raise typer.Exit(UNKNOWN if report.count(StepStatus.UNKNOWN) else FAILED)


def _deletes(plan: MaintenanceReport) -> bool:
    """Whether a plan has steps that delete files."""
    planned = {step.step for table in plan.tables for step in table.steps if step.status is StepStatus.PLANNED}
    return not planned.isdisjoint({MaintenanceStep.EXPIRY, MaintenanceStep.ORPHANS})
