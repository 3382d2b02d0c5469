"""A pull request as the command line and the console show it: lines for people, and values for JSON."""

from collections.abc import Iterator
from typing import Any

from bergline.arguments import counted
from bergline.governance.pull_requests.model import (
    ProposedChange,
    PullRequestEntry,
    PullRequestOverview,
    PullRequestRecord,
    Standing,
    TableHead,
)


def record_values(record: PullRequestRecord) -> dict[str, Any]:
    """The record, with snapshot ids as text."""
    return {
        "number": record.number,
        "title": record.title,
        "state": record.state,
        "author": record.author,
        "branch": record.branch,
        "target": record.target,
        "tables": [str(table.name) for table in record.tables],
        "description": record.description,
        "created_ms": record.created_ms,
        "updated_ms": record.updated_ms,
        "version": record.version,
        "method": record.method,
        "published": _heads(record.published),
    }


def overview_values(overview: PullRequestOverview) -> dict[str, Any]:
    """What publishing would do, with snapshot ids as text."""
    return record_values(overview.record) | {
        "changes": [_change(table) for table in overview.tables],
        "approved_by": list(overview.approved_by),
        "uncounted": overview.uncounted,
        "stale_approvals": list(overview.stale_approvals),
        "obstacles": list(overview.obstacles),
        "history": [_entry(entry) for entry in overview.history],
    }


def describe_record(record: PullRequestRecord) -> str:
    """One line."""
    tables = ", ".join(f"`{table.name}`" for table in record.tables)
    return f"pull request {record.number} ({record.state}): `{record.branch}` into `{record.target}` of {tables}"


def describe_change(change: ProposedChange) -> str:
    """What publishing would do to one table, in a line."""
    if change.standing is Standing.GONE:
        return change.problem or "gone"
    parts = [change.standing.value]
    if change.standing is not Standing.UP_TO_DATE:
        parts.append(counted(change.snapshots, "snapshot"))
        parts.append(f"+{counted(change.added_rows, 'row')} in {counted(change.added_files, 'file')}")
        if change.removed_files:
            parts.append(f"-{counted(change.removed_rows, 'row')} in {counted(change.removed_files, 'file')}")
    if change.behind:
        parts.append(f"{counted(change.behind, 'snapshot')} behind")
    return ", ".join([*parts, *change.schema_changes])


def describe_reviews(change: ProposedChange) -> Iterator[str]:
    """The checks of a table's head, a line each."""
    for check in change.checks:
        yield f"check `{check.name}` {check.state}" + (f": {check.detail}" if check.detail else "")


def describe_approvals(overview: PullRequestOverview) -> list[str]:
    """Who approves the heads; if an approval does not count, with the reason."""
    why = overview.uncounted
    return [f"{name} (does not count: {why[name]})" if name in why else name for name in overview.approved_by]


def describe_entry(entry: PullRequestEntry) -> str:
    """One entry of the history, in a line."""
    return f"{entry.principal} {entry.what}" + (f": {entry.text}" if entry.text else "")


def _heads(heads: tuple[TableHead, ...]) -> dict[str, str]:
    return {str(head.name): str(head.snapshot_id) for head in heads}


def _change(change: ProposedChange) -> dict[str, Any]:
    return {
        "table": str(change.name),
        "standing": change.standing,
        "head": None if change.head is None else str(change.head),
        "target_head": None if change.target_head is None else str(change.target_head),
        "problem": change.problem,
        "conflict": change.conflict,
        "demands": list(change.demands),
        "snapshots": change.snapshots,
        "behind": change.behind,
        "added_rows": change.added_rows,
        "removed_rows": change.removed_rows,
        "added_files": change.added_files,
        "removed_files": change.removed_files,
        "schema_changes": list(change.schema_changes),
        "checks": [{"name": c.name, "state": c.state, "detail": c.detail, "by": c.principal} for c in change.checks],
        "approved_by": list(change.approved_by),
        "uncounted": change.uncounted,
    }


def _entry(entry: PullRequestEntry) -> dict[str, Any]:
    return {
        "at_ms": entry.at_ms,
        "by": entry.principal,
        "what": entry.what,
        "text": entry.text,
        "heads": _heads(entry.heads),
    }
