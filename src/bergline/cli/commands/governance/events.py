"""`bergline events`: what happened through a server, in order."""

import itertools
import sys
from typing import Annotated, Any

import typer

from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines
from bergline.governance.events.model import MOST_EVENTS, LoggedEvent, render_event_time

app = typer.Typer()


@app.command()
@with_lake
def events(
    options: LakeOptions,
    *,
    after: Annotated[
        int | None, typer.Option(help="The events after this position. \\[default: the newest]", min=0)
    ] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--type", help="Only of this type, e.g. table.commit or ref.*; may be repeated.")
    ] = None,
    table: Annotated[str | None, typer.Option(help="Only events of this table, e.g. db.orders.")] = None,
    limit: Annotated[int, typer.Option(help="How many at most; with --follow, how many before new ones.", min=1)] = 100,
    follow: Annotated[bool, typer.Option(help="Wait for more, until interrupted.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print events, oldest first: position, time, who, type and subject; with --json one per line."""
    with options.open() as lake:
        wanted: dict[str, Any] = {"types": kind or (), "table": table}
        if follow:
            newest = limit if after is None else None
            for event in lake.events(after, newest=newest, follow=True, **wanted):
                _print(event, as_json)
                sys.stdout.flush()
        elif after is None:
            newest = limit if limit >= MOST_EVENTS else limit + 1  # reading one more tells whether there are more
            found = list(lake.events(newest=newest, **wanted))
            for event in found[-limit:]:
                _print(event, as_json)
            if len(found) > limit:
                notice("there are older ones: --after 0 reads from there on")
        else:
            rest = lake.events(after, **wanted)
            for event in itertools.islice(rest, limit):
                _print(event, as_json)
                after = event.position
            if next(rest, None) is not None:
                notice(f"there are more: continue with --after {after}")


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
