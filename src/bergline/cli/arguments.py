"""Arguments that many commands take: tables, refs and states of a table, with completion from the lake."""

import datetime as dt
import re
from collections.abc import Callable, Iterable
from typing import Annotated, TypeAlias

import typer

from bergline.cli.opening import LakeOptions
from bergline.errors import BerglineError
from bergline.lake.lake import Lake
from bergline.sql.text.timestamps import in_zone, parse_moment
from bergline.table.scans.version import SnapshotChoice
from bergline.table.table import Table

_NUMBER = re.compile(r"[0-9]+")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ].*)?")
_MOST_COMPLETIONS = 200


def complete_table(ctx: typer.Context, incomplete: str) -> list[str]:
    """Tables whose names begin like the typed text; none if the lake cannot be opened."""
    return _completions(ctx, incomplete, lambda lake: lake.list_tables())


def complete_view(ctx: typer.Context, incomplete: str) -> list[str]:
    """Views whose names begin like the typed text."""
    return _completions(ctx, incomplete, lambda lake: lake.list_views())


def complete_namespace(ctx: typer.Context, incomplete: str) -> list[str]:
    """Namespaces whose names begin like the typed text."""
    return _completions(ctx, incomplete, lambda lake: lake.list_namespaces())


def complete_ref(ctx: typer.Context, incomplete: str) -> list[str]:
    """Branches and tags of the table that was typed before, whose names begin like the typed text."""
    # while the value of an option is completed, arguments are not parsed yet
    table = ctx.params.get("table") or next(iter(ctx.args), None)
    return _completions(ctx, incomplete, lambda lake: lake.load_table(table).refs) if table else []


TableArgument: TypeAlias = Annotated[
    str, typer.Argument(help="Table, e.g. db.orders", metavar="TABLE", autocompletion=complete_table)
]
NamespaceArgument: TypeAlias = Annotated[
    str, typer.Argument(help="Namespace, e.g. db or db.raw", metavar="NAMESPACE", autocompletion=complete_namespace)
]
AtOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="STATE",
        help="A branch, a tag, a snapshot id, or a time like 2026-01-31T12:00Z \\[default: main]",
        autocompletion=complete_ref,
    ),
]
BranchOption: TypeAlias = Annotated[
    str, typer.Option("--branch", help="The branch to write to.", metavar="BRANCH", autocompletion=complete_ref)
]


def parse_state(table: Table, text: str) -> SnapshotChoice:
    """A state of a table: a ref of this name, else a snapshot id or a time, in UTC unless it has a zone."""
    if text in table.refs:
        return text
    if _NUMBER.fullmatch(text):
        return int(text)
    return in_zone(parse_moment(text), "UTC") if _TIME.fullmatch(text) else text


def scan_arguments(table: Table, at: str | None) -> dict[str, str | int | dt.datetime]:
    """A state as `scan` and `inspect` take it."""
    match None if at is None else parse_state(table, at):
        case None:
            return {}
        case str(ref):
            return {"ref": ref}
        case int(snapshot_id):
            return {"snapshot_id": snapshot_id}
        case moment:
            return {"as_of": moment}


def _completions(ctx: typer.Context, incomplete: str, find: Callable[[Lake], Iterable[str]]) -> list[str]:
    """What a command's lake has for an unfinished word; errors are dropped, since completion cannot show them."""
    given = {name: ctx.params.get(name) for name in LakeOptions.__struct_fields__}
    try:
        with LakeOptions(**given).open() as lake:
            return [name for name in find(lake) if name.startswith(incomplete)][:_MOST_COMPLETIONS]
    except BerglineError:
        return []
