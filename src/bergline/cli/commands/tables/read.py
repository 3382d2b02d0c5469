"""`bergline read`: rows of a table in any state."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from bergline.cli.arguments import AtOption, TableArgument, scan_arguments
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.row_writer import FirstRows, RowFormat, write_rows
from bergline.cli.output.rows import notice
from bergline.cli.row_files import file_format
from bergline.datafiles.file.arrow_schema import arrow_schema

app = typer.Typer()
_SHOWN_ROWS = 100


@app.command()
@with_lake
def read(
    options: LakeOptions,
    table: TableArgument,
    *,
    at: AtOption = None,
    where: Annotated[
        str | None, typer.Option(help="Only rows that match, e.g. \"region = 'eu' AND amount > 5\".")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="Only these columns, in this order, e.g. id,region.", metavar="NAME,…")
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="The most rows. \\[default: 100 in tables, else all]", min=0)
    ] = None,
    form: Annotated[
        RowFormat | None,
        typer.Option("--format", help="How rows are printed. \\[default: table, or by the suffix of --output]"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="A new file for the rows, instead of stdout.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as --format jsonl: an object in each line.")
    ] = False,
) -> None:
    """Print rows while they are read."""
    form = RowFormat.JSONL if as_json else _format_of(form, output)
    names = None if columns is None else [name.strip() for name in columns.split(",")]
    most = _SHOWN_ROWS if limit is None and form is RowFormat.TABLE else limit
    with options.open() as lake:
        loaded = lake.load_table(table)
        state: dict[str, Any] = scan_arguments(loaded, at)
        scan = loaded.scan(where, columns=names, **state)
        rows: Iterable[pa.RecordBatch] = scan.to_batches()
        if most is not None:
            rows = FirstRows(rows, most, look_further=limit is None)
        write_rows(arrow_schema(scan.schema), rows, form, output)
    if isinstance(rows, FirstRows) and limit is None and rows.has_more:
        notice(f"only the first {most:,} rows are shown: --limit takes more")


def _format_of(given: RowFormat | None, output: Path | None) -> RowFormat:
    """The given format, or else the one of the file's suffix."""
    if given is not None:
        return given
    return RowFormat.TABLE if output is None else RowFormat(file_format(output).value)
