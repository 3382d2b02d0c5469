"""`bergline backup`: a catalog as it is at one moment, in one file."""

import time
from pathlib import Path
from typing import Annotated

import typer

from bergline import __version__
from bergline.arguments import counted
from bergline.catalog.sql.backup.back_up import back_up_catalog
from bergline.catalog.sql.backup.pointers import count_pointers
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.progress import progress_line
from bergline.cli.output.rows import AsJson, print_json, print_lines
from bergline.cli.records import open_store
from bergline.reports.units import render_size

app = typer.Typer()


@app.command()
@with_lake
def backup(
    options: LakeOptions,
    file: Annotated[Path, typer.Argument(help="The new file, e.g. lake-2026-11-17.backup", metavar="FILE")],
    *,
    as_json: AsJson = False,
) -> None:
    """Write tables, views, namespaces, the trash, tokens (as hashes), audit log and rules to a file; change nothing.

    Servers and jobs may go on: the file has the state of one moment. The files of tables are not in it.
    """
    with open_store(options) as store, progress_line() as show:
        summary = back_up_catalog(
            store.database,
            store.catalog_name,
            str(file),
            made_ms=time.time_ns() // 1_000_000,
            made_by=f"bergline {__version__}",
            progress=show,
        )
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "catalog": summary.header.catalog, "rows": summary.rows})
    else:
        pointers = counted(count_pointers(summary), "pointer")
        print_lines([f"backed up catalog `{summary.header.catalog}` with {pointers} to {file}, {render_size(size)}"])
