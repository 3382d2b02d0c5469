"""Snapshots: one committed state of a table, and the summary of how it came about."""

from collections.abc import Collection, Mapping
from enum import StrEnum

import msgspec

from bergline.format.integers import Int, Long
from bergline.format.manifest import DataFile, FileContent


class Operation(StrEnum):
    """What a snapshot did, as its summary says."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True, gc=False):
    """One committed state: its manifest list names every file in it. Fields stand in the order of Java's JSON.

    Old v1 tables name the manifests themselves instead of a list, and may have no summary.
    """

    sequence_number: Long = 0
    snapshot_id: Long
    parent_snapshot_id: Long | None = None
    timestamp_ms: Long
    summary: dict[str, str] = {}
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str:
        """What this snapshot did; Java reads a summary without it as overwrite, so do we."""
        return self.summary.get("operation", Operation.OVERWRITE)


def summarize(
    operation: Operation,
    added: Collection[DataFile],
    removed: Collection[DataFile],
    parent: Mapping[str, str] | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The summary of a snapshot, with totals carried on from its parent's."""
    counts = _counts(added, "added", "added-files-size") | _counts(removed, "deleted", "removed-files-size")
    partitions = {(f.spec_id, f.partition) for f in (*added, *removed)}
    named = {"operation": str(operation)}  # first, as Java writes it
    summary = named | dict(extra) | named
    summary |= {key: str(value) for key, value in counts.items() if value}
    summary["changed-partition-count"] = str(len(partitions))
    for total, plus, minus in _TOTALS:
        before = 0 if parent is None else _number(parent.get(total))
        if before is not None and (value := before + counts.get(plus, 0) - counts.get(minus, 0)) >= 0:
            summary[total] = str(value)
    return summary


_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


def _counts(files: Collection[DataFile], verb: str, size_key: str) -> dict[str, int]:
    data = [f for f in files if f.content is FileContent.DATA]
    return {
        f"{verb}-data-files": len(data),
        f"{verb}-records": sum(f.record_count for f in data),
        size_key: sum(f.file_size_in_bytes for f in data),
    }


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
