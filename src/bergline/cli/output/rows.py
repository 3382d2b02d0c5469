"""The results of a command on stdout: a table for people, or JSON."""

import sys
from collections.abc import Collection, Iterable, Sequence
from typing import Annotated, Any, TypeAlias

import msgspec
import pyarrow as pa
import typer
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from bergline.cli.output.visible import visible

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
_PIPE_WIDTH = 100_000
_NEWLINE = "\n"


def print_rows(rows: pa.Table, as_json: bool) -> None:
    """Print rows; values are never truncated."""
    if as_json:
        print_json([_json_row(row) for row in rows.to_pylist()])
        return
    print_table(rows.column_names, [["" if v is None else _text(v) for v in row.values()] for row in rows.to_pylist()])


def print_json(value: Any) -> None:
    """Print one JSON document; snapshot ids, which exceed 2^53, must already be text."""
    sys.stdout.write(f"{msgspec.json.encode(value).decode()}\n")


def print_lines(lines: Iterable[str]) -> None:
    """Print lines of text."""
    sys.stdout.writelines(f"{visible(line, keep=_NEWLINE)}\n" for line in lines)


def print_texts(texts: Iterable[Text]) -> None:
    """Print lines in color, except to a pipe or if they contain hostile names; long ones are not wrapped."""
    console = Console(highlight=False, soft_wrap=True)
    for text in texts:
        safe = visible(text.plain)
        console.print(text if safe == text.plain else safe, markup=False)


def notice(text: str) -> None:
    """Print a message to stderr, after everything printed so far."""
    sys.stdout.flush()
    sys.stderr.write(f"{visible(text, keep=_NEWLINE)}\n")


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = (), *, header: bool = True
) -> None:
    """Print texts in columns, some of them right-aligned."""
    shown = RichTable(box=None, pad_edge=False, header_style="bold", show_header=header)
    for i, name in enumerate(columns):
        shown.add_column(Text(visible(name)), overflow="fold", justify="right" if i in right else "left")
    for row in rows:
        shown.add_row(*(Text(visible(cell)) for cell in row))
    # values are never truncated: a terminal folds long ones, a pipe gets whole lines
    Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH).print(shown)


def _json_row(row: dict[str, object]) -> dict[str, object]:
    """A row with snapshot ids as text: browsers round numbers above 2^53."""
    return {
        key: str(value)
        if isinstance(value, int) and key.endswith("_id")
        else dict(value)
        if isinstance(value, list)
        else value
        for key, value in row.items()
    }


def _text(value: object) -> str:
    return ", ".join(f"{k}={v}" for k, v in value) if isinstance(value, list) else str(value)
