"""`bergline refs`: the branches and tags of a table."""

import time
from collections.abc import Iterable, Mapping
from typing import Any

import typer

from bergline.arguments import counted
from bergline.catalog.protection.ref_protection import ProtectingRule
from bergline.cli.arguments import TableArgument
from bergline.cli.commands.references.rule import json_rule
from bergline.cli.opening import LakeOptions, with_lake
from bergline.cli.output.rows import AsJson, print_json, print_table
from bergline.format.metadata.refs import SnapshotRef
from bergline.reports.units import render_age, render_duration
from bergline.table.table import Table

app = typer.Typer()
_COLUMNS = ("name", "type", "snapshot_id", "age", "retention", "rules")


@app.command()
@with_lake
def refs(options: LakeOptions, table: TableArgument, *, as_json: AsJson = False) -> None:
    """List a table's branches and tags with the age of their snapshots, their retention and their rules."""
    with options.open() as lake:
        loaded = lake.load_table(table)
        print_refs(loaded, loaded.metadata.refs, as_json=as_json)


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


def own_snapshots(table: Table, name: str) -> int:
    """How many snapshots are in the history of no other ref."""
    metadata = table.metadata
    kept = {
        snapshot.snapshot_id
        for other, ref in metadata.refs.items()
        if other != name
        for snapshot in metadata.ancestors(ref.snapshot_id)
    }
    return sum(s.snapshot_id not in kept for s in metadata.ancestors(metadata.ref(name).snapshot_id))


def plan_drop(table: Table, name: str) -> str:
    """What dropping a ref means."""
    ref = table.refs[name]
    age = _age(table, ref, time.time_ns() // 1_000_000)
    at = f"snapshot {ref.snapshot_id}{f', {age}' if age else ''}"
    own = own_snapshots(table, name)
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
