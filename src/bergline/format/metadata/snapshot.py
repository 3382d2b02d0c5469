"""Snapshots: committed states of a table, with a summary of each commit."""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from typing import Final

import msgspec

from bergline.format.encoding.integers import Int, Long, Milliseconds
from bergline.format.manifest.manifest import DataFile, FileContent, is_deletion_vector, partition_key

SOURCE_SNAPSHOT_ID: Final = "source-snapshot-id"
"""The summary entry that names the snapshot, on another line of history, that this one replays."""
STAGED_WAP_ID: Final = "wap.id"
"""The summary entry with the id that a snapshot was staged under."""
PUBLISHED_STAGED_WAP_ID: Final = "published-wap-id"
"""The summary entry with the id of the staged snapshot that this one replays on a branch."""
REBASED_FROM: Final = "rebased-from"
"""The summary entry with the manifest list that the writer sent, if the server wrote another one for the snapshot."""


class SnapshotOperation(StrEnum):
    """The operation recorded in a snapshot's summary."""

    APPEND = "append"
    REPLACE = "replace"
    OVERWRITE = "overwrite"
    DELETE = "delete"


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True, gc=False):
    """One committed state: its manifest list leads to every file in it. Fields are in the order of Java's JSON.

    Old v1 tables name the manifests themselves instead of a list, and may have no summary.
    """

    sequence_number: Long = 0
    snapshot_id: Long
    parent_snapshot_id: Long | None = None
    timestamp_ms: Milliseconds
    summary: dict[str, str] = {}
    manifest_list: str | None = None
    manifests: tuple[str, ...] | None = None
    schema_id: Int | None = None
    first_row_id: Long | None = None
    added_rows: Long | None = None
    key_id: str | None = None

    @property
    def operation(self) -> str:
        """The operation; as in Java, a summary without one counts as overwrite."""
        return self.summary.get("operation", SnapshotOperation.OVERWRITE)


def summarize(
    operation: SnapshotOperation,
    added: Collection[DataFile],
    removed: Collection[DataFile],
    parent: Mapping[str, str] | None,
    extra: Mapping[str, str],
    *,
    partition_limit: int = 0,
    partition_path: Callable[[DataFile], str] = lambda _: "",
) -> dict[str, str]:
    """Build the summary of a snapshot, with totals based on its parent's.

    Up to `partition_limit` changed partitions get a summary each, under the key of `partition_path`.
    """
    counts = _changes(added, removed)
    named = {"operation": str(operation)}  # first, as Java writes it
    summary = named | dict(extra) | named
    summary |= {key: str(value) for key, value in counts.items() if value}
    changed = {partition_key(f) for f in (*added, *removed)}
    summary["changed-partition-count"] = str(len(changed))
    if 0 < len(changed) <= partition_limit:
        summary |= {"partition-summaries-included": "true"} | _partition_summaries(added, removed, partition_path)
    return summary | totals(parent, counts)


def totals(parent: Mapping[str, str] | None, counts: Mapping[str, int]) -> dict[str, str]:
    """The totals of a snapshot that adds and removes these counts, where its parent has totals; None for no parent."""
    found = {}
    for total, plus, minus in _TOTALS:
        before = 0 if parent is None else _number(parent.get(total))
        if before is not None and (value := before + counts.get(plus, 0) - counts.get(minus, 0)) >= 0:
            found[total] = str(value)
    return found


def without_totals(summary: Mapping[str, str]) -> dict[str, str]:
    """A summary without the entries that depend on the parent's."""
    names = {total for total, _, _ in _TOTALS}
    return {key: value for key, value in summary.items() if key not in names}


_TOTALS = (
    ("total-records", "added-records", "deleted-records"),
    ("total-files-size", "added-files-size", "removed-files-size"),
    ("total-data-files", "added-data-files", "deleted-data-files"),
    ("total-delete-files", "added-delete-files", "removed-delete-files"),
    ("total-position-deletes", "added-position-deletes", "removed-position-deletes"),
    ("total-equality-deletes", "added-equality-deletes", "removed-equality-deletes"),
)


def _partition_summaries(
    added: Collection[DataFile], removed: Collection[DataFile], path: Callable[[DataFile], str]
) -> dict[str, str]:
    by_path: dict[str, tuple[list[DataFile], list[DataFile]]] = defaultdict(lambda: ([], []))
    for place, files in enumerate((added, removed)):
        for file in files:
            by_path[path(file)][place].append(file)
    return {
        f"partitions.{name}": ",".join(f"{key}={value}" for key, value in _changes(*files).items() if value)
        for name, files in by_path.items()
    }


def _changes(added: Collection[DataFile], removed: Collection[DataFile]) -> dict[str, int]:
    plus, minus = _counts(added, "added", "added"), _counts(removed, "deleted", "removed")
    return dict(pair for pairs in zip(plus.items(), minus.items(), strict=True) for pair in pairs)  # in Java's order


def _counts(files: Collection[DataFile], of_data: str, of_others: str) -> dict[str, int]:
    """The counts by Java's keys: data is "deleted", delete files and bytes are "removed"."""
    data = [f for f in files if f.content is FileContent.DATA]
    equality = [f for f in files if f.content is FileContent.EQUALITY_DELETES]
    position = [f for f in files if f.content is FileContent.POSITION_DELETES]
    vectors = sum(is_deletion_vector(f) for f in position)
    return {
        f"{of_others}-files-size": sum(_size(f) for f in files),
        f"{of_data}-data-files": len(data),
        f"{of_others}-equality-delete-files": len(equality),
        f"{of_others}-position-delete-files": len(position) - vectors,
        f"{of_others}-dvs": vectors,
        f"{of_others}-delete-files": len(equality) + len(position),
        f"{of_data}-records": sum(f.record_count for f in data),
        f"{of_others}-position-deletes": sum(f.record_count for f in position),
        f"{of_others}-equality-deletes": sum(f.record_count for f in equality),
    }


def _size(file: DataFile) -> int:
    """The size of a file; of a deletion vector, that of its blob."""
    return (file.content_size_in_bytes or 0) if is_deletion_vector(file) else file.file_size_in_bytes


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
