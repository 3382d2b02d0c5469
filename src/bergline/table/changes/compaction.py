"""Compaction: small files, and files with deletes, rewritten to files of the target size, partition by partition.

Files stay in the partition spec that they were written with, rows keep their row ids, and new files have the sequence
number of the snapshot that was read: whoever deletes by equality meanwhile deletes their rows too.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from bergline.expressions.predicate import ALWAYS_TRUE, Predicate
from bergline.format.manifest.manifest import partition_key
from bergline.format.metadata.snapshot import Snapshot
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.parquet.write.write_spec import write_spec
from bergline.scan.plan import PlannedFile
from bergline.scan.planner import plan_scan
from bergline.table.changes.dangling_deletes import dangling_deletes
from bergline.table.changes.rewrite_files import Rewritten
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import plan_rewrite
from bergline.table.engine.row_engine import RowEngine

_SMALL: Final = 0.75
_FIRST_WITH_NUMBERS: Final = 2
Group = tuple[PlannedFile, ...]


class CompactionResult(msgspec.Struct, frozen=True):
    """What was rewritten; all zero if there was nothing to gain."""

    rewritten_data_files: int = 0
    added_data_files: int = 0
    rewritten_bytes: int = 0
    removed_delete_files: int = 0


class CompactionRequest(msgspec.Struct, frozen=True):
    """Which files, to be made how large, and how many there must be in a partition."""

    row_filter: Predicate = ALWAYS_TRUE
    target_size: int | None = None
    """None for what the table says."""
    min_files: int = 2


def compacted(
    io: FileIO,
    metadata: TableMetadata,
    snapshot: Snapshot,
    request: CompactionRequest,
    *,
    pinned: bool,
    engine: RowEngine | None = None,
) -> Rewritten | None:
    """The files of a snapshot that are worth it, written again; None if there are none. An error leaves no file.

    They keep the snapshot's sequence number if they are `pinned`. In a transaction, where it may get another number on
    another base, they are not, and delete files stay, which may then be about rows of others. Rows are rewritten by the
    engine, by default in this process.
    """
    plan = plan_scan(
        io,
        metadata,
        snapshot.snapshot_id,
        table_schema=metadata.schema,
        columns=metadata.schema,
        row_filter=request.row_filter,
    )
    size = max(request.target_size or write_spec(metadata).target_file_size, 1)
    groups = plan_compaction(plan.files, target_size=size, min_files=request.min_files)
    if not groups:
        return None
    written = (engine or ArrowRowEngine()).rewrite(io, plan_rewrite(metadata, plan, groups, size))
    try:
        read = tuple(planned for group in groups for planned in group)
        removed = tuple(planned.file for planned in read)
        dangling = dangling_deletes(io, metadata, snapshot, removed, snapshot.sequence_number) if pinned else ()
    except BaseException:
        io.delete(written.paths)
        raise
    numbered = pinned and metadata.format_version >= _FIRST_WITH_NUMBERS
    return Rewritten(written.data_files, removed, dangling, snapshot.sequence_number if numbered else None, read)


def plan_compaction(files: Sequence[PlannedFile], *, target_size: int, min_files: int) -> list[Group]:
    """The files of each partition that are worth rewriting: those with deletes, and small ones that become fewer."""
    candidates: dict[Any, list[PlannedFile]] = defaultdict(list)
    for planned in files:
        if planned.deletes or planned.file.file_size_in_bytes < _SMALL * target_size:
            candidates[partition_key(planned.file)].append(planned)
    return [tuple(group) for group in candidates.values() if _is_worth_it(group, target_size, min_files)]


def _is_worth_it(group: Sequence[PlannedFile], target_size: int, min_files: int) -> bool:
    if any(planned.deletes for planned in group):
        return True
    total = sum(planned.file.file_size_in_bytes for planned in group)
    return len(group) >= min_files and -(-total // target_size) < len(group)
