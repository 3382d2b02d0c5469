"""The row engine of this process: one file after the other, as Arrow data, in bounded memory."""

import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bergline.io.fileio import FileIO
from bergline.parquet.delete.delete_files import DeleteFiles
from bergline.table.engine.plans import KnownDeletePlan, PositionDeletePlan, RewritePlan
from bergline.table.engine.position_deletes import delete_matching, write_deletes
from bergline.table.engine.rewrite_rows import rewrite_group
from bergline.table.engine.row_engine import Computed, FileChanges, Part, joined_changes

_READERS: Final = 16


class ArrowRowEngine:
    """Delete files are read once for all data files, as long as there is room."""

    def rewrite(self, io: FileIO, plan: RewritePlan) -> FileChanges:
        """Each group in turn, in files of its own."""
        deletes, prefix = DeleteFiles(io), _prefix()
        done: list[FileChanges] = []
        try:
            for number, group in enumerate(plan.groups):
                done.append(rewrite_group(io, plan, group, f"{prefix}-{number:05d}", deletes))
        except BaseException:
            io.delete(joined_changes(done).paths)
            raise
        return joined_changes(done)

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


def _prefix() -> str:
    return f"00000-0-{uuid.uuid4()}"
