"""`bergline expire`: remove old snapshots, and delete the files that only they needed."""

from typing import Annotated

import typer

from bergline.arguments import counted
from bergline.cli.arguments import TableArgument
from bergline.cli.durations import parse_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.progress import progress_line
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines
from bergline.errors import InvalidInputError
from bergline.reports.units import render_size
from bergline.table.expiry.expire import ExpiryResult

app = typer.Typer()


@app.command()
@with_lake
def expire(
    options: LakeOptions,
    table: TableArgument,
    *,
    older_than: Annotated[
        str | None,
        typer.Option(help="Only snapshots from before a time, e.g. 2026-01-31T12:00Z, or older than 7d, 12h or 30m."),
    ] = None,
    retain_last: Annotated[
        int | None, typer.Option(help="How many snapshots each branch keeps in any case.", min=1)
    ] = None,
    snapshot_ids: Annotated[
        list[str] | None, typer.Option("--snapshot-id", help="This snapshot too, of any age; may be repeated.")
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what would be removed and why, and change nothing.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Remove snapshots that no branch or tag retains, and delete the files that only they needed."""
    moment, chosen = parse_time(older_than), [_snapshot_id(text) for text in snapshot_ids or ()]
    with options.open() as lake:
        loaded = lake.load_table(table)
        planned = loaded.plan_expiry(older_than=moment, retain_last=retain_last, snapshot_ids=chosen)
        removed = ExpiryResult(planned.removed_snapshots, planned.removed_refs, deleted_bytes=planned.deleted.bytes)
        if plan:
            _print(table, removed, planned.deleted.files, str(planned), planned=True, as_json=as_json)
            return
        if not (planned.removed_snapshots or planned.removed_refs):
            _print(table, ExpiryResult(), 0, f"{table}: nothing to expire", as_json=as_json)
            return
        confirm(str(planned), yes)
        with progress_line() as show:
            done = loaded.expire(
                older_than=moment,
                retain_last=retain_last,
                snapshot_ids=chosen,
                progress=None if show is None else lambda deleted, of: show("files deleted", deleted, of),
            )
    files = _files(done)
    text = f"{table}: removed {counted(len(done.removed_snapshots), 'snapshot')}, deleted {counted(files, 'file')}"
    _print(table, done, files, f"{text} of {render_size(done.deleted_bytes)}", as_json=as_json)
    for location in done.failed:
        notice(f"could not be deleted, but nothing needs it: {location}")
    if done.failed:
        raise typer.Exit(1)


def _snapshot_id(text: str) -> int:
    if not text.isdecimal():
        raise InvalidInputError(f"expected the id of a snapshot, found `{text}`")
    return int(text)


def _files(done: ExpiryResult) -> int:
    names = [name for name in done.__struct_fields__ if name.startswith("deleted_") and name != "deleted_bytes"]
    return sum(getattr(done, name) for name in names)


def _print(table: str, done: ExpiryResult, files: int, text: str, *, as_json: bool, planned: bool = False) -> None:
    if not as_json:
        print_lines([text])
        return
    print_json(
        {
            "table": table,
            "planned": planned,
            "removed_snapshots": [str(snapshot) for snapshot in done.removed_snapshots],
            "removed_refs": list(done.removed_refs),
            "deleted_files": files,
            "deleted_bytes": done.deleted_bytes,
            "failed": list(done.failed),
        }
    )
