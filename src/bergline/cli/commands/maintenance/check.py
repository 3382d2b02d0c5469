"""`bergline check`: what is damaged in tables, and what would repair it."""

from typing import Annotated

import msgspec
import typer

from bergline.cli.arguments import complete_namespace, complete_table
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.progress import progress_line
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.errors import InvalidInputError
from bergline.reports.check.catalog_checks import check_others
from bergline.reports.check.check import check_tables

app = typer.Typer()


@app.command()
@with_lake
def check(
    options: LakeOptions,
    tables: Annotated[
        list[str] | None, typer.Argument(help="Tables, e.g. db.orders \\[default: all]", autocompletion=complete_table)
    ] = None,
    *,
    namespace: Annotated[
        str | None,
        typer.Option(help="Only tables in this namespace and below it.", autocompletion=complete_namespace),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Also check views, the trash, and the catalog's own rows."),
    ] = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Also open every data and delete file, and compare its rows.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check every file that a snapshot reaches, counts, sequence numbers, refs and row ids; change nothing.

    The exit code is 1 if something is damaged.
    """
    if everything and (tables or namespace is not None):
        raise InvalidInputError("expected --all alone, found tables or a namespace with it")
    with options.open() as lake, progress_line() as show:
        progress = None if show is None else lambda table, what, done, of: show(f"{table}: {what}", done, of)
        report = check_tables(lake, tables=tables or None, namespace=namespace, deep=deep, progress=progress)
        if everything:
            others = check_others(lake.catalog, deep=deep, progress=progress)
            report = msgspec.structs.replace(report, others=others)
    if as_json:
        print_json(report.to_dict())
    else:
        print_lines([str(report)])
    if not report.ok:
        raise typer.Exit(1)
