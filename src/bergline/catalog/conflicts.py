"""Conflict messages: what changed between the base of a commit and the current table."""

import datetime as dt
from collections.abc import Sequence

from bergline.format.metadata.requirements import AssertRefSnapshotId, Requirement
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata, snapshots_gained

_ENGINE = ("engine-name", "engine-version")
_SHOWN = 80


def describe_change(base: TableMetadata, now: TableMetadata) -> str:
    """The newest snapshot that was added in between, or whatever else has changed."""
    when = _time(now.last_updated_ms)
    gained = snapshots_gained(base, now)
    new = [s for s in now.snapshots if s.snapshot_id not in base.snapshots_by_id] if gained is None else gained
    if new:
        last = max(new, key=lambda s: (s.sequence_number, s.timestamp_ms))
        refs = sorted(name for name, ref in now.refs.items() if ref.snapshot_id == last.snapshot_id)
        more = f" and {len(new) - 1} more" if len(new) > 1 else ""
        return f"{describe_snapshot(last, refs)}{more} came first"
    if base.refs != now.refs:
        changed = {n for n in base.refs.keys() | now.refs.keys() if base.refs.get(n) != now.refs.get(n)}
        return f"{', '.join(f'`{n}`' for n in sorted(changed))} changed first, at {when}"
    if len(now.snapshots) < len(base.snapshots):
        return f"snapshots were removed first, at {when}"
    return describe_layout_change(base, now)


def describe_layout_change(base: TableMetadata, now: TableMetadata) -> str:
    """What is different apart from snapshots and refs."""
    parts = {
        "schema": (base.current_schema_id, now.current_schema_id),
        "partition spec": (base.default_spec_id, now.default_spec_id),
        "sort order": (base.default_sort_order_id, now.default_sort_order_id),
        "properties": (base.properties, now.properties),
    }
    changed_parts = [name for name, (before, after) in parts.items() if before != after]
    return f"its {' and '.join(changed_parts) or 'metadata'} changed first, at {_time(now.last_updated_ms)}"


def describe_holder(now: TableMetadata, requirement: Requirement) -> str:
    """What made a requirement fail."""
    if isinstance(requirement, AssertRefSnapshotId) and (head := now.head(requirement.ref)) is not None:
        return f"{describe_snapshot(head, [requirement.ref])} came first"
    return describe_latest(now)


def describe_latest(now: TableMetadata) -> str:
    """The newest snapshot of a table, however many there are."""
    if not now.snapshots:
        return f"the table has no snapshots, and was changed at {_time(now.last_updated_ms)}"
    last = _newest(now)
    refs = sorted(name for name, ref in now.refs.items() if ref.snapshot_id == last.snapshot_id)
    return f"the newest is {describe_snapshot(last, refs)}"


def describe_snapshot(snapshot: Snapshot, refs: Sequence[str]) -> str:
    """A snapshot with its operation, refs and time."""
    on = f" on {', '.join(f'`{name}`' for name in refs)}" if refs else ", on no ref"
    engine = " ".join(snapshot.summary[key] for key in _ENGINE if key in snapshot.summary)
    by = f" by {engine[:_SHOWN]}" if engine else ""
    return f"snapshot {snapshot.snapshot_id} ({snapshot.operation}{on}{by}, {_time(snapshot.timestamp_ms)})"


def _newest(now: TableMetadata) -> Snapshot:
    """The snapshot that was added last; if it is not the newest by its number, the newest of it and the heads."""
    last = now.snapshots[-1]
    if last.sequence_number >= now.last_sequence_number:
        return last
    heads = (now.snapshots_by_id.get(ref.snapshot_id) for ref in now.refs.values())
    known = (last, *(head for head in heads if head is not None))
    return max(known, key=lambda s: (s.sequence_number, s.timestamp_ms))


def _time(milliseconds: int) -> str:
    try:
        return dt.datetime.fromtimestamp(milliseconds / 1000, dt.UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return f"{milliseconds} ms"
