"""The commands of `bergline table` that change something."""

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from bergline.arguments import counted
from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import TableName, parse_table_name
from bergline.catalog.pointer.named_pointers import dropped_others
from bergline.cli.arguments import TableArgument
from bergline.cli.commands.tables.append import append_files, print_appended
from bergline.cli.opening import LakeOptions, settings_of, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.rows import AsJson, print_json, print_lines, print_table
from bergline.cli.row_files import FileFormat, schema_of_files
from bergline.errors import AlreadyExistsError, InvalidInputError, NotFoundError, StorageError
from bergline.format.metadata.refs import MAIN
from bergline.lake.lake import Lake
from bergline.reports.dropped_table import LastState, find_dropped, read_dropped
from bergline.reports.found_table import find_table
from bergline.reports.totals import totals_of
from bergline.reports.units import render_age, render_size
from bergline.table.table import Table


@with_lake
def create(
    options: LakeOptions,
    table: TableArgument,
    files: Annotated[list[Path], typer.Argument(help="Parquet, CSV or JSON-lines files", metavar="FILE…")],
    *,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(metavar="TERM", help="A column or transform, e.g. region or day(ts); may be repeated."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A property of the table; may be repeated.")
    ] = None,
    location: Annotated[str | None, typer.Option(help="Where its files go. \\[default: as the catalog says]")] = None,
    form: Annotated[
        FileFormat | None, typer.Option("--format", help="What the files are. \\[default: by their suffixes]")
    ] = None,
    only_columns: Annotated[
        bool, typer.Option("--only-columns", help="Take the columns of the files and not their rows.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Create a table with the columns and rows of files; it appears with all of them or not at all."""
    wanted = settings_of(settings, "--set")
    schema = schema_of_files(files, form)
    with options.open() as lake:
        with lake.stage_table(
            table, schema, partition_by=partition_by or (), properties=wanted, location=location
        ) as staged:
            if not only_columns:
                append_files(staged, files, form)
        created = lake.load_table(table)
    if as_json or not only_columns:
        print_appended(created, MAIN, created.current_snapshot, as_json=as_json)
    else:
        print_lines([f"created table `{table}` with {counted(len(schema), 'column')}"])


@with_lake
def register(
    options: LakeOptions,
    table: TableArgument,
    metadata_location: Annotated[str, typer.Argument(help="Its newest metadata file", metavar="METADATA_FILE")],
    *,
    as_json: AsJson = False,
) -> None:
    """Register a table that exists already by its metadata file."""
    with options.open() as lake:
        _print_registered(lake.register_table(table, metadata_location), as_json=as_json)


@with_lake
def rename(
    options: LakeOptions,
    table: TableArgument,
    new: Annotated[str, typer.Argument(help="Its new name, e.g. db.old_orders", metavar="NEW")],
    *,
    as_json: AsJson = False,
) -> None:
    """Rename a table; its files stay where they are."""
    with options.open() as lake:
        lake.rename_table(table, new)
    if as_json:
        print_json({"table": new, "previous": table})
    else:
        print_lines([f"renamed table `{table}` to `{new}`"])


@with_lake
def properties(
    options: LakeOptions,
    table: TableArgument,
    *,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="A property to set; may be repeated.")
    ] = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="KEY", help="A property to remove; may be repeated.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a table's properties, after setting and removing some."""
    wanted = settings_of(settings, "--set")
    with options.open() as lake:
        loaded = lake.load_table(table)
        if wanted or unset:
            loaded.set_properties(wanted, remove=unset or ())
        found = loaded.properties
    if as_json:
        print_json(found)
    else:
        print_table(["property", "value"], [[key, found[key]] for key in sorted(found)])


@with_lake
def drop(
    options: LakeOptions,
    table: TableArgument,
    *,
    purge: Annotated[bool, typer.Option("--purge", help="Delete its files as well; this cannot be undone.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Drop a table; without --purge its files stay, and `undrop` restores it."""
    with options.open() as lake:
        found = find_table(lake, parse_table_name(table))
        is_kept = lake.keeps_dropped_tables
        confirm(f"drop table `{table}`{_contents(found.table)}; {_fate(purge=purge, is_kept=is_kept)}", yes)
        if purge:
            result = lake.purge_table(table)
            outcome: dict[str, Any] = {"deleted_files": result.deleted_files, "failed_files": list(result.failed)}
            said = f"dropped table `{table}` and deleted {counted(result.deleted_files, 'file')}"
            if is_kept:
                said = f"dropped table `{table}`; it is in the server's trash, and its files are deleted later"
        else:
            location = lake.catalog.pointer(found.name)
            lake.drop_table(table)
            outcome = {"metadata_location": location}
            said = f"dropped table `{table}`; its last metadata file is {location}"
    if as_json:
        print_json({"table": table, **outcome})
    else:
        print_lines([said])
    if purge and result.failed:
        raise StorageError(f"cannot delete {counted(len(result.failed), 'file')}: {', '.join(result.failed[:10])}")


@with_lake
def undrop(
    options: LakeOptions,
    table: TableArgument,
    *,
    location: Annotated[
        str | None, typer.Option(help="The table's directory. \\[default: where the catalog puts the table]")
    ] = None,
    metadata: Annotated[
        str | None, typer.Option(help="The metadata file to register.", metavar="METADATA_FILE")
    ] = None,
    to: Annotated[str | None, typer.Option(help="Another name for it, if its own is taken.", metavar="NAME")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Restore a table from the server's trash, or one that was dropped without its files, in its last state."""
    if location is not None and metadata is not None:
        raise InvalidInputError("expected one of --location and --metadata, found both")
    with options.open() as lake:
        name = parse_table_name(table)
        new = name if to is None else parse_table_name(to)
        if lake.table_exists(new):
            raise AlreadyExistsError(
                f"table `{new}` exists: it is not dropped",
                kind="table",
                name=str(new),
                hints=["`--to NAME` brings back one that was dropped before it, under another name"],
            )
        kept = lake.dropped_tables() if location is None and metadata is None else []
        if any(one.name == name for one in kept):
            _print_registered(lake.undrop_table(name, new), as_json=as_json)
            return
        found = _find_dropped(lake, name, location, kept) if metadata is None else read_dropped(lake, metadata)
        if found.missing_files:
            raise StorageError(
                f"cannot bring `{table}` back from {found.metadata_location}: files that it needs are gone: "
                f"{', '.join(found.missing_files)}"
            )
        age = render_age(found.metadata.last_updated_ms, time.time_ns() // 1_000_000)
        holds = totals_of(found.metadata.current_snapshot)
        confirm(
            f"register table `{new}` from {found.metadata_location}, "
            f"last changed {age}, with {counted(holds.rows or 0, 'row')}",
            yes,
        )
        _print_registered(lake.register_table(new, found.metadata_location), as_json=as_json)


def _find_dropped(lake: Lake, name: TableName, location: str | None, kept: list[DroppedTable]) -> LastState:
    try:
        return find_dropped(lake, name, location=location)
    except NotFoundError as error:
        if error.kind != "table":
            raise
        elsewhere = "`--location DIRECTORY` looks where the table lies if that is elsewhere"
        raise NotFoundError(
            f"{error.message}{dropped_others(kept)}",
            kind=error.kind,
            name=str(name),
            known={str(one.name) for one in kept},
            hints=[f"{elsewhere}, `--metadata FILE` registers a metadata file of it"],
        ) from error


def _print_registered(table: Table, *, as_json: bool) -> None:
    rows = totals_of(table.current_snapshot).rows
    if as_json:
        print_json({"table": str(table.name), "metadata_location": table.metadata_location, "rows": rows})
    else:
        print_lines([f"registered table `{table.name}` with {counted(rows or 0, 'row')}"])


def _contents(table: Table | None) -> str:
    if table is None:
        return ", whose metadata cannot be read"
    totals = totals_of(table.current_snapshot)
    snapshots = counted(len(table.metadata.snapshots), "snapshot")
    return f" with {counted(totals.rows or 0, 'row')}, {render_size(totals.bytes or 0)}, {snapshots}"


def _fate(*, purge: bool, is_kept: bool) -> str:
    if is_kept:
        fate = "then its files are deleted" if purge else "its files stay"
        return f"the server keeps it in its trash for a time, {fate}: `bergline table undrop` restores it until then"
    return "delete all its files: nothing brings them back" if purge else "its files stay"
