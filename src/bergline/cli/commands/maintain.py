"""`bergline maintain`: compaction, manifests, expiry and orphan files of many tables, by their policies."""

import sys
from typing import Annotated

import msgspec
import typer

from bergline.cli.durations import parse_duration
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.rows import AsJson
from bergline.lake.maintenance.maintain import maintain as maintain_tables
from bergline.lake.maintenance.report import MaintenanceStep, TableReport
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
    threads: Annotated[int, typer.Option(help="How many tables are maintained side by side.", min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Compact data files, rewrite manifests, expire snapshots and delete orphan files, as tables' properties say."""
    settings = policy_of(settings_of(policy, "--policy"))
    seconds = None if budget is None else parse_duration(budget)
    with options.open() as lake:
        report = maintain_tables(
            lake,
            settings,
            tables=tables or None,
            namespace=namespace,
            pattern=pattern,
            steps=steps or None,
            plan=plan,
            budget=seconds,
            threads=threads,
            progress=_show_progress if sys.stderr.isatty() else None,
        )
    text = msgspec.json.encode(report.to_dict()).decode() if as_json else str(report)
    sys.stdout.write(f"{text}\n")
    if not report.ok:
        raise typer.Exit(1)


def _show_progress(report: TableReport, done: int, total: int) -> None:
    sys.stderr.write(f"{done} of {total} tables: {report.table}\n")
    sys.stderr.flush()
