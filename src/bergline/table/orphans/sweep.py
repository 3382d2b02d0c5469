"""Deletes the files of a plan that are unchanged and still not needed by anything."""

import msgspec

from bergline.catalog.catalog import Catalog
from bergline.io.fileio import ListedFile
from bergline.table.expiry.deletion import Progress, delete_files
from bergline.table.expiry.path_rules import PathRules
from bergline.table.orphans.directories import check_not_shared
from bergline.table.orphans.plan import OrphanPlan
from bergline.table.orphans.referenced_files import ReferencedFiles
from bergline.table.orphans.search import deletable_namings, include_newest, list_directories

_FILES_AT_ONCE = 2000  # files are deleted before the table is loaded again


class SweepResult(msgspec.Struct, frozen=True):
    """The outcome for the files of a plan."""

    deleted: tuple[str, ...] = ()
    deleted_bytes: int = 0
    failed: tuple[str, ...] = ()
    """Files that could not be deleted."""
    spared: tuple[str, ...] = ()
    """Files that are needed by now, or were written again since the plan."""


def sweep_orphans(catalog: Catalog, plan: OrphanPlan, *, threads: int, progress: Progress | None = None) -> SweepResult:
    """Check everything again, then delete; before each batch, files that have been committed meanwhile are spared."""
    if not plan.files:
        return SweepResult()
    rules = PathRules(plan.request.equal_schemes, plan.request.equal_authorities)
    named, deletable = ReferencedFiles(catalog.io, rules), deletable_namings(plan.request)
    wanted = {file.location: file for file in plan.files}
    there = [file for _, file in list_directories(catalog, plan.locations) if file.location in wanted]
    unchanged = [file for file in there if wanted[file.location] == file]
    # after the listing, so that a file that was committed before it counts as referenced
    table = include_newest(catalog, plan, named)
    check_not_shared(catalog, table, plan.locations, rules, read_all=plan.request.read_all_tables)
    deleted: list[ListedFile] = []
    failed: set[str] = set()
    for start in range(0, len(unchanged), _FILES_AT_ONCE):
        if catalog.pointer(table.name) != table.metadata_location:
            table = include_newest(catalog, table, named)
        batch = unchanged[start : start + _FILES_AT_ONCE]
        unneeded = [f for f in batch if named.find(f.location) in deletable and not catalog.is_own_file(f.location)]
        failed.update(delete_files(catalog.io, [f.location for f in unneeded], threads=threads))
        deleted += (f for f in unneeded if f.location not in failed)
        if progress:
            progress(start + len(batch), len(unchanged))
    return SweepResult(
        deleted=tuple(file.location for file in deleted),
        deleted_bytes=sum(file.size for file in deleted),
        failed=tuple(sorted(failed)),
        spared=tuple(sorted({file.location for file in there} - failed - {file.location for file in deleted})),
    )
