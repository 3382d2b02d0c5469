"""`bergline`: inspect, maintain and serve a lake from the terminal."""

import sys
from typing import Annotated

import pyarrow as pa
import typer

from bergline.cli import audit, token
from bergline.cli.errors import show_error
from bergline.cli.maintain import maintain
from bergline.cli.opening import CatalogOption, NameOption, PropertyOption, WarehouseOption, open_lake
from bergline.cli.rows import AsJson, print_rows
from bergline.cli.serve import serve
from bergline.cli.sql import sql
from bergline.errors import BerglineError
from bergline.lake.lake import DEFAULT_NAME
from bergline.sql.text.timestamps import in_zone, parse_moment

app = typer.Typer(
    help="Look at the tables, branches and snapshots of a lake, maintain it and serve it.", no_args_is_help=True
)

TableArgument = Annotated[str, typer.Argument(help="Table, e.g. db.orders")]


@app.command()
def tables(
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    name: NameOption = DEFAULT_NAME,
    properties: PropertyOption = None,
    as_json: AsJson = False,
) -> None:
    """List all tables with their metadata pointers; tables whose metadata cannot be read are named as errors."""
    errors: dict[str, BerglineError] = {}
    rows = []
    with open_lake(catalog, warehouse, properties, name) as lake:
        for table in (t for namespace in lake.catalog.list_namespaces() for t in lake.catalog.list_tables(namespace)):
            pointer = None
            try:
                pointer = lake.catalog.pointer(table)
                lake.load_table(table)
            except BerglineError as error:
                errors[str(table)] = error
            rows.append({"table": str(table), "pointer": pointer})
    print_rows(
        pa.Table.from_pylist(rows, schema=pa.schema([("table", pa.string()), ("pointer", pa.string())])), as_json
    )
    for unread, reason in errors.items():
        show_error(reason, "" if f"`{unread}`" in str(reason) else f"table `{unread}`: ")
    if errors:
        raise typer.Exit(1)


@app.command()
def refs(
    table: TableArgument,
    *,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    name: NameOption = DEFAULT_NAME,
    properties: PropertyOption = None,
    as_json: AsJson = False,
) -> None:
    """List a table's branches and tags with their retention."""
    with open_lake(catalog, warehouse, properties, name) as lake:
        print_rows(lake.load_table(table).inspect("refs"), as_json)


@app.command()
def snapshots(
    table: TableArgument,
    *,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    name: NameOption = DEFAULT_NAME,
    properties: PropertyOption = None,
    as_json: AsJson = False,
) -> None:
    """List a table's snapshots."""
    with open_lake(catalog, warehouse, properties, name) as lake:
        print_rows(lake.load_table(table).inspect("snapshots"), as_json)


@app.command()
def history(
    table: TableArgument,
    *,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    name: NameOption = DEFAULT_NAME,
    properties: PropertyOption = None,
    as_json: AsJson = False,
) -> None:
    """Show when `main` pointed to which snapshot."""
    with open_lake(catalog, warehouse, properties, name) as lake:
        print_rows(lake.load_table(table).inspect("history"), as_json)


@app.command("explain-expiry")
def explain_expiry(
    table: TableArgument,
    *,
    older_than: Annotated[
        str | None, typer.Option(help="As if expiry were called with this time, e.g. 2026-01-31T12:00Z.")
    ] = None,
    retain_last: Annotated[int | None, typer.Option(help="As if expiry were called with this number.")] = None,
    catalog: CatalogOption = None,
    warehouse: WarehouseOption = None,
    name: NameOption = DEFAULT_NAME,
    properties: PropertyOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what expiry would remove and keep, by which rule, and what only one branch or tag retains."""
    moment = None if older_than is None else in_zone(parse_moment(older_than), "UTC")
    with open_lake(catalog, warehouse, properties, name) as lake:
        plan = lake.load_table(table).plan_expiry(older_than=moment, retain_last=retain_last)
    if as_json:
        print_rows(plan.to_arrow(), as_json)
    else:
        sys.stdout.write(f"{plan}\n")


app.command()(maintain)
app.command()(serve)
app.command()(sql)
app.add_typer(token.app, name="token")
app.add_typer(audit.app, name="audit")


def main() -> None:
    """Run, and show errors as one line with their hints."""
    try:
        app()
    except BerglineError as error:
        show_error(error)
        sys.exit(1)
