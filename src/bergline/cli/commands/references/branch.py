"""`bergline branch`: create, move, merge and compare the branches of a table, or those of the whole lake."""

from collections.abc import Mapping
from typing import Annotated, Any, TypeAlias

import typer

from bergline.cli.arguments import AtOption, TableArgument, complete_ref, complete_table, parse_state
from bergline.cli.commands.references.lake_branches import (
    create_lake_branch,
    diff_lake_branch,
    drop_lake_branch,
    list_lake_branches,
    publish_lake_branch,
)
from bergline.cli.commands.references.refs import (
    Cleared,
    IfExists,
    RefAge,
    add_rename,
    drop_ref,
    list_refs,
    print_changed_ref,
    set_retention,
)
from bergline.cli.durations import parse_milliseconds
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import Yes, confirm
from bergline.cli.output.problems import end_with_problems, json_problem
from bergline.cli.output.rows import AsJson, notice, print_json, print_lines, print_table
from bergline.errors import InvalidInputError
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.reports.difference import RefDifference, ref_difference
from bergline.table.references.diff import RefDiff
from bergline.table.references.merge import MergeResult
from bergline.table.table import Table

app = typer.Typer(help="The branches of a table, or of the whole lake.", no_args_is_help=True)

BRANCH = typer.Argument(help="Name of the branch", metavar="BRANCH", autocompletion=complete_ref)
BranchArgument: TypeAlias = Annotated[str, BRANCH]
PLACE = typer.Argument(
    help="Table, e.g. db.orders; left out for a branch of the whole lake",
    metavar="[TABLE]",
    autocompletion=complete_table,
)
BRANCH_OR_NONE = typer.Argument(help="Name of the branch", metavar="BRANCH", autocompletion=complete_ref)
PlaceArgument: TypeAlias = Annotated[str, PLACE]
BranchIfAny: TypeAlias = Annotated[str | None, BRANCH_OR_NONE]
MinSnapshots: TypeAlias = Annotated[
    int | None, typer.Option("--min-snapshots-to-keep", help="Snapshots that expiry keeps on the branch.", min=1)
]
SnapshotAge: TypeAlias = Annotated[
    str | None, typer.Option("--max-snapshot-age", help="Age up to which expiry keeps its snapshots, e.g. 7d or 12h.")
]
Squash: TypeAlias = Annotated[
    bool, typer.Option("--squash", help="Replay the difference as one snapshot, even where history has expired.")
]


@app.command()
@with_lake
def create(
    options: LakeOptions,
    table: PlaceArgument,
    branch: BranchIfAny = None,
    *,
    at: AtOption = None,
    min_snapshots_to_keep: MinSnapshots = None,
    max_snapshot_age: SnapshotAge = None,
    max_ref_age: RefAge = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="Leave an existing branch as it is.")] = False,
    tables: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Of the lake: only tables such as 'sales.*'; may be repeated."),
    ] = None,
    expires: Annotated[str | None, typer.Option(help="Of the lake: the age at which it is dropped, e.g. 7d.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a branch of a table, or of the whole lake, which costs nothing until a table is written."""
    of_tables = {
        "--at": at,
        "--min-snapshots-to-keep": min_snapshots_to_keep,
        "--max-snapshot-age": max_snapshot_age,
        "--max-ref-age": max_ref_age,
    }
    if branch is None:
        _check_unused(of_tables, "a branch of a table")
        create_lake_branch(options, table, tables or (), expires, if_not_exists=if_not_exists, as_json=as_json)
        return
    _check_unused({"--tables": tables, "--expires": expires}, "a branch of the whole lake")
    snapshot_age, ref_age = parse_milliseconds(max_snapshot_age), parse_milliseconds(max_ref_age)
    with options.open() as lake:
        loaded = lake.load_table(table)
        loaded.refs.create_branch(
            branch,
            at=None if at is None else parse_state(loaded, at),
            min_snapshots_to_keep=min_snapshots_to_keep,
            max_snapshot_age_ms=snapshot_age,
            max_ref_age_ms=ref_age,
            if_not_exists=if_not_exists,
        )
        print_changed_ref(loaded, branch, as_json=as_json)


@app.command("list")
@with_lake
def list_branches(
    options: LakeOptions,
    table: Annotated[
        str | None,
        typer.Argument(
            help="Table; left out for the branches of the whole lake", metavar="TABLE", autocompletion=complete_table
        ),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """List the branches of a table with their retention, or those of the lake with their tables and what they pin."""
    if table is None:
        list_lake_branches(options, as_json=as_json)
    else:
        list_refs(options, table, "branch", as_json=as_json)


@app.command()
@with_lake
def drop(
    options: LakeOptions,
    table: PlaceArgument,
    branch: BranchIfAny = None,
    *,
    if_exists: IfExists = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Drop a branch of a table, or one of the lake in all its tables; its snapshots stay until expiry."""
    if branch is None:
        drop_lake_branch(options, table, if_exists=if_exists, yes=yes, as_json=as_json)
    else:
        drop_ref(options, (table, branch), "branch", if_exists=if_exists, yes=yes, as_json=as_json)


@app.command()
@with_lake
def publish(
    options: LakeOptions,
    branch: BranchArgument,
    *,
    into: Annotated[str, typer.Option(help="The branch to publish it into.", metavar="BRANCH")] = MAIN,
    merge: Annotated[bool, typer.Option("--merge", help="Replay its snapshots where the two have diverged.")] = False,
    squash: Squash = False,
    keep_branch: Annotated[bool, typer.Option("--keep-branch", help="Leave the branch where it is.")] = False,
    tag: Annotated[str | None, typer.Option(help="A tag to create of what is published.")] = None,
    as_json: AsJson = False,
) -> None:
    """Publish a branch of the lake: all its tables in one commit. Conflicts end with code 3."""
    settings = {"into": into, "merge": merge, "squash": squash, "keep_branch": keep_branch, "tag": tag}
    publish_lake_branch(options, branch, settings, as_json=as_json)


add_rename(app, "branch", BRANCH)


@app.command()
@with_lake
def retention(
    options: LakeOptions,
    table: TableArgument,
    branch: BranchArgument,
    *,
    min_snapshots_to_keep: MinSnapshots = None,
    max_snapshot_age: SnapshotAge = None,
    max_ref_age: RefAge = None,
    clear: Cleared = None,
    as_json: AsJson = False,
) -> None:
    """Set what expiry keeps of a branch; without options, show it."""
    set_retention(
        options,
        (table, branch),
        {
            "min_snapshots_to_keep": min_snapshots_to_keep,
            "max_snapshot_age_ms": parse_milliseconds(max_snapshot_age),
            "max_ref_age_ms": parse_milliseconds(max_ref_age),
        },
        clear,
        as_json=as_json,
    )


@app.command("fast-forward")
@with_lake
def fast_forward(
    options: LakeOptions,
    table: TableArgument,
    branch: BranchArgument,
    *,
    to: Annotated[str, typer.Option(help="A branch or tag that descends from it.", autocompletion=complete_ref)],
    as_json: AsJson = False,
) -> None:
    """Move a branch forward to a ref that descends from it."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        print_move(loaded, branch, loaded.refs.fast_forward(branch, to=to), as_json=as_json)


@app.command()
@with_lake
def merge(
    options: LakeOptions,
    table: TableArgument,
    branch: BranchArgument,
    *,
    into: Annotated[str, typer.Option(help="The branch to merge into.", autocompletion=complete_ref)] = MAIN,
    squash: Squash = False,
    as_json: AsJson = False,
) -> None:
    """Merge a branch into another: move it forward, or replay the snapshots on top of it. Conflicts end with code 3."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        print_move(loaded, into, loaded.refs.merge(branch, into=into, squash=squash), as_json=as_json)


@app.command()
@with_lake
def rebase(
    options: LakeOptions,
    table: TableArgument,
    branch: BranchArgument,
    *,
    onto: Annotated[str, typer.Option(help="The ref to build on.", autocompletion=complete_ref)] = MAIN,
    squash: Squash = False,
    as_json: AsJson = False,
) -> None:
    """Move a branch on top of another ref: its own snapshots are replayed there."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        print_move(loaded, branch, loaded.refs.rebase(branch, onto=onto, squash=squash), as_json=as_json)


@app.command()
@with_lake
def rollback(
    options: LakeOptions,
    table: TableArgument,
    branch: BranchArgument = MAIN,
    *,
    to: Annotated[
        str,
        typer.Option(
            metavar="STATE", help="A ref, a snapshot id or a time of its history.", autocompletion=complete_ref
        ),
    ],
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Move a branch back to a snapshot of its history."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        state = parse_state(loaded, to)
        now = loaded.metadata.ref(branch).snapshot_id
        confirm(f"move branch `{branch}` of `{loaded.name}` back from snapshot {now} to {to}", yes)
        print_move(loaded, branch, loaded.refs.rollback(branch, to=state), as_json=as_json)


@app.command()
@with_lake
def diff(
    options: LakeOptions,
    table: Annotated[
        str,
        typer.Argument(
            help="Table with two refs; or alone, a branch of the lake", metavar="TABLE", autocompletion=complete_table
        ),
    ],
    from_ref: Annotated[
        str | None, typer.Argument(metavar="FROM", help="A branch or tag", autocompletion=complete_ref)
    ] = None,
    to_ref: Annotated[str | None, typer.Argument(metavar="TO", help="Another one", autocompletion=complete_ref)] = None,
    *,
    rows: Annotated[int, typer.Option("--rows", help="How many rows that differ are shown as well.", min=0)] = 0,
    as_json: AsJson = False,
) -> None:
    """Show how a branch or tag differs from another; or each table of a branch of the lake from `main`."""
    if from_ref is None:
        _check_unused({"--rows": rows or None}, "two refs of a table")
        diff_lake_branch(options, table, as_json=as_json)
        return
    if to_ref is None:
        raise InvalidInputError(f"expected two refs of table `{table}`, found `{from_ref}` alone")
    with options.open() as lake:
        found = ref_difference(lake.load_table(table), from_ref, to_ref, sample=rows)
    if as_json:
        print_json(json_difference(found))
    else:
        print_difference(found)
    if found.is_sample_refused:
        notice(f"no rows are shown: {found.compared_rows:,} would have to be compared")
    end_with_problems(found.problems)


def _check_unused(given: Mapping[str, object], what: str) -> None:
    """Refuse options that are for something else."""
    used = [option for option, value in given.items() if value is not None]
    if used:
        raise InvalidInputError(f"expected {used[0]} only with {what}")


def print_move(table: Table, ref: str, result: MergeResult, *, as_json: bool) -> None:
    """Print where a ref was and is."""
    if not as_json:
        print_lines([f"`{ref}` of `{table.name}`: {result}"])
        return
    print_json(
        {
            "table": str(table.name),
            "name": ref,
            "previous_snapshot_id": None if result.previous is None else str(result.previous),
            "snapshot_id": str(result.head),
            "replayed": {str(old): str(new) for old, new in result.replayed.items()},
        }
    )


def print_difference(found: RefDifference) -> None:
    """Print how two refs differ, with rows if there is a sample of them."""
    if found.diff is not None:
        print_lines([str(found.diff)])
    if found.sample is not None:
        shown = [["NULL" if value is None else value for value in row] for row in found.sample.rows]
        print_table(found.sample.columns, shown)


def json_difference(found: RefDifference) -> dict[str, Any]:
    """How two refs differ, with snapshot ids as text."""
    sample = found.sample
    return {
        "from": found.from_ref,
        "to": found.to_ref,
        **({} if found.diff is None else _json_diff(found.diff)),
        "rows": None if sample is None else [dict(zip(sample.columns, row, strict=True)) for row in sample.rows],
        "problems": [json_problem(problem) for problem in found.problems],
    }


def _json_diff(found: RefDiff) -> dict[str, Any]:
    return {
        "common_ancestor_id": None if found.ancestor is None else str(found.ancestor.snapshot_id),
        "only_from": [_json_snapshot(s) for s in found.only_from],
        "only_to": [_json_snapshot(s) for s in found.only_to],
        "already_merged": sorted(str(i) for i in found.already_merged),
        "partitions": list(found.partitions),
        "schema_changes": list(found.schema_changes),
    }


def _json_snapshot(snapshot: Snapshot) -> dict[str, Any]:
    return {
        "snapshot_id": str(snapshot.snapshot_id),
        "timestamp_ms": snapshot.timestamp_ms,
        "operation": snapshot.operation,
        "summary": snapshot.summary,
    }
