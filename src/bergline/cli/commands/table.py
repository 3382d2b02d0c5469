"""`bergline table`: what tables a lake has, and what is in them."""

from typing import Annotated, Any

import typer

from bergline.catalog.identifiers import parse_table_name
from bergline.cli.arguments import AtOption, TableArgument, complete_namespace, scan_arguments
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.errors import exit_code_of_several, show_error
from bergline.cli.output.rows import AsJson, print_json, print_rows, print_table
from bergline.errors import BerglineError
from bergline.lake.lake import Lake
from bergline.table.inspection.metadata_tables import METADATA_TABLES

app = typer.Typer(help="The tables of a lake.", no_args_is_help=True)


@app.command("list")
@with_lake
def list_tables(
    options: LakeOptions,
    *,
    namespace: Annotated[
        str | None, typer.Option(help="Only tables in this namespace.", autocompletion=complete_namespace)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List tables with their metadata pointers; those whose metadata cannot be read are named as errors."""
    errors: dict[str, BerglineError] = {}
    with options.open() as lake:
        rows = [_listed(lake, table, errors) for table in lake.list_tables(namespace)]
    if as_json:
        print_json(rows)
    else:
        print_table(["table", "pointer"], [[row["table"], row["pointer"] or ""] for row in rows])
    for unread, reason in errors.items():
        show_error(reason, "" if f"`{unread}`" in str(reason) else f"table `{unread}`: ")
    if errors:
        raise typer.Exit(exit_code_of_several(errors.values()))


@app.command()
@with_lake
def inspect(
    options: LakeOptions,
    table: TableArgument,
    name: Annotated[
        str,
        typer.Argument(
            help="A metadata table: snapshots, history, files, manifests, …",
            metavar="METADATA_TABLE",
            autocompletion=lambda incomplete: [n for n in METADATA_TABLES if n.startswith(incomplete)],
        ),
    ],
    *,
    at: AtOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a metadata table, such as snapshots, history, manifests or all_files."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        state: dict[str, Any] = scan_arguments(loaded, at)
        print_rows(loaded.inspect(name, **state), as_json)


def _listed(lake: Lake, table: str, errors: dict[str, BerglineError]) -> dict[str, Any]:
    row: dict[str, Any] = {"table": table, "pointer": None}
    try:
        row["pointer"] = lake.catalog.pointer(parse_table_name(table))
        lake.load_table(table)
    except BerglineError as error:
        errors[table] = error
    return row
