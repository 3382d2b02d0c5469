"""Rewrites a group of data files with its rows sorted, in this process; all rows of the group are in memory."""

import contextlib

import polars as pl
import pyarrow as pa

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.file.plain_values import distinct_values, leaf_array, plain_array
from bergline.datafiles.read.reader import read_file
from bergline.datafiles.write.writer import DataFileWriter
from bergline.format.partition.sort_order import SortField
from bergline.format.partition.transforms import Identity
from bergline.format.schema.schema import Schema
from bergline.format.types.types import UUID
from bergline.io.fileio import FileIO
from bergline.table.engine.plans import RewriteGroup, RewritePlan, RowOrder
from bergline.table.engine.row_engine import FileChanges
from bergline.table.engine.z_order import ZOrder, z_values

_ROWS_AT_A_TIME = 100_000


def rewrite_sorted(
    io: FileIO, plan: RewritePlan, group: RewriteGroup, prefix: str, deletes: DeleteFiles | None = None
) -> FileChanges:
    """New data files with the rows of a group in order, a range of it in each; an error leaves no files behind."""
    deletes = deletes or DeleteFiles(io)
    batches = [batch for planned in group.files for batch in read_file(io, planned, plan.read, deletes)]
    files = []
    if batches and group.order is not None:
        rows = pa.Table.from_batches(batches)
        places = sorted_places(rows, group.order, plan.read.table_schema)
        size = -(-len(places) // group.sorted_files)
        with contextlib.ExitStack() as stack:
            for number, start in enumerate(range(0, len(places), size)):
                writer = DataFileWriter(io, group.write, f"{prefix}-{number:05d}", partition=group.partition)
                stack.enter_context(writer)
                for at in range(start, min(start + size, len(places)), _ROWS_AT_A_TIME):
                    end = min(at + _ROWS_AT_A_TIME, start + size)
                    writer.write(rows.take(places.slice(at, end - at)))
                files += writer.finish()
    return FileChanges(tuple(files), frozenset(planned.file.file_path for planned in group.files))


def sorted_places(rows: pa.Table, order: RowOrder, schema: Schema) -> pa.Array:
    """For each row of the sorted table its current position; equal rows keep their order."""
    if isinstance(order, ZOrder):
        columns = [rows.column(name).combine_chunks() for name in order.columns]
        return _sorted([pl.Series(z_values(columns, order))], [False], [False])
    return _sorted(
        [_key(rows, field, schema) for field in order.fields],
        [field.direction == "desc" for field in order.fields],
        [field.null_order == "nulls-last" for field in order.fields],
    )


def _sorted(keys: list[pl.Series], descending: list[bool], nulls_last: list[bool]) -> pa.Array:
    frame = pl.DataFrame([key.alias(str(n)) for n, key in enumerate(keys)])
    places = frame.with_row_index("place").sort(
        list(frame.columns), descending=descending, nulls_last=nulls_last, maintain_order=True
    )
    return places["place"].to_arrow()


def _key(rows: pa.Table, field: SortField, schema: Schema) -> pl.Series:
    column, source = leaf_array(rows, schema.paths[field.source_id]), schema.ids[field.source_id].type
    if not isinstance(field.transform, Identity):
        values, places = distinct_values(column)
        kept = pl.Series([field.transform.apply(source, value) for value in values], strict=False)
        return kept.gather(pl.Series(places).cast(pl.UInt32))
    plain = plain_array(column)
    if source == UUID or pa.types.is_fixed_size_binary(plain.type):
        plain = plain.cast(pa.binary())
    return pl.Series(plain)
