"""The difference of two refs: snapshots on each side, files and rows by partition, columns, some rows."""

from typing import Any

from bergline.console.page import Page, PageQuery, Source
from bergline.console.pages.values import (
    asked_number,
    broken_page,
    found_table,
    plain,
    ref_names,
    table_values,
)
from bergline.format.metadata.refs import MAIN
from bergline.format.metadata.snapshot import Snapshot
from bergline.reports.difference import PartitionDifference, RefDifference, ref_difference
from bergline.reports.totals import summary_number

_ROWS, _MOST_ROWS = 20, 200
_SNAPSHOTS, _PARTITIONS = 100, 200


def difference_page(source: Source, query: PageQuery) -> Page:
    """How `to` differs from `from`; by default the first ref that is not `main` from `main`."""
    found = found_table(source, query)
    if found.table is None:
        return broken_page(found)
    names = ref_names(found.table.metadata)
    from_ref = query.get("from") or next((n for n in names if n != query.get("to")), MAIN)
    to_ref = query.get("to") or next((n for n in names if n != from_ref), None)
    values: dict[str, Any] = {"from_ref": from_ref, "to_ref": to_ref, "difference": None}
    if to_ref is None:
        values = table_values(source, found.table) | values
    else:
        report = ref_difference(
            found.table,
            from_ref,
            to_ref,
            sample=asked_number(query, "rows", _ROWS, _MOST_ROWS) or _ROWS,
            read_rows=source.read_rows,
        )
        values = table_values(source, found.table, report.problems) | values | {"difference": _difference(report)}
    return Page(f"Difference in {found.name}", "difference.html", values)


def _difference(report: RefDifference) -> dict[str, Any]:
    diff = report.diff
    only_from, only_to = ((), ()) if diff is None else (diff.only_from, diff.only_to)
    return {
        "ancestor": None if diff is None or diff.ancestor is None else _snapshot(diff.ancestor),
        "is_known": diff is not None,
        "only_from": [_snapshot(s) for s in reversed(only_from[-_SNAPSHOTS:])],
        "only_from_count": len(only_from),
        "only_to": [
            {**_snapshot(s), "is_merged": diff is not None and s.snapshot_id in diff.already_merged}
            for s in reversed(only_to[-_SNAPSHOTS:])
        ],
        "only_to_count": len(only_to),
        "partitions": [_partition(p) for p in report.partitions[:_PARTITIONS]],
        "partition_count": len(report.partitions),
        "schema_changes": [] if diff is None else list(diff.schema_changes),
        "sample": plain(report.sample),
        "compared_rows": report.compared_rows,
        "is_sample_refused": report.is_sample_refused,
    }


def _snapshot(snapshot: Snapshot) -> dict[str, Any]:
    summary = snapshot.summary
    return {
        "snapshot_id": str(snapshot.snapshot_id),
        "timestamp_ms": snapshot.timestamp_ms,
        "operation": snapshot.operation,
        "added_rows": summary_number(summary, "added-records"),
        "removed_rows": summary_number(summary, "deleted-records"),
    }


def _partition(line: PartitionDifference) -> dict[str, Any]:
    return {
        **plain(line.files),
        "added_rows": line.added_rows,
        "removed_rows": line.removed_rows,
        "rewritten_rows": line.rewritten_rows,
    }
