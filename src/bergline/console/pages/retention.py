"""Retention: what expiry would remove and why, and the bytes that each ref pins."""

from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import (
    asked_number,
    broken_page,
    found_table,
    pages_around,
    plain,
    table_values,
)
from bergline.reports.retention import RefRetention, retention_report
from bergline.reports.units import render_duration

_SNAPSHOTS = 200
_MOST = 10**8
_MOST_WORKED_OUT = 1000
"""Each snapshot is a file to read."""


def retention_page(source: Source, query: PageQuery) -> Page:
    """What expiry would do now; `which=removed` leaves out the snapshots that stay.

    The files of very many snapshots are worked out only with `files=1`.
    """
    found = found_table(source, query)
    if found.table is None:
        return broken_page(found)
    files = query.get("files") == "1" or len(found.table.metadata.snapshots) <= _MOST_WORKED_OUT
    report = retention_report(found.table, source.now_ms, files=files)
    only_removed = query.get("which") == "removed"
    snapshots = [s for s in report.snapshots if not (only_removed and s.kept)]
    offset = asked_number(query, "offset", 0, _MOST)
    values = {
        **table_values(source, found.table, report.problems),
        "max_snapshot_age": None if report.max_snapshot_age_ms is None else render_duration(report.max_snapshot_age_ms),
        "min_snapshots_to_keep": report.min_snapshots_to_keep,
        "refs": [_ref(line) for line in report.refs],
        "which": "removed" if only_removed else "",
        "snapshots": plain(snapshots[offset : offset + _SNAPSHOTS]),
        "snapshot_count": len(report.snapshots),
        "shown_count": len(snapshots),
        "removed_snapshots": report.removed_snapshots,
        "removed_refs": report.removed_refs,
        "files": query.get("files", ""),
        "files_read": files,
        "deleted": plain(report.deleted),
        "deleted_by_kind": [{"kind": str(kind), **plain(amount)} for kind, amount in report.deleted_by_kind],
        **pages_around(offset, _SNAPSHOTS, len(snapshots)),
    }
    return Page(f"Retention of {found.name}", "retention.html", values)


def _ref(line: RefRetention) -> dict[str, object]:
    ref = line.ref
    return {
        "name": line.name,
        "kind": str(ref.snapshot_ref_type),
        "snapshot_id": str(ref.snapshot_id),
        "kept": line.kept,
        "reason": line.reason,
        "keeps_snapshots": line.keeps_snapshots,
        "pinned": plain(line.pinned),
        "head_bytes": line.head_bytes,
        "min_snapshots_to_keep": ref.min_snapshots_to_keep,
        "max_snapshot_age": None if ref.max_snapshot_age_ms is None else render_duration(ref.max_snapshot_age_ms),
        "max_ref_age": None if ref.max_ref_age_ms is None else render_duration(ref.max_ref_age_ms),
    }
