"""The rows that one state of a table has more and less than another.

Files that both have, with the same deletes, are not opened. Rows that were only written again, to other files, are no
change: what is equal on both sides is left out.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.format.metadata.table_metadata import TableMetadata
from bergline.format.schema.reserved import POS
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.parquet.delete.delete_files import DeleteFiles
from bergline.parquet.file.arrow_schema import arrow_schema
from bergline.parquet.read.reader import read_file
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.scan.planner import plan_scan
from bergline.table.manifests.removal import file_key

CHANGE_TYPE: Final = "_change_type"
_POSITION: Final = msgspec.structs.replace(POS, name="\0position")


class RowChanges(msgspec.Struct, frozen=True):
    """Rows that came and rows that went, in the columns of the later state."""

    added: pa.Table
    removed: pa.Table

    def to_arrow(self) -> pa.Table:
        """All of them, with a column that says INSERT or DELETE, as in Iceberg's changelogs."""
        field = pa.field(CHANGE_TYPE, pa.string(), nullable=False)
        return pa.concat_tables(
            rows.append_column(field, pa.repeat(pa.scalar(word), rows.num_rows))
            for word, rows in (("DELETE", self.removed), ("INSERT", self.added))
        )


def row_changes(
    io: FileIO, metadata: TableMetadata, before: int | None, after: int | None, schema: Schema
) -> RowChanges:
    """What leads from one snapshot to another, read with one schema."""
    plans = [plan_scan(io, metadata, s, table_schema=schema, columns=schema) for s in (before, after)]
    old, new = ({p.file.file_path: p for p in plan.files} for plan in plans)
    removed = [*_rows_without(io, plans[0], old, plans[1], new)]
    added = [*_rows_without(io, plans[1], new, plans[0], old)]
    columns = arrow_schema(schema)
    return _net(pa.Table.from_batches(added, columns), pa.Table.from_batches(removed, columns))


def _rows_without(
    io: FileIO, plan: ScanPlan, files: dict[str, PlannedFile], other: ScanPlan, others: dict[str, PlannedFile]
) -> Iterator[pa.RecordBatch]:
    """The rows that are in the files of one plan and not, at the same positions, in those of the other."""
    deletes = DeleteFiles(io)
    placed = msgspec.structs.replace(plan, schema=Schema(fields=(*plan.schema.fields, _POSITION)))
    positions = msgspec.structs.replace(other, schema=Schema(fields=(_POSITION,)))
    for path, planned in files.items():
        twin = others.get(path)
        if twin is None:
            yield from read_file(io, planned, plan, deletes)
        elif _deletes(planned) != _deletes(twin):
            there = pa.chunked_array([b.column(0) for b in read_file(io, twin, positions, deletes)], pa.int64())
            for batch in read_file(io, planned, placed, deletes):
                only_here = batch.filter(pc.invert(pc.is_in(batch.column(_POSITION.name), there)))
                yield only_here.select([f.name for f in plan.schema.fields])


def _deletes(planned: PlannedFile) -> set[tuple[str, int | None]]:
    return {file_key(d) for d in planned.deletes}


def _net(added: pa.Table, removed: pa.Table) -> RowChanges:
    """Without rows that came and went alike."""
    if not added.num_rows or not removed.num_rows:
        return RowChanges(added, removed)
    came, went = Counter(_keys(added)), Counter(_keys(removed))
    both = came & went
    return RowChanges(_without(added, both.copy()), _without(removed, both))


def _without(rows: pa.Table, left_out: Counter[str]) -> pa.Table:
    keep = []
    for key in _keys(rows):
        keep.append(left_out[key] <= 0)
        left_out[key] -= 1
    return rows.filter(pa.array(keep, pa.bool_()))


def _keys(rows: pa.Table) -> Iterable[str]:
    """A text for each row that equal rows share: NaN is equal to itself here."""
    counted = rows.cast(pa.schema([_counted(f) for f in rows.schema]))
    return (str(list(row.values())) for batch in counted.to_batches(1024) for row in batch.to_pylist())


def _counted(field: pa.Field) -> pa.Field:
    """The field with numbers for dates and times: Arrow has more of them than Python."""
    kind = field.type
    if pa.types.is_temporal(kind):
        return field.with_type(pa.int32() if pa.types.is_date32(kind) else pa.int64())
    if pa.types.is_struct(kind):
        return field.with_type(pa.struct([_counted(f) for f in kind]))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_counted(kind.value_field)))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(_counted(kind.key_field), _counted(kind.item_field)))
    return field
