"""`bergline compact`: small files and files with deletes, rewritten to files of the target size."""

import sys
from typing import Annotated

import msgspec
import typer

from bergline.arguments import counted
from bergline.cli.arguments import BranchOption, TableArgument
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.progress import progress_line
from bergline.cli.output.rows import AsJson, print_json
from bergline.format.metadata.refs import MAIN
from bergline.reports.units import render_size
from bergline.table.engine.arrow_engine import ArrowRowEngine

app = typer.Typer()
_MIB = 1024 * 1024


@app.command()
@with_lake
def compact(
    options: LakeOptions,
    table: TableArgument,
    *,
    where: Annotated[
        str | None, typer.Option(help="Only files that may hold rows like these, e.g. \"day = '2026-01-31'\".")
    ] = None,
    branch: BranchOption = MAIN,
    sort: Annotated[str | None, typer.Option(help="Sort rows, e.g. 'region, id desc' or 'zorder(id, amount)'.")] = None,
    target_mib: Annotated[int | None, typer.Option(help="The size of new files, in MiB.", min=1)] = None,
    min_files: Annotated[int, typer.Option(help="Minimum number of small files to rewrite.", min=1)] = 2,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of Iceberg's rewrite_data_files, e.g. rewrite-all=true; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite small files, and files with deletes, in one snapshot on a branch; the old files stay until expiry."""
    with options.open() as lake, progress_line(in_bytes=True) as show:
        engine = ArrowRowEngine(None if show is None else lambda done, of: show(table, done, of))
        result = lake.load_table(table).compact(
            where,
            branch=branch,
            sort_order=sort,
            target_size=None if target_mib is None else target_mib * _MIB,
            min_files=min_files,
            options=settings_of(settings, "--option") or None,
            engine=engine,
        )
    if as_json:
        print_json({"table": table, "branch": branch, **msgspec.to_builtins(result)})
    elif not result.rewritten_data_files:
        sys.stdout.write(f"{table}: nothing to compact\n")
    else:
        before, after = counted(result.rewritten_data_files, "file"), counted(result.added_data_files, "file")
        deletes = f", {counted(result.removed_delete_files, 'delete file')} gone" if result.removed_delete_files else ""
        sys.stdout.write(f"{table}: {before} of {render_size(result.rewritten_bytes)} became {after}{deletes}\n")
    if result.failed_data_files:
        sys.stderr.write(f"{counted(result.failed_data_files, 'file')} could not be rewritten\n")
        raise typer.Exit(1)
