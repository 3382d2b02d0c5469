"""Delete rows where they are (merge on read): what a row delta needs beside the delete files that an engine writes.

What older delete files say of one data file goes into the new ones, which take their place.
"""

from collections.abc import Iterable

import msgspec

from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import TableMetadata
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.table.engine.arrow_engine import ArrowRowEngine
from bergline.table.engine.plans import plan_position_deletes
from bergline.table.engine.row_engine import RowEngine


class DeletesByPosition(msgspec.Struct, frozen=True):
    """What a row delta needs: `RowDelta(io, deletes, replaced, since=plan.snapshot_id, checks=…)`."""

    deletes: tuple[DataFile, ...] = ()
    """New delete files; none if no row matches."""
    replaced: tuple[DataFile, ...] = ()
    """Older delete files whose positions are in the new ones: to be removed."""
    referenced: frozenset[str] = frozenset()
    """The data files whose rows are deleted: they must still be there at the commit."""
    rows: int = 0
    """How many rows are deleted that were not before."""


def write_deletes_by_position(
    io: FileIO,
    metadata: TableMetadata,
    plan: ScanPlan,
    files: Iterable[PlannedFile] | None = None,
    *,
    engine: RowEngine | None = None,
) -> DeletesByPosition:
    """Delete files for the rows of a scan, or of some of its files, that match its filter and are not deleted yet."""
    work = plan_position_deletes(metadata, plan, files)
    written = (engine or ArrowRowEngine()).delete_positions(io, work)
    touched = (planned for planned in work.files if planned.file.file_path in written.deleted_from)
    replaced = tuple(delete for planned in touched for delete in work.write.replaced(planned))
    return DeletesByPosition(written.delete_files, replaced, written.deleted_from, written.deleted_rows)
