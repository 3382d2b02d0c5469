"""`bergline orphans`: files in a table's directories that nothing needs."""

import sys
from typing import Annotated

import typer

from bergline.arguments import counted
from bergline.cli.arguments import TableArgument
from bergline.cli.durations import parse_time, render_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.progress import progress_line
from bergline.cli.output.rows import AsJson, print_json
from bergline.reports.units import render_size
from bergline.table.orphans.plan import OrphanPlan, printable
from bergline.table.orphans.sweep import SweepResult

app = typer.Typer()


@app.command()
@with_lake
def orphans(
    options: LakeOptions,
    table: TableArgument,
    *,
    older_than: Annotated[
        str | None, typer.Option(help="Only files from before a time, or older than, e.g. 7d; 24h at least.")
    ] = "3d",
    location: Annotated[str | None, typer.Option(help="Only files in this directory.")] = None,
    allow_recent: Annotated[
        bool,
        typer.Option("--allow-recent", help="Include files of the last 24 hours: only if certainly nobody is writing."),
    ] = False,
    plan: Annotated[bool, typer.Option("--plan", help="Show the files, and delete none.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Find files that no metadata references, left behind by writers that died, and delete them."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        with progress_line() as show:
            found = loaded.plan_orphans(
                older_than=parse_time(older_than),
                location=location,
                allow_recent=allow_recent,
                progress=None if show is None else lambda listed, _: show("files listed", listed, listed),
            )
        if plan or not found.files:
            text = str(found) if plan else f"{table}: no orphan files"
            _print(found, SweepResult(), text, planned=plan, as_json=as_json)
            return
        confirm(str(found), yes)
        with progress_line() as show:
            done = loaded.sweep_orphans(
                found, progress=None if show is None else lambda deleted, of: show("files deleted", deleted, of)
            )
    text = f"{table}: deleted {counted(len(done.deleted), 'file')} of {render_size(done.deleted_bytes)}"
    spared = f", spared {counted(len(done.spared), 'file')} that changed meanwhile" if done.spared else ""
    _print(found, done, text + spared, planned=False, as_json=as_json)
    for place in done.failed:
        sys.stderr.write(f"could not be deleted: {printable(place)}\n")
    if done.failed:
        raise typer.Exit(1)


def _print(found: OrphanPlan, done: SweepResult, text: str, *, planned: bool, as_json: bool) -> None:
    if not as_json:
        sys.stdout.write(f"{text}\n")
        return
    print_json(
        {
            "table": str(found.table),
            "planned": planned,
            "orphans": [
                {"location": printable(f.location), "bytes": f.size, "modified": render_time(f.modified_ms)}
                for f in found.files
            ],
            "deleted": [printable(place) for place in done.deleted],
            "deleted_bytes": done.deleted_bytes,
            "spared": [printable(place) for place in done.spared],
            "failed": [printable(place) for place in done.failed],
        }
    )
