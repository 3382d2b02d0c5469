"""`bergline explain-expiry`: what expiry would remove, and why."""

import sys
from typing import Annotated

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_rows
from bergline.sql.text.timestamps import in_zone, parse_moment

app = typer.Typer()


@app.command()
@with_lake
def explain_expiry(
    options: LakeOptions,
    table: Annotated[str, typer.Argument(help="Table, e.g. db.orders")],
    *,
    older_than: Annotated[
        str | None, typer.Option(help="As if expiry were called with this time, e.g. 2026-01-31T12:00Z.")
    ] = None,
    retain_last: Annotated[int | None, typer.Option(help="As if expiry were called with this number.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what expiry would remove and keep, by which rule, and what only one branch or tag retains."""
    moment = None if older_than is None else in_zone(parse_moment(older_than), "UTC")
    with options.open() as lake:
        plan = lake.load_table(table).plan_expiry(older_than=moment, retain_last=retain_last)
    if as_json:
        print_rows(plan.to_arrow(), as_json)
    else:
        sys.stdout.write(f"{plan}\n")
