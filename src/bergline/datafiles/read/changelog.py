"""The rows of data files that snapshots added or deleted, with the columns that say which change each row is.

Runs in this process and in Spark's tasks.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.delete.deletes import DeletedRows
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.file.columns import FileColumns, RowSource, named
from bergline.datafiles.formats.data_input import DataInput, open_data_file
from bergline.datafiles.read.filter import arrow_filter
from bergline.datafiles.read.reader import read_file
from bergline.expressions.predicate import ALWAYS_TRUE
from bergline.format.manifest.manifest import DataFile
from bergline.format.schema.reserved import CHANGE_ORDINAL, CHANGE_TYPE, COMMIT_SNAPSHOT_ID
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.plan import FileChange, PlannedFile, ScanPlan, columns_to_read

INSERT: Final = "INSERT"
DELETE: Final = "DELETE"
UPDATE_BEFORE: Final = "UPDATE_BEFORE"
UPDATE_AFTER: Final = "UPDATE_AFTER"
CHANGE_COLUMNS: Final = (CHANGE_TYPE, CHANGE_ORDINAL, COMMIT_SNAPSHOT_ID)


def changelog_schema(rows: Schema) -> Schema:
    """The columns of changed rows: their own, then the type of the change, its ordinal, and its snapshot."""
    return Schema(fields=(*rows.fields, *CHANGE_COLUMNS), schema_id=rows.schema_id)


def read_changes(
    io: FileIO,
    change: FileChange,
    plan: ScanPlan,
    deletes: DeleteFiles | None = None,
    row_groups: tuple[int, int | None] = (0, None),
) -> Iterator[pa.RecordBatch]:
    """The rows of one data file that a snapshot deleted or added, in batches of bounded size; see `read_file`."""
    deletes = deletes or DeleteFiles(io)
    if change.before is not None and change.after is not None:
        for word, rows in _differing_rows(io, change, plan, deletes, row_groups):
            yield from _labelled(rows, change, word)
        return
    applied, word = (change.after, INSERT) if change.before is None else (change.before, DELETE)
    planned = PlannedFile(change.file, change.sequence_number, applied or ())
    for batch in read_file(io, planned, plan, deletes, row_groups):
        yield from _labelled(pa.Table.from_batches([batch]), change, word)


def _differing_rows(
    io: FileIO, change: FileChange, plan: ScanPlan, files: DeleteFiles, row_groups: tuple[int, int | None]
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of a file that one set of deletes hides and the other does not."""
    before, after = (_deleted_rows(change.file, side or (), plan, files) for side in (change.before, change.after))
    wanted = named(columns_to_read(plan))
    source = RowSource(change.file, change.sequence_number, plan.specs.get(change.file.spec_id))
    columns = wanted | {c.name: c.column for side in (before, after) for c in side.key_columns}
    with open_data_file(io, change.file) as file:
        for side in (before, after):
            side.check_positions(sum(file.group_rows))
        stored = FileColumns(file.schema, columns, source, plan.name_mapping)
        part = range(file.num_groups)[slice(*row_groups)]
        groups = [group for group in _row_groups(file, before, after) if group in part]
        for first, batch in file.batches(stored.names, groups):
            rows = stored.convert(batch, first)
            was, is_ = (_mask(side, rows, first) for side in (before, after))
            for word, chosen in ((DELETE, pc.and_not(is_, was)), (INSERT, pc.and_not(was, is_))):
                found = rows.filter(chosen)
                if found.num_rows:
                    yield word, _matching(found, plan)


def _row_groups(file: DataInput, before: DeletedRows, after: DeletedRows) -> Iterator[int]:
    """The row groups in which position deletes differ; all of them if there are equality deletes."""
    start = 0
    for group, rows in enumerate(file.group_rows):
        by_key = before.key_columns or after.key_columns
        if by_key or not before.positions.to_mask(rows, start).equals(after.positions.to_mask(rows, start)):
            yield group
        start += rows


def _deleted_rows(file: DataFile, deletes: Sequence[DataFile], plan: ScanPlan, files: DeleteFiles) -> DeletedRows:
    return DeletedRows(file.file_path, deletes, files=files, key_columns=plan.key_columns, mapping=plan.name_mapping)


def _mask(deleted: DeletedRows, rows: pa.Table, first: int) -> pa.Array:
    mask = deleted.deleted(rows, first)
    return pa.repeat(pa.scalar(False), rows.num_rows) if mask is None else mask


def _matching(rows: pa.Table, plan: ScanPlan) -> pa.Table:
    if plan.filter != ALWAYS_TRUE:
        rows = rows.filter(arrow_filter(plan.filter, plan.table_schema))
    return rows.select([f.name for f in plan.schema.fields])


def _labelled(rows: pa.Table, change: FileChange, word: str) -> Iterator[pa.RecordBatch]:
    fields = arrow_schema(Schema(fields=CHANGE_COLUMNS))
    for field, value in zip(fields, (word, change.ordinal, change.snapshot_id), strict=True):
        rows = rows.append_column(field, pa.repeat(pa.scalar(value, field.type), rows.num_rows))
    yield from (batch for batch in rows.to_batches() if batch.num_rows)
