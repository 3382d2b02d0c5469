"""`bergline events`: what happened through a server, in order."""

import itertools
import sys
from typing import Annotated, Any

import typer

from bergline.catalog.event_log import LoggedEvent, render_event_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines

app = typer.Typer()


@app.command()
@with_lake
def events(
    options: LakeOptions,
    *,
    after: Annotated[
        int | None, typer.Option(help="Only events after this position. \\[default: from the oldest kept]", min=0)
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="Only of this type, e.g. table.commit or ref.*; may be repeated.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Only events of this table, e.g. db.orders.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most; with --follow there is no end.", min=1)] = 100,
    follow: Annotated[bool, typer.Option(help="Wait for more, until interrupted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print events, oldest first: position, time, who, type and subject; with --json one per line."""
    with options.open() as lake:
        found = lake.events(after, types=kind or (), table=table, follow=follow)
        if follow:
            for event in found:
                _print(event, as_json)
                sys.stdout.flush()
            return
        last = None
        for event in itertools.islice(found, limit):
            _print(event, as_json)
            last = event.position
        if next(found, None) is not None:
            notice(f"there are more: --after {last} goes on")


def _print(event: LoggedEvent, as_json: bool) -> None:
    if as_json:
        print_json(_json(event))
        return
    what = event.data.get("ref") or event.data.get("rule") or event.data.get("maintenance")
    about = f"{event.type} {event.subject}" + (f" {what}" if what else "")
    print_lines([f"{event.position}  {render_event_time(event.at_ms)}  {event.principal}  {about}"])


def _json(event: LoggedEvent) -> dict[str, Any]:
    return {
        "position": event.position,
        "at": render_event_time(event.at_ms),
        "who": event.principal,
        "type": event.type,
        "subject": event.subject,
        "table_uuid": event.table_uuid,
        "data": event.data,
    }
