"""`bergline append`: rows of files into a table."""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

from bergline.arguments import counted
from bergline.cli.arguments import BranchOption, TableArgument
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines
from bergline.cli.row_files import FileFormat, rows_of_files
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.write.fit import fit_to_schema
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.reports.units import render_size
from bergline.table.table import Table

app = typer.Typer()


@app.command()
@with_lake
def append(
    options: LakeOptions,
    table: TableArgument,
    files: Annotated[list[Path], typer.Argument(help="Parquet, CSV or JSON-lines files", metavar="FILE…")],
    *,
    branch: BranchOption = MAIN,
    form: Annotated[
        FileFormat | None, typer.Option("--format", help="What the files are. \\[default: by their suffixes]")
    ] = None,
    summary: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="What the snapshot's summary says as well; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Append the rows of files, all in one snapshot; columns are matched by name, missing ones are null."""
    said = settings_of(summary, "--summary")
    with options.open() as lake:
        loaded = lake.load_table(table)
        is_new = branch != MAIN and branch not in loaded.refs
        append_files(loaded, files, form, branch=branch, summary=said)
        snapshot = loaded.metadata.head(branch)
    print_appended(loaded, branch, snapshot, as_json=as_json)
    if is_new:
        notice(f"branch `{branch}` did not exist and was created")


def append_files(
    table: Table,
    files: list[Path],
    form: FileFormat | None,
    *,
    branch: str = MAIN,
    summary: dict[str, str] | None = None,
) -> None:
    """Append the rows of files in one commit; if one cannot be read, nothing is committed."""
    table.check_branch(branch)
    schema = arrow_schema(table.schema)
    rows = (
        fitting
        for batch in rows_of_files(files, form, schema)
        for fitting in fit_to_schema(batch, table.schema).to_batches()
    )
    table.append(pa.RecordBatchReader.from_batches(schema, rows), branch=branch, summary=summary)


def print_appended(table: Table, branch: str, snapshot: Snapshot | None, *, as_json: bool) -> None:
    """Print what a snapshot added."""
    added = {} if snapshot is None else snapshot.summary
    rows, files, size = (int(added.get(key, 0)) for key in ("added-records", "added-data-files", "added-files-size"))
    if not as_json:
        what = f"{counted(rows, 'row')} in {counted(files, 'data file')} of {render_size(size)}"
        at = "" if snapshot is None else f", snapshot {snapshot.snapshot_id}"
        print_lines([f"appended {what} to `{branch}` of `{table.name}`{at}"])
        return
    found: dict[str, Any] = {
        "table": str(table.name),
        "branch": branch,
        "snapshot_id": None if snapshot is None else str(snapshot.snapshot_id),
        "rows": rows,
        "data_files": files,
        "bytes": size,
    }
    print_json(found)
