"""`bergline refs`: the branches and tags of a table; and what `bergline branch` and `bergline tag` have in common."""

import time
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

import typer

from bergline.arguments import counted
from bergline.catalog.protection.ref_protection import ProtectingRule
from bergline.cli.arguments import TableArgument
from bergline.cli.commands.references.rule import json_rule
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.plans import confirm
from bergline.cli.output.rows import AsJson, print_json, print_lines, print_table
from bergline.format.metadata.refs import MAIN, SnapshotRef
from bergline.reports.units import render_age, render_duration
from bergline.table.expiry.pinned import own_snapshots
from bergline.table.table import Table

app = typer.Typer()
IfExists: TypeAlias = Annotated[bool, typer.Option("--if-exists", help="One that is missing is no error.")]
RefAge: TypeAlias = Annotated[
    str | None, typer.Option("--max-ref-age", help="Age from which expiry removes the ref itself, e.g. 90d.")
]
Cleared: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--clear", help="A setting to return to the table's, e.g. max-ref-age; may be repeated."),
]
_COLUMNS = ("name", "type", "snapshot_id", "age", "retention", "rules")


@app.command()
@with_lake
def refs(options: LakeOptions, table: TableArgument, *, as_json: AsJson = False) -> None:
    """List a table's branches and tags with the age of their snapshots, their retention and their rules."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        print_refs(loaded, loaded.metadata.refs, as_json=as_json)


def list_refs(options: LakeOptions, table: str, kind: Literal["branch", "tag"], *, as_json: bool) -> None:
    """List the branches or the tags of a table."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        print_refs(loaded, loaded.refs.branches if kind == "branch" else loaded.refs.tags, as_json=as_json)


def drop_ref(
    options: LakeOptions,
    place: tuple[str, str],
    kind: Literal["branch", "tag"],
    *,
    if_exists: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Drop a branch or tag of a table, after showing what only it has."""
    table, ref = place
    with options.open() as lake:
        loaded = lake.load_table(table)
        is_there = ref in loaded.refs
        if is_there and ref != MAIN and loaded.refs[ref].snapshot_ref_type == kind:
            confirm(plan_drop(loaded, ref), yes)
        (loaded.refs.drop_branch if kind == "branch" else loaded.refs.drop_tag)(ref, if_exists=if_exists)
    if as_json:
        print_json({"table": str(loaded.name), "name": ref, "dropped": is_there})
    elif is_there:
        print_lines([f"dropped {kind} `{ref}`"])


def add_rename(app: typer.Typer, kind: Literal["branch", "tag"], argument: Any) -> None:
    """Add the command `rename` of branches or of tags."""

    @app.command(help=f"Rename a {kind}.")
    @with_lake
    def rename(
        options: LakeOptions,
        table: TableArgument,
        ref: Annotated[str, argument],
        new: Annotated[str, typer.Argument(help="Its new name", metavar="NEW")],
        *,
        as_json: AsJson = False,
    ) -> None:
        with options.open() as lake:
            loaded = lake.load_table(table)
            (loaded.refs.rename_branch if kind == "branch" else loaded.refs.rename_tag)(ref, to=new)
            print_changed_ref(loaded, new, as_json=as_json)


def set_retention(
    options: LakeOptions,
    place: tuple[str, str],
    wanted: dict[str, int | None],
    clear: list[str] | None,
    *,
    as_json: bool,
) -> None:
    """Set a ref's retention as given by options, and print the ref."""
    table, name = place
    cleared = [_setting_name(text) for text in clear or ()]
    with options.open() as lake:
        loaded = lake.load_table(table)
        if cleared or any(value is not None for value in wanted.values()):
            loaded.refs.set_retention(name, **wanted, clear=cleared)
        print_refs(loaded, {name: loaded.refs[name]}, as_json=as_json)


def print_changed_ref(table: Table, name: str, *, as_json: bool) -> None:
    """Print where a ref is."""
    ref = table.refs[name]
    if as_json:
        print_refs(table, {name: ref}, as_json=True)
    else:
        print_lines([f"{ref.snapshot_ref_type} `{name}` is at snapshot {ref.snapshot_id}"])


def print_refs(table: Table, shown: Mapping[str, SnapshotRef], *, as_json: bool) -> None:
    """Print some refs of a table."""
    protection = table.refs.protection()
    if as_json:
        print_json([json_ref(table, name, ref, protection[name]) for name, ref in shown.items()])
        return
    now = time.time_ns() // 1_000_000
    print_table(
        _COLUMNS,
        [
            [
                name,
                str(ref.snapshot_ref_type),
                str(ref.snapshot_id),
                _age(table, ref, now),
                _retention(ref),
                render_rules(protection[name]),
            ]
            for name, ref in shown.items()
        ],
        right=[2],
    )


def plan_drop(table: Table, name: str) -> str:
    """The plan for dropping a ref: what would become unreachable."""
    ref = table.refs[name]
    age = _age(table, ref, time.time_ns() // 1_000_000)
    at = f"snapshot {ref.snapshot_id}{f', {age}' if age else ''}"
    own = len(own_snapshots(table.metadata, name))
    lost = f"{counted(own, 'snapshot')} will be on no other ref: expiry removes them" if own else "no snapshot is lost"
    return f"drop {ref.snapshot_ref_type} `{name}` of `{table.name}`, at {at}; {lost}"


def render_rules(rules: Iterable[ProtectingRule]) -> str:
    """The rules that protect a ref, in one line."""
    return ", ".join(f"{rule.called} ({rule.text})" for rule in rules)


def json_ref(table: Table, name: str, ref: SnapshotRef, rules: Iterable[ProtectingRule]) -> dict[str, Any]:
    """A ref as `--json` shows it."""
    snapshot = table.metadata.snapshots_by_id.get(ref.snapshot_id)
    return {
        "name": name,
        "type": str(ref.snapshot_ref_type),
        "snapshot_id": str(ref.snapshot_id),
        "timestamp_ms": None if snapshot is None else snapshot.timestamp_ms,
        "min_snapshots_to_keep": ref.min_snapshots_to_keep,
        "max_snapshot_age_ms": ref.max_snapshot_age_ms,
        "max_ref_age_ms": ref.max_ref_age_ms,
        "rules": [json_rule(rule) for rule in rules],
    }


def _age(table: Table, ref: SnapshotRef, now_ms: int) -> str:
    snapshot = table.metadata.snapshots_by_id.get(ref.snapshot_id)
    return "" if snapshot is None else render_age(snapshot.timestamp_ms, now_ms)


def _retention(ref: SnapshotRef) -> str:
    parts = []
    if ref.min_snapshots_to_keep is not None:
        parts.append(f"at least {counted(ref.min_snapshots_to_keep, 'snapshot')}")
    if ref.max_snapshot_age_ms is not None:
        parts.append(f"snapshots for {render_duration(ref.max_snapshot_age_ms)}")
    if ref.max_ref_age_ms is not None:
        parts.append(f"the ref for {render_duration(ref.max_ref_age_ms)}")
    return ", ".join(parts)


def _setting_name(text: str) -> str:
    """A setting by the name of its option."""
    name = text.replace("-", "_")
    return f"{name}_ms" if name.endswith("_age") else name
