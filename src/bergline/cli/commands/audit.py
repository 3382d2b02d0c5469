"""`bergline audit`: who changed what through a server, read what, and was refused."""

import sys
import time
from typing import Annotated

import msgspec
import pyarrow as pa
import typer

from bergline.arguments import parse_duration
from bergline.catalog.identifiers import parse_table_name
from bergline.catalog.sql.records import AuditEntry
from bergline.cli.durations import parse_time_ms, render_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson, print_json, print_rows
from bergline.cli.records import open_records
from bergline.governance.audit.store import AuditKind, SqlAuditedRequests

app = typer.Typer(help="What was done and asked for through `bergline serve`.", no_args_is_help=True)

_COLUMNS = pa.schema(
    [(name, pa.string()) for name in ("at", "who", "operation", "resource", "agent", "metadata_location")]
)


@app.command("list")
@with_lake
def list_changes(
    options: LakeOptions,
    *,
    table: Annotated[str | None, typer.Option(help="Only changes of this table or view, e.g. db.orders.")] = None,
    who: Annotated[str | None, typer.Option(help="Only changes with the token of this name.")] = None,
    since: Annotated[
        str | None, typer.Option(help="Only changes since a time, e.g. 2026-01-31T12:00Z, or an age, e.g. 12h or 7d.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many rows at most.", min=1, max=1_000_000)] = 100,
    as_json: AsJson = False,
) -> None:
    """List changes, newest first: time, principal, operation, resource, client and metadata location."""
    since_ms = None if since is None else parse_time_ms(since, _now_ms())
    resources = () if table is None else _resources(table)
    with open_records(options) as records:
        found = records.newest_audit(limit, resources=resources, principal=who, since_ms=since_ms)
    print_rows(pa.Table.from_pylist([_row(entry) for entry in found], schema=_COLUMNS), as_json)


@app.command()
@with_lake
def export(
    options: LakeOptions,
    *,
    since: Annotated[
        str | None, typer.Option(help="Since a time, e.g. 2026-01-31T12:00Z, or an age, e.g. 12h or 7d.")
    ] = None,
    until: Annotated[str | None, typer.Option(help="Up to a time, e.g. 2026-02-01.")] = None,
    kind: Annotated[list[AuditKind] | None, typer.Option(help="Only lines of this kind; may be repeated.")] = None,
) -> None:
    """Print changes, reads, credentials, signatures, denials and failed logins as JSON lines, oldest first."""
    since_ms, until_ms = (None if text is None else parse_time_ms(text, _now_ms()) for text in (since, until))
    with open_records(options) as records:
        audited = SqlAuditedRequests(records.database, records.catalog_name)
        for line in audited.lines(since_ms, until_ms, kind or ()):
            sys.stdout.write(f"{msgspec.json.encode(line).decode()}\n")


@app.command()
@with_lake
def prune(
    options: LakeOptions,
    *,
    older_than: Annotated[str, typer.Option(help="Age from which rows are deleted, e.g. 90d, 12h or 30m.")],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Delete old rows permanently, and print how many."""
    before_ms = max(_now_ms() - 1000 * parse_duration(older_than), 0)
    with open_records(options) as records:
        confirm(f"delete the changes from before {render_time(before_ms)} from the audit log permanently", yes)
        removed = records.prune_audit(before_ms)
    if as_json:
        print_json({"deleted": removed})
    else:
        sys.stdout.write(f"{removed}\n")


def _resources(table: str) -> tuple[str, ...]:
    """A table or view as the server records it."""
    name = parse_table_name(table)
    return tuple(f"{kind}/{'.'.join(name.namespace)}/{name.name}" for kind in ("table", "view"))


def _row(entry: AuditEntry) -> dict[str, str | None]:
    return {
        "at": render_time(entry.at_ms),
        "who": entry.principal,
        "operation": entry.operation,
        "resource": entry.resource,
        "agent": entry.agent,
        "metadata_location": entry.metadata_location,
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
