"""Rewrites data files as a stream, applying their deletes; runs in this process and in Spark's tasks.

Rows for which the condition is unknown stay, as in SQL.
"""

import contextlib

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.read.filter import arrow_filter
from bergline.datafiles.read.reader import read_file
from bergline.datafiles.write.writer import DataFileWriter
from bergline.expressions.predicate import Predicate, columns_of
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.table.engine.plans import RewriteGroup, RewritePlan
from bergline.table.engine.row_engine import FileChanges


def rewrite_group(
    io: FileIO, plan: RewritePlan, group: RewriteGroup, prefix: str, deletes: DeleteFiles | None = None
) -> FileChanges:
    """New data files, named with a prefix, with the rows of a group; an error leaves no files behind."""
    deletes = deletes or DeleteFiles(io)
    where = plan.delete_where
    stays = None if where is None else _not_true(where, plan.read.table_schema)
    probe = None if where is None else _probe(plan.read, where)
    rewritten, deleted = [], 0
    writer: DataFileWriter | None = None
    with contextlib.ExitStack() as stack:
        for planned in group.files:
            if probe is not None and not _has_rows(io, planned, probe, deletes):
                continue
            if writer is None:
                writer = stack.enter_context(DataFileWriter(io, group.write, prefix, partition=group.partition))
            without = group.without.get(planned.file.file_path)
            deleted += len(without or ())
            rewritten.append(planned.file.file_path)
            for batch in read_file(io, planned, plan.read, deletes, without=without):
                rows = pa.Table.from_batches([batch])
                kept = rows if stays is None else rows.filter(stays)
                deleted += rows.num_rows - kept.num_rows
                writer.write(kept)
        files = writer.finish() if writer else []
    return FileChanges(tuple(files), frozenset(rewritten), deleted_rows=deleted)


def _has_rows(io: FileIO, planned: PlannedFile, probe: ScanPlan, deletes: DeleteFiles) -> bool:
    return next(read_file(io, planned, probe, deletes), None) is not None


def _not_true(predicate: Predicate, schema: Schema) -> pc.Expression:
    return ~pc.coalesce(arrow_filter(predicate, schema), pc.scalar(False))


def _probe(plan: ScanPlan, predicate: Predicate) -> ScanPlan:
    """A plan to find out whether any row matches: it reads only the top-level columns of the predicate, or any one."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(predicate)}
    fields = tuple(f for f in table.fields if f.name in used) or table.fields[:1]
    return msgspec.structs.replace(plan, schema=Schema(fields=fields, schema_id=table.schema_id), filter=predicate)
