"""`bergline table`: what tables a lake has, and what is in them."""

import time
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import typer

from bergline.arguments import counted
from bergline.catalog.catalog import DroppedTable
from bergline.catalog.identifiers import parse_namespace, parse_table_name
from bergline.cli.arguments import AtOption, TableArgument, complete_namespace, parse_state, scan_arguments
from bergline.cli.commands.references.refs import json_ref, render_rules
from bergline.cli.commands.tables.table_changes import create, drop, properties, register, rename, undrop
from bergline.cli.durations import render_time
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.problems import end_with_problems, json_problem
from bergline.cli.output.row_writer import texts
from bergline.cli.output.rows import AsJson, notice, print_json, print_rows, print_table
from bergline.errors import BerglineError
from bergline.format.manifest.manifest import FileContent
from bergline.format.metadata.refs import MAIN
from bergline.reports.files import FileCounts, FilesReport, files_report
from bergline.reports.found_table import FoundTable, find_table
from bergline.reports.lake_overview import TableLine, lake_overview
from bergline.reports.problem import Problem, problem_of
from bergline.reports.schemas import columns_of
from bergline.reports.table_overview import TableOverview, table_overview
from bergline.reports.units import render_age, render_size
from bergline.table.inspection.metadata_tables import METADATA_TABLES
from bergline.table.scans.version import ReadVersion, resolve_version, snapshot_at
from bergline.table.table import Table

app = typer.Typer(help="The tables of a lake.", no_args_is_help=True)
_ALL = 1_000_000_000
_SHOWN_FILES = 100
_CONTENTS = {FileContent.DATA: "data", FileContent.POSITION_DELETES: "position deletes"}


@app.command("list")
@with_lake
def list_tables(
    options: LakeOptions,
    *,
    namespace: Annotated[
        str | None, typer.Option(help="Only tables in this namespace.", autocompletion=complete_namespace)
    ] = None,
    search: Annotated[str, typer.Option(help="Only tables whose names contain all these words.")] = "",
    as_json: AsJson = False,
) -> None:
    """List tables with rows, size, refs and their last change; an error for each that cannot be read."""
    with options.open() as lake:
        below = None if namespace is None else parse_namespace(namespace)
        found = lake_overview(lake, search=search, namespace=below, limit=_ALL)
    if as_json:
        print_json([_json_line(line) for line in found.tables])
    else:
        now = _now_ms()
        columns = ["table", "rows", "size", "branches", "tags", "snapshots", "changed"]
        print_table(columns, [_cells(line, now) for line in found.tables], right=range(1, 6))
    end_with_problems([*found.problems, *(line.problem for line in found.tables if line.problem)])


@app.command()
@with_lake
def dropped(
    options: LakeOptions,
    *,
    limit: Annotated[int, typer.Option(help="How many at most.", min=1)] = 100,
    as_json: AsJson = False,
) -> None:
    """List the tables in the trash of `bergline serve --drop-retention`, newest first."""
    with options.open() as lake:
        found = lake.dropped_tables(limit + 1)
        if len(found) > limit:
            notice(f"there are more than {counted(limit, 'table')} in the trash: --limit shows more of them")
            del found[limit:]
        if not found and not lake.keeps_dropped_tables:
            notice("no trash here: a server keeps dropped tables with `bergline serve --drop-retention 7d`")
    if as_json:
        print_json([_json_dropped(table) for table in found])
        return
    now = _now_ms()
    print_table(
        ["table", "dropped", "by", "files", "problem"],
        [
            [
                str(table.name),
                render_age(table.dropped_ms, now),
                table.principal,
                _files_after(table),
                table.problem or "",
            ]
            for table in found
        ],
    )


def _json_dropped(table: DroppedTable) -> dict[str, Any]:
    return msgspec.structs.asdict(table) | {"name": str(table.name)}


def _files_after(table: DroppedTable) -> str:
    """What happens to the table's files."""
    if table.purge_begun:
        return "are being deleted"
    until = render_time(table.keep_until_ms)
    return f"deleted after {until}" if table.purges_files else f"stay; it leaves the trash after {until}"


@app.command()
@with_lake
def show(options: LakeOptions, table: TableArgument, *, as_json: AsJson = False) -> None:
    """Show a table at a glance; if it is damaged, what can still be shown."""
    with options.open() as lake:
        found = find_table(lake, parse_table_name(table))
        if found.table is None:
            _print_broken(found, as_json=as_json)
            return
        overview = table_overview(found.table)
        if as_json:
            print_json({"table": str(found.name), **_json_overview(found.table, overview)})
        else:
            print_table(["", ""], _overview_lines(found.table, overview), header=False)
    end_with_problems(overview.problems)


@app.command()
@with_lake
def schema(options: LakeOptions, table: TableArgument, *, at: AtOption = None, as_json: AsJson = False) -> None:
    """Show the columns of a table, as a state of it is read."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        columns = columns_of(_version(loaded, at).schema)
    if as_json:
        print_json(columns)
        return
    print_table(
        ["id", "column", "type", "required", "default", "comment"],
        [
            [
                str(c.field_id),
                c.name + (" (identifier)" if c.is_identifier else ""),
                c.type,
                "required" if c.required else "",
                c.write_default or "",
                c.doc or "",
            ]
            for c in columns
        ],
        right=[0],
    )


@app.command()
@with_lake
def files(
    options: LakeOptions,
    table: TableArgument,
    *,
    at: AtOption = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="The most files. \\[default: 100, all with --json]", min=1)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the data and delete files of a state; if some cannot be read, what the others add up to."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        state: dict[str, Any] = scan_arguments(loaded, at)
        try:
            found = loaded.inspect("files", **state)
        except BerglineError as error:
            report = files_report(loaded, _version(loaded, at))
            _print_partitions(report, as_json=as_json)
            end_with_problems(report.problems or [problem_of(f"the files of `{table}`", error)])
            return
    most = limit or (found.num_rows if as_json else _SHOWN_FILES)
    shown = found.slice(0, most)
    if as_json:
        print_rows(shown.select([c for c in _FILE_COLUMNS if c in shown.column_names]), as_json=True)
        return
    print_table(["file", "content", "rows", "size", "partition"], _file_cells(shown), right=[2, 3])
    if found.num_rows > most:
        notice(f"{most:,} of {found.num_rows:,} files are shown: --limit takes more")


@app.command()
@with_lake
def partitions(options: LakeOptions, table: TableArgument, *, at: AtOption = None, as_json: AsJson = False) -> None:
    """List partitions with rows, files, sizes and the deletes that wait for compaction."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        report = files_report(loaded, _version(loaded, at))
    _print_partitions(report, as_json=as_json)
    end_with_problems(report.problems)


@app.command()
@with_lake
def inspect(
    options: LakeOptions,
    table: TableArgument,
    name: Annotated[
        str,
        typer.Argument(
            help="A metadata table: snapshots, history, files, manifests, …",
            metavar="METADATA_TABLE",
            autocompletion=lambda incomplete: [n for n in METADATA_TABLES if n.startswith(incomplete)],
        ),
    ],
    *,
    at: AtOption = None,
    as_json: AsJson = False,
) -> None:
    """Show a metadata table, such as snapshots, history, manifests or all_files."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        state: dict[str, Any] = scan_arguments(loaded, at)
        print_rows(loaded.inspect(name, **state), as_json)


for _command in (create, register, rename, properties, drop, undrop):
    app.command()(_command)

_FILE_COLUMNS = (
    "content",
    "file_path",
    "file_format",
    "spec_id",
    "partition",
    "record_count",
    "file_size_in_bytes",
    "sort_order_id",
)


def _version(table: Table, at: str | None) -> ReadVersion:
    state = None if at is None else parse_state(table, at)
    if state is None or isinstance(state, str):
        return resolve_version(table.metadata, ref=state or MAIN)
    return resolve_version(table.metadata, snapshot_id=snapshot_at(table.metadata, state))


def _json_line(line: TableLine) -> dict[str, Any]:
    return {
        "table": str(line.name),
        **msgspec.structs.asdict(line.totals),
        "branches": line.branches,
        "tags": line.tags,
        "snapshots": line.snapshots,
        "format_version": line.format_version,
        "last_updated_ms": line.last_updated_ms,
        "problem": None if line.problem is None else line.problem.message,
    }


def _cells(line: TableLine, now_ms: int) -> list[str]:
    if line.problem is not None:
        return [str(line.name), *[""] * 5, "cannot be read"]
    changed = "" if line.last_updated_ms is None else render_age(line.last_updated_ms, now_ms)
    counts = (line.branches, line.tags, line.snapshots)
    return [
        str(line.name),
        _count(line.totals.rows),
        _size(line.totals.bytes),
        *(f"{count:,}" for count in counts),
        changed,
    ]


def _print_broken(found: FoundTable, *, as_json: bool) -> None:
    """What the catalog says about a table whose metadata cannot be read."""
    problem = found.problem or Problem(f"table `{found.name}`", "it cannot be read")
    if as_json:
        print_json(
            {
                "table": str(found.name),
                "metadata_location": found.metadata_location,
                "problems": [json_problem(problem)],
            }
        )
    else:
        location = found.metadata_location or "unknown"
        print_table(["", ""], [["table", str(found.name)], ["metadata", location]], header=False)
    end_with_problems([problem])


def _json_overview(table: Table, overview: TableOverview) -> dict[str, Any]:
    metadata = overview.metadata
    return {
        "metadata_location": overview.metadata_location,
        "location": metadata.location,
        "uuid": metadata.table_uuid,
        "format_version": metadata.format_version,
        "last_updated_ms": metadata.last_updated_ms,
        **msgspec.structs.asdict(overview.totals),
        "snapshots": len(metadata.snapshots),
        "partitioned_by": list(overview.partitioned_by),
        "sorted_by": list(overview.sorted_by),
        "columns": columns_of(metadata.schema),
        "refs": [json_ref(table, line.name, line.ref, line.rules) for line in overview.refs],
        "properties": metadata.properties,
        "problems": [json_problem(problem) for problem in overview.problems],
    }


def _overview_lines(table: Table, overview: TableOverview) -> list[list[str]]:
    metadata, totals, now = overview.metadata, overview.totals, _now_ms()
    refs = ", ".join(f"{line.name} ({render_age(line.timestamp_ms, now)})" for line in overview.refs)
    columns = [f"{f.name} {f.type}{' required' if f.required else ''}" for f in metadata.schema.fields] or ["none"]
    deletes = f", {totals.delete_files:,} of deletes" if totals.delete_files else ""
    return [
        ["table", str(table.name)],
        ["location", metadata.location],
        ["metadata", overview.metadata_location],
        ["format version", str(metadata.format_version)],
        ["changed", render_age(metadata.last_updated_ms, now)],
        ["rows", f"{_count(totals.rows)} in {_count(totals.data_files)} data files{deletes}"],
        ["size", _size(totals.bytes)],
        ["partitioned by", ", ".join(overview.partitioned_by) or "nothing"],
        ["sorted by", ", ".join(overview.sorted_by) or "nothing"],
        *(["" if number else "columns", column] for number, column in enumerate(columns)),
        ["snapshots", f"{len(metadata.snapshots):,}"],
        ["refs", refs or "none"],
        *([f"rules of {line.name}", render_rules(line.rules)] for line in overview.refs if line.rules),
    ]


def _print_partitions(report: FilesReport, *, as_json: bool) -> None:
    if as_json:
        print_json(
            [
                {"partition": p.partition, "spec_id": p.spec_id, **msgspec.structs.asdict(p.counts)}
                for p in report.partitions
            ]
        )
        return
    rows = [_partition_cells(p.partition or "all rows", p.counts) for p in report.partitions]
    if len(rows) > 1:
        rows.append(_partition_cells("total", report.counts))
    columns = ["partition", "rows", "data files", "size", "small files", "delete files"]
    print_table(columns, rows, right=range(1, 6))


def _partition_cells(name: str, counts: FileCounts) -> list[str]:
    return [
        name,
        f"{counts.rows:,}",
        f"{counts.data_files:,}",
        render_size(counts.data_bytes),
        f"{counts.small_files:,}",
        f"{counts.delete_files:,}",
    ]


def _file_cells(found: pa.Table) -> list[Sequence[str]]:
    has_partitions = "partition" in found.column_names
    rows = found.select(["file_path", "content", "record_count", "file_size_in_bytes"]).to_pylist()
    parts = (
        [t for chunk in found.column("partition").chunks for t in texts(chunk)] if has_partitions else [""] * len(rows)
    )
    return [
        [
            row["file_path"],
            _CONTENTS.get(row["content"], "equality deletes"),
            f"{row['record_count']:,}",
            render_size(row["file_size_in_bytes"]),
            part or "",
        ]
        for row, part in zip(rows, parts, strict=True)
    ]


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _size(number: int | None) -> str:
    return "?" if number is None else render_size(number)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
