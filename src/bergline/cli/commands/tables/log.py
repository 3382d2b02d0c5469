"""`bergline log`: the snapshots of a table, or of all tables, newest first."""

import time
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from bergline.arguments import counted
from bergline.cli.arguments import complete_ref, complete_table
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.errors import exit_code_of_several, show_error
from bergline.cli.output.graph import draw_graph
from bergline.cli.output.rows import AsJson, notice, print_json, print_texts
from bergline.errors import BerglineError
from bergline.lake.lake import Lake
from bergline.reports.history import HistoryEntry, HistoryRef, TableHistory, table_history
from bergline.reports.units import render_age
from bergline.table.table import Table

app = typer.Typer()
_IDS = ("snapshot_id", "parent_id", "source_id")


@app.command()
@with_lake
def log(
    options: LakeOptions,
    table: Annotated[
        str | None,
        typer.Argument(help="Table, e.g. db.orders \\[default: all]", metavar="[TABLE]", autocompletion=complete_table),
    ] = None,
    *,
    graph: Annotated[bool, typer.Option("--graph", help="Draw branches as lanes.")] = False,
    ref: Annotated[
        str | None, typer.Option(help="Only the history of this branch or tag.", autocompletion=complete_ref)
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="The most snapshots that are shown.", min=1)] = 50,
    as_json: AsJson = False,
) -> None:
    """Show snapshots, newest first, with the branches and tags at them."""
    errors: dict[str, BerglineError] = {}
    with options.open() as lake:
        if table is None:
            histories = dict(_histories(lake, ref, errors))
        else:
            histories = {table: _history(lake.load_table(table), ref)}
    if as_json:
        newest = _newest(histories, limit)
        print_json([_json_entry(name, entry) for name, entry in newest])
    elif graph:
        for name, history in histories.items():
            if table is None:
                print_texts([Text(name, "bold")])
            print_texts(_graph_lines(history, limit))
    else:
        print_texts(_flat_line(entry, None if table else name) for name, entry in _newest(histories, limit))
    if not as_json:
        _notice_rest(histories, limit, each=graph)
    for unread, reason in errors.items():
        show_error(reason, "" if f"`{unread}`" in str(reason) else f"table `{unread}`: ")
    if errors:
        raise typer.Exit(exit_code_of_several(errors.values()))


def _histories(lake: Lake, ref: str | None, errors: dict[str, BerglineError]) -> Iterator[tuple[str, TableHistory]]:
    """The histories of all tables, or of those that have the ref; what cannot be read is an error."""
    for name in lake.list_tables():
        try:
            table = lake.load_table(name)
        except BerglineError as error:
            errors[name] = error
            continue
        if ref is None or ref in table.refs:
            yield name, _history(table, ref)


def _history(table: Table, ref: str | None) -> TableHistory:
    if ref is None:
        return table_history(table.metadata)
    kept = {s.snapshot_id for s in table.metadata.ancestors(table.metadata.ref(ref).snapshot_id)}
    metadata = table.metadata
    return table_history(
        msgspec.structs.replace(
            metadata,
            snapshots=tuple(s for s in metadata.snapshots if s.snapshot_id in kept),
            refs={name: r for name, r in metadata.refs.items() if r.snapshot_id in kept},
        )
    )


def _newest(histories: dict[str, TableHistory], limit: int) -> list[tuple[str, HistoryEntry]]:
    found = [(name, entry) for name, history in histories.items() for entry in history.entries]
    if len(histories) > 1:  # keep the order within each history
        found.sort(key=lambda item: -item[1].timestamp_ms)
    return found[:limit]


def _notice_rest(histories: dict[str, TableHistory], limit: int, *, each: bool) -> None:
    counts = [len(history.entries) for history in histories.values()]
    rest = sum(max(count - limit, 0) for count in counts) if each else max(sum(counts) - limit, 0)
    if rest:
        notice(f"{counted(rest, 'older snapshot')} not shown: --limit takes more")


def _graph_lines(history: TableHistory, limit: int) -> Iterator[Text]:
    for line, row in draw_graph(history):
        if row is None:
            yield Text(line)
        elif row < limit:
            yield Text.assemble(f"{line} ", _words(history.entries[row]))
        if row is not None and row >= limit - 1:
            return


def _flat_line(entry: HistoryEntry, table: str | None) -> Text:
    return _words(entry) if table is None else Text.assemble((table, "bold"), " ", _words(entry))


def _words(entry: HistoryEntry) -> Text:
    """A snapshot in one line."""
    line = Text.assemble((str(entry.snapshot_id), "yellow"))
    if entry.refs:
        line.append(" (")
        line.append(Text(", ").join(map(_ref_words, entry.refs)))
        line.append(")")
    line.append(f" {entry.operation}")
    for sign, number in (("+", entry.added_rows), ("-", entry.removed_rows)):
        if number:
            line.append(f" {sign}{counted(number, 'row')}", "green" if sign == "+" else "red")
    line.append(f", {render_age(entry.timestamp_ms, time.time_ns() // 1_000_000)}")
    line.append("".join(f", {text}" for text in (entry.author, entry.engine) if text))
    line.append("".join(f" [{flag}]" for flag in _flags(entry)), "dim")
    return line


def _ref_words(ref: HistoryRef) -> Text:
    return Text(ref.name, "bold green") if ref.is_branch else Text(f"tag: {ref.name}", "bold cyan")


def _flags(entry: HistoryEntry) -> Iterator[str]:
    if entry.is_staged:
        yield f"staged as {entry.wap_id}"
    elif not entry.on_ref:
        yield "on no ref"
    if entry.source_id is not None:
        yield f"replays {entry.source_id}"
    if entry.parent_expired:
        yield "parent expired"


def _json_entry(table: str, entry: HistoryEntry) -> dict[str, Any]:
    values = msgspec.to_builtins(entry)
    for key in _IDS:
        values[key] = None if values[key] is None else str(values[key])
    return {"table": table, "is_staged": entry.is_staged, **values}
