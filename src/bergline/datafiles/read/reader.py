"""The reader: planned files to Arrow in the requested columns, matched by field id, in bounded memory."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.delete.deletes import DeletedRows
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.file.columns import FileColumns, RowSource, named
from bergline.datafiles.formats.data_input import DataInput, ParquetInput, open_data_file
from bergline.datafiles.read.filter import arrow_filter
from bergline.datafiles.read.row_groups import matching_groups
from bergline.expressions.predicate import Always
from bergline.format.deletes.position_set import PositionSet
from bergline.format.schema.reserved import DELETED
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan, columns_to_read


def read_plan(io: FileIO, plan: ScanPlan) -> pa.Table:
    """All rows of a plan."""
    return pa.Table.from_batches(read_batches(io, plan), arrow_schema(plan.schema))


def read_batches(io: FileIO, plan: ScanPlan, *, most_rows: int | None = None) -> Iterator[pa.RecordBatch]:
    """The rows of a plan in batches of up to `most_rows`; at most one row group or stripe is in memory at a time."""
    deletes = DeleteFiles(io)
    for planned in plan.files:
        yield from read_file(io, planned, plan, deletes, most_rows=most_rows)


def read_file(
    io: FileIO,
    planned: PlannedFile,
    plan: ScanPlan,
    delete_files: DeleteFiles | None = None,
    row_groups: tuple[int, int | None] = (0, None),
    *,
    without: PositionSet | None = None,
    most_rows: int | None = None,
) -> Iterator[pa.RecordBatch]:
    """The matching rows of one file; `delete_files` caches deletes across files.

    `row_groups` (stripes in ORC files) are the first one to read and the one to stop before, None for all remaining
    ones. Rows at the positions `without` are left out, like those that delete files name. Batches have up to
    `most_rows`.
    """
    path = planned.file.file_path
    wanted = named(columns_to_read(plan))
    source = RowSource(planned.file, planned.sequence_number, plan.specs.get(planned.file.spec_id))
    gone = DeletedRows(
        path,
        planned.deletes,
        files=delete_files or DeleteFiles(io),
        key_columns=plan.key_columns,
        mapping=plan.name_mapping,
        more=without,
    )
    columns = wanted | {c.name: c.column for c in gone.key_columns}
    with open_data_file(io, planned.file) as file:
        if gone.positions:
            gone.check_positions(sum(file.group_rows))
        stored = FileColumns(file.schema, columns, source, plan.name_mapping)
        groups = _groups(file, stored, plan, row_groups)
        for first, batch in file.batches(stored.names, groups, most_rows):
            rows = stored.convert(batch, first)
            batches = _matching(rows, gone.deleted(rows, first), plan).to_batches()
            yield from (batch for batch in batches if batch.num_rows)


def _groups(file: DataInput, stored: FileColumns, plan: ScanPlan, row_groups: tuple[int, int | None]) -> Sequence[int]:
    part = range(file.num_groups)[slice(*row_groups)]
    if not isinstance(file, ParquetInput):
        return part
    groups = matching_groups(file.stream, stored.stored, plan.filter, plan.table_schema)
    return part if groups is None else [group for group in groups if group in part]


def _matching(rows: pa.Table, deleted: pa.Array | None, plan: ScanPlan) -> pa.Table:
    if deleted is not None:
        if DELETED.id in plan.schema.ids:
            # a request for `_deleted` returns deleted rows too
            position = rows.column_names.index(DELETED.name)
            rows = rows.set_column(position, rows.field(position), deleted)
        else:
            rows = rows.filter(pc.invert(deleted))
    if plan.filter != Always(True):
        rows = rows.filter(arrow_filter(plan.filter, plan.table_schema))
    return rows.select([f.name for f in plan.schema.fields])
