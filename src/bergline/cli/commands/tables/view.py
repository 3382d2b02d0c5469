"""`bergline view`: the views of a lake, and those in the trash."""

import time
from typing import Annotated, TypeAlias

import msgspec
import typer

from bergline.arguments import counted
from bergline.cli.arguments import complete_namespace, complete_view
from bergline.cli.durations import render_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines, print_table
from bergline.reports.units import render_age

app = typer.Typer(help="The views of a lake.", no_args_is_help=True)

ViewArgument: TypeAlias = Annotated[
    str, typer.Argument(help="View, e.g. db.recent_orders", metavar="VIEW", autocompletion=complete_view)
]


@app.command("list")
@with_lake
def list_views(
    options: LakeOptions,
    *,
    namespace: Annotated[
        str | None, typer.Option(help="Only views in this namespace.", autocompletion=complete_namespace)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List views by name."""
    with options.open() as lake:
        found = lake.list_views(namespace)
    if as_json:
        print_json(found)
    else:
        print_lines(found)


@app.command()
@with_lake
def show(options: LakeOptions, view: ViewArgument, *, as_json: AsJson = False) -> None:
    """Show the query of a view in each of its dialects."""
    with options.open() as lake:
        loaded = lake.load_view(view)
        queries = {dialect: loaded.sql(dialect) for dialect in loaded.dialects}
    if as_json:
        print_json({"view": str(loaded.name), "metadata_location": loaded.metadata_location, "queries": queries})
    else:
        print_table(["dialect", "query"], [[dialect, query] for dialect, query in queries.items()])


@app.command()
@with_lake
def drop(options: LakeOptions, view: ViewArgument, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Drop a view; a server with a trash keeps it for a time, and `undrop` restores it."""
    with options.open() as lake:
        location = lake.load_view(view).metadata_location
        fate = "; the server keeps it in its trash for a time" if lake.keeps_dropped_tables else ""
        confirm(f"drop view `{view}`{fate}", yes)
        lake.drop_view(view)
    if as_json:
        print_json({"view": view, "metadata_location": location})
    else:
        print_lines([f"dropped view `{view}`; its last metadata file is {location}"])


@app.command()
@with_lake
def dropped(
    options: LakeOptions,
    *,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 100,
    as_json: AsJson = False,
) -> None:
    """List the views in the trash of `bergline serve --drop-retention`, newest first."""
    with options.open() as lake:
        found = lake.dropped_views(limit + 1)
        if len(found) > limit:
            notice(f"there are more than {counted(limit, 'view')} in the trash: --limit shows more of them")
            del found[limit:]
        if not found and not lake.keeps_dropped_tables:
            notice("no trash here: a server keeps dropped views with `bergline serve --drop-retention 7d`")
    if as_json:
        print_json([msgspec.structs.asdict(view) | {"name": str(view.name)} for view in found])
        return
    now = time.time_ns() // 1_000_000
    print_table(
        ["view", "dropped", "by", "leaves the trash"],
        [[str(v.name), render_age(v.dropped_ms, now), v.principal, render_time(v.keep_until_ms) or ""] for v in found],
    )


@app.command()
@with_lake
def undrop(
    options: LakeOptions,
    view: ViewArgument,
    *,
    to: Annotated[str | None, typer.Option(help="Another name for it, if its own is taken.", metavar="NAME")] = None,
    as_json: AsJson = False,
) -> None:
    """Restore a view from the server's trash."""
    with options.open() as lake:
        back = lake.undrop_view(view, to)
    if as_json:
        print_json({"view": str(back.name), "metadata_location": back.metadata_location})
    else:
        print_lines([f"view `{back.name}` is back"])
