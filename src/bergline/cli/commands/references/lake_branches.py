"""What `bergline branch` does with branches of the whole lake, where no table is named."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from bergline.arguments import counted
from bergline.cli.opening import LakeOptions
from bergline.cli.output.plans import confirm
from bergline.cli.output.rows import print_json, print_lines, print_table
from bergline.errors import InvalidInputError, NotFoundError
from bergline.governance.lake_branches.model import LakeBranch
from bergline.lake.lake import Lake
from bergline.lake.ref_report import RefReport
from bergline.reports.units import render_age, render_size


def create_lake_branch(
    options: LakeOptions, name: str, tables: Sequence[str], expires: str | None, *, if_not_exists: bool, as_json: bool
) -> None:
    """Create a branch of the lake."""
    with options.open() as lake:
        _check_no_table(lake, name)
        found = next((one for one in lake.branches.list() if one.name == name), None) if if_not_exists else None
        made = found or lake.branches.create(name, tables=tables, expires=expires)
    if as_json:
        print_json(json_lake_branch(made))
    else:
        of = f"of {', '.join(made.tables)}" if made.tables else "of all tables"
        print_lines([f"branch `{name}` of the lake, {of}{_expiry(made)}"])


def list_lake_branches(options: LakeOptions, *, as_json: bool) -> None:
    """List the branches of the lake."""
    with options.open() as lake:
        found = lake.branches.overviews()
    if as_json:
        more = [{"joined": list(one.tables), "pinned_bytes": one.pinned_bytes} for one in found]
        print_json([json_lake_branch(one.branch) | values for one, values in zip(found, more, strict=True)])
        return
    now = time.time_ns() // 1_000_000
    rows = [
        [
            one.branch.name,
            one.branch.owner,
            render_age(one.branch.created_ms, now),
            "" if one.branch.expires_ms is None else render_age(one.branch.expires_ms, now),
            ", ".join(one.branch.tables) or "all",
            f"{len(one.tables):,}",
            render_size(one.pinned_bytes),
        ]
        for one in found
    ]
    print_table(["name", "owner", "created", "expires", "of", "tables", "pinned"], rows, right={5, 6})


def diff_lake_branch(options: LakeOptions, name: str, *, as_json: bool) -> None:
    """Show how the tables of a branch of the lake differ from `main`."""
    with options.open() as lake:
        _check_no_table(lake, name)
        found = list(lake.branches.diff(name))
    if as_json:
        print_json([{field: getattr(one, field) for field in one.__struct_fields__} for one in found])
        return
    rows = [
        [
            one.table,
            f"{one.ahead:,}",
            f"{one.behind:,}",
            f"{one.added_rows:,}",
            f"{one.removed_rows:,}",
            render_size(one.pinned_bytes),
        ]
        for one in found
    ]
    columns = ["table", "ahead", "behind", "added rows", "removed rows", "pinned"]
    print_table(columns, rows, right={1, 2, 3, 4, 5})


def publish_lake_branch(options: LakeOptions, name: str, settings: Mapping[str, Any], *, as_json: bool) -> None:
    """Publish a branch of the lake."""
    with options.open() as lake:
        report = lake.branches.publish(name, **settings)
    _print_report(name, report, as_json=as_json)


def drop_lake_branch(options: LakeOptions, name: str, *, if_exists: bool, yes: bool, as_json: bool) -> None:
    """Drop a branch of the lake, after showing what only it has."""
    with options.open() as lake:
        _check_no_table(lake, name)
        try:
            lake.branches.get(name)
        except NotFoundError:
            if not if_exists:
                raise
            if as_json:
                _print_report(name, RefReport(f"dropped `{name}`", name, ()), as_json=True)
            return
        found = list(lake.branches.diff(name))
        own, pinned = sum(one.ahead for one in found), render_size(sum(one.pinned_bytes for one in found))
        lost = f"{counted(own, 'snapshot')} will go with expiry, {pinned}" if own else "no snapshot is lost"
        confirm(f"drop branch `{name}` of the lake, in {counted(len(found), 'table')}; {lost}", yes)
        report = lake.branches.drop(name)
    _print_report(name, report, as_json=as_json)


def json_lake_branch(branch: LakeBranch) -> dict[str, Any]:
    """A branch of the lake as `--json` shows it."""
    return {
        "name": branch.name,
        "owner": branch.owner,
        "created_ms": branch.created_ms,
        "expires_ms": branch.expires_ms,
        "tables": list(branch.tables),
    }


def _print_report(name: str, report: RefReport, *, as_json: bool) -> None:
    if not as_json:
        print_lines([str(report) if report.tables else f"{report.did}, which no table has joined"])
        return
    tables = [
        {
            "table": one.table,
            "what": one.what,
            "previous_snapshot_id": None if one.previous is None else str(one.previous),
            "snapshot_id": None if one.head is None else str(one.head),
            "replayed": {str(old): str(new) for old, new in one.replayed.items()},
        }
        for one in report.tables
    ]
    print_json({"name": name, "ref": report.ref, "tables": tables})


def _expiry(branch: LakeBranch) -> str:
    return "" if branch.expires_ms is None else f", expires {render_age(branch.expires_ms, branch.created_ms)}"


def _check_no_table(lake: Lake, name: str) -> None:
    """Refuse the name of a table, behind which the branch was forgotten."""
    if "." in name and "/" not in name and name == name.strip(".") and lake.table_exists(name):
        raise InvalidInputError(
            f"expected the name of a branch behind table `{name}`, found none",
            hints=["a branch of the whole lake is named alone, and cannot be called like a table here"],
        )
