"""`bergline restore`: restore a catalog from a backup, in one transaction, and check its pointers."""

import time
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bergline.arguments import counted
from bergline.catalog.protection.caller import current_caller
from bergline.catalog.sql.backup.backup_file import BackupSummary
from bergline.catalog.sql.backup.contents import read_summary
from bergline.catalog.sql.backup.pointers import count_pointers, stored_pointers
from bergline.catalog.sql.backup.restore import RESTORED, CatalogRestore, check_empty, count_rows, restore_catalog
from bergline.catalog.sql.governance_layout import FORMER_REVIEWS, GRANTS, OWNERS, ROLE_MEMBERS
from bergline.catalog.sql.layout import join_namespace
from bergline.catalog.sql.records import AuditEntry
from bergline.catalog.sql.records_layout import TOKENS
from bergline.catalog.sql.security_layout import REVIEWS
from bergline.cli.durations import render_time
from bergline.cli.opening import ANY_CATALOG, LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.progress import ShowProgress, progress_line
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines
from bergline.cli.records import open_store
from bergline.errors import InvalidInputError
from bergline.io.schemes import SchemeFileIO
from bergline.io.store_properties import check_store_properties
from bergline.reports.check.pointers import PointerFinding, PointerReport, check_pointers

app = typer.Typer()
_DAMAGED = 1
_ACCESS = (TOKENS, GRANTS, ROLE_MEMBERS, OWNERS, FORMER_REVIEWS, REVIEWS)


@app.command()
@with_lake
def restore(
    options: LakeOptions,
    file: Annotated[Path, typer.Argument(help="A backup by `bergline backup`", metavar="FILE")],
    *,
    check_only: Annotated[
        bool, typer.Option("--check-only", help="Check the file and its pointers; restore nothing.")
    ] = False,
    newest: Annotated[
        bool,
        typer.Option(
            "--newest",
            help="Bring tables that moved on after the backup forward to the newest metadata file that descends from "
            "the backup's, by the log in it.",
        ),
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Remove what the catalog has now, in the same transaction.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Restore a catalog into an empty one, in one transaction; then read the metadata file of every pointer.

    A missing catalog is created. The exit code is 1 if the file of a pointer is missing or cannot be read.
    """
    if check_only and (newest or replace):
        raise InvalidInputError("expected --check-only alone, found --newest or --replace with it")
    with progress_line(in_bytes=True) as show:
        summary = read_summary(str(file), show)
    report = _check(options, file, summary) if check_only or newest else None
    if not check_only:
        taken = _newer(report) if report is not None else {}
        plan = CatalogRestore(str(file), summary, "", replaces=replace, newer_pointers=taken)
        _restore(options, plan, yes=yes)
        if any(summary.rows.get(table.name) for table in _ACCESS):
            notice(
                "tokens revoked, and grants and approvals withdrawn after the backup are valid again: look at "
                "`bergline token list` and `bergline grants`"
            )
    if report is None:
        report = _check(options, file, summary)
    if as_json:
        print_json(_to_dict(summary, report, restored=not check_only, newest=newest))
    else:
        print_lines([*_said(summary, report, restored=not check_only, newest=newest), str(report)])
    if any(one.newest_of_table is None or not newest for one in report.broken):
        raise typer.Exit(_DAMAGED)


def _restore(options: LakeOptions, plan: CatalogRestore, *, yes: bool) -> None:
    header = plan.summary.header
    with open_store(options, create=ANY_CATALOG) as store:
        named = msgspec.structs.replace(plan, catalog_name=store.catalog_name)
        there = count_rows(store.database, store.catalog_name)
        if not plan.replaces:
            check_empty(there, store.catalog_name, store.database.name)
        elif there:
            now_there = f"catalog `{store.catalog_name}` of {store.database.name} ({_rows(there)})"
            restored = f"catalog `{header.catalog}` as of {render_time(header.made_ms)} ({_rows(plan.summary.rows)})"
            confirm(f"remove {now_there}, and restore {restored} in its place", yes)
        now = time.time_ns() // 1_000_000
        entry = AuditEntry(now, current_caller().name, RESTORED, f"catalog/{store.catalog_name}")
        with progress_line(in_bytes=True) as show:
            restore_catalog(store.database, named, entry, show)


def _check(options: LakeOptions, file: Path, summary: BackupSummary) -> PointerReport:
    io = SchemeFileIO(properties=check_store_properties(options.settings().properties))
    with progress_line() as show:
        return check_pointers(io, stored_pointers(str(file)), count_pointers(summary), _phase(show))


def _phase(show: ShowProgress | None) -> ShowProgress:
    return show or (lambda _what, _done, _total: None)


def _newer(report: PointerReport) -> dict[tuple[str, str], str]:
    found = [*report.broken, *report.moved_on]
    return {
        (join_namespace(one.pointer.name.namespace), one.pointer.name.name): one.newest_of_table
        for one in found
        if one.newest_of_table is not None
    }


def _said(summary: BackupSummary, report: PointerReport, *, restored: bool, newest: bool) -> list[str]:
    header = summary.header
    verb = "restored" if restored else "the backup is intact:"
    lines = [f"{verb} catalog `{header.catalog}` as of {render_time(header.made_ms)}: {_rows(summary.rows)}"]
    if newest:
        lines.append(f"{counted(len(_newer(report)), 'table')} brought forward to the newest metadata file")
    return lines


def _rows(rows: dict[str, int]) -> str:
    return ", ".join(f"{count:,} in {table}" for table, count in rows.items() if count) or "no rows"


def _to_dict(summary: BackupSummary, report: PointerReport, *, restored: bool, newest: bool) -> dict[str, Any]:
    return {
        "catalog": summary.header.catalog,
        "made": render_time(summary.header.made_ms),
        "restored": restored,
        "rows": summary.rows,
        "checked": report.checked,
        "broken": [_finding(one, taken=newest) for one in report.broken],
        "moved_on": [_finding(one, taken=newest) for one in report.moved_on],
    }


def _finding(found: PointerFinding, *, taken: bool) -> dict[str, Any]:
    return {
        "kind": found.pointer.kind,
        "name": str(found.pointer.name),
        "metadata_location": found.pointer.metadata_location,
        "problem": found.problem,
        "newest": found.newest,
        "doubtful": list(found.doubtful),
        "taken": taken and found.newest_of_table is not None,
    }
