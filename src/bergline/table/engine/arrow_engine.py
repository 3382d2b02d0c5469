"""The row engine of this process: one file after the other, as Arrow data, in bounded memory."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.io.fileio import FileIO
from bergline.table.engine.plans import DeleteJoin, KnownDeletePlan, PositionDeletePlan, RewriteGroup, RewritePlan
from bergline.table.engine.position_deletes import delete_matching, join_deletes, write_deletes
from bergline.table.engine.rewrite_rows import rewrite_group
from bergline.table.engine.row_engine import Computed, FileChanges, Part, gathered_changes, joined_changes
from bergline.table.engine.sort_rows import rewrite_sorted

_READERS: Final = 16


class ArrowRowEngine:
    """Delete files are read once for all data files, as far as memory allows.

    `progress` is called with the bytes of data files rewritten so far, and of all to be rewritten.
    """

    _progress: Callable[[int, int], object] | None = None

    def __init__(self, progress: Callable[[int, int], object] | None = None) -> None:
        self._progress = progress

    def rewrite(self, io: FileIO, plan: RewritePlan) -> FileChanges:
        """All groups, one after the other."""
        return joined_changes(self.rewrite_groups(io, plan))

    def rewrite_groups(self, io: FileIO, plan: RewritePlan) -> list[FileChanges]:
        """Each part of a group in turn, in files of its own; groups to be sorted are held in memory one at a time."""
        deletes, prefix = DeleteFiles(io), _prefix()
        parts = [(n, part) for n, group in enumerate(plan.groups) for part in _parts(group)]
        total, read = sum(_size(part) for _, part in parts), 0
        done: list[tuple[int, FileChanges]] = []
        try:
            for number, (group, part) in enumerate(parts):
                rewrite = rewrite_group if part.order is None else rewrite_sorted
                done.append((group, rewrite(io, plan, part, f"{prefix}-{number:05d}", deletes)))
                read += _size(part)
                if self._progress is not None:
                    self._progress(read, total)
        except BaseException:
            io.delete(joined_changes(changes for _, changes in done).paths)
            raise
        return gathered_changes(done, len(plan.groups))

    def delete_positions(self, io: FileIO, plan: PositionDeletePlan) -> FileChanges:
        """All data files, with deletion vectors in one Puffin file."""
        return delete_matching(io, plan, plan.files, _prefix())

    def write_deletes(self, io: FileIO, plan: KnownDeletePlan) -> FileChanges:
        """All data files, with deletion vectors in one Puffin file."""
        return write_deletes(io, plan.write, plan.deleted, _prefix(), DeleteFiles(io))

    def compute(
        self, io: FileIO, what: str, work: Callable[[FileIO, Part], Computed], parts: Sequence[Part], location: str
    ) -> list[Computed]:
        """Several parts at a time, so that reads from object stores overlap."""
        if len(parts) == 1:
            return [work(io, parts[0])]
        with ThreadPoolExecutor(_READERS, thread_name_prefix="bergline-compute") as threads:
            return list(threads.map(lambda part: work(io, part), parts))

    def join_deletes(self, io: FileIO, joins: Sequence[DeleteJoin]) -> list[FileChanges]:
        """Each group in turn."""
        deletes, prefix = DeleteFiles(io), _prefix()
        done: list[FileChanges] = []
        try:
            for number, join in enumerate(joins):
                done.append(join_deletes(io, join, f"{prefix}-{number:05d}", deletes))
        except BaseException:
            io.delete(joined_changes(done).paths)
            raise
        return done


def _parts(group: RewriteGroup) -> list[RewriteGroup]:
    """A group whose rows are sorted or go to other partitions is one part."""
    return [group] if group.order is not None or group.partition is None else group.splits


def _size(group: RewriteGroup) -> int:
    return sum(planned.file.file_size_in_bytes for planned in group.files)


def _prefix() -> str:
    return f"00000-0-{uuid.uuid4()}"
