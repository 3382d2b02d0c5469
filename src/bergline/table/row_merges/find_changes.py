"""The rows of a snapshot that a merge or an update changes: their positions, and files with their new versions.

One data file after the other, in two passes: the first reads the columns of the conditions and decides which rows
change, and how; the second, only if rows are updated, reads these rows. The source rows and the positions of one file
are in memory.
"""

import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.datafiles.delete.delete_files import DeleteFiles
from bergline.datafiles.read.reader import read_file
from bergline.datafiles.write.write_spec import write_spec
from bergline.datafiles.write.writer import DataFileWriter
from bergline.format.deletes.position_set import PositionSet, position_set
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, POS, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.table.operations.row_changes import RowChanges
from bergline.table.row_expressions.comparisons import same_values
from bergline.table.row_expressions.rows import Rows
from bergline.table.row_merges.bind import BoundClause, BoundMerge
from bergline.table.row_merges.clauses import RowCounts
from bergline.table.row_merges.matching import Pairs, SourceIndex
from bergline.table.row_merges.source import SourceRows


class MergeChanges(msgspec.Struct, frozen=True):
    """The changes of rows, and their counts."""

    changes: RowChanges
    counts: RowCounts


def find_changes(
    io: FileIO, metadata: TableMetadata, read: ScanPlan, merge: BoundMerge, source: SourceRows
) -> MergeChanges:
    """Read the rows of a scan and write new versions of those that change; an error leaves no file."""
    schema = written_schema(metadata)
    spec = msgspec.structs.replace(write_spec(metadata, check_types=False), schema=schema)
    with DataFileWriter(io, spec, f"00000-0-{uuid.uuid4()}") as writer:
        run = _Run(io, metadata, read, SourceIndex(merge, source), writer)
        for planned in read.files:
            run.change_file(planned)
        run.insert()
        files = tuple(writer.finish())
    counts = RowCounts(run.updated, run.inserted, run.deleted)
    return MergeChanges(RowChanges(run.positions, files), counts)


def written_schema(metadata: TableMetadata) -> Schema:
    """The columns of changed rows; in format version 3, including those with a row's identity."""
    schema = metadata.schema
    if metadata.format_version < ROW_LINEAGE_VERSION:
        return schema
    return Schema(fields=(*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER), schema_id=schema.schema_id)


class _Decisions(msgspec.Struct, frozen=True):
    """For rows of one file that change: their position, the clause that changes them, and their source row."""

    positions: pa.Array
    clauses: pa.Array
    sources: pa.Array

    def of(self, clause: int) -> "_Decisions":
        return self.filter(pc.equal(self.clauses, clause))

    def filter(self, mask: pa.Array) -> "_Decisions":
        return _Decisions(*(column.filter(mask) for column in (self.positions, self.clauses, self.sources)))


class _Run:
    """One merge, with its results so far."""

    def __init__(
        self,
        io: FileIO,
        metadata: TableMetadata,
        read: ScanPlan,
        source: SourceIndex,
        writer: DataFileWriter,
    ) -> None:
        self._io = io
        self._merge = merge = source.merge
        self._clauses: Sequence[BoundClause] = (*merge.matched, *merge.by_source)
        self._source = source
        self._writer = writer
        self._deletes = DeleteFiles(io)
        self._has_lineage = metadata.format_version >= ROW_LINEAGE_VERSION
        table = metadata.schema
        used = tuple(f for f in table.fields if f.name in merge.target_columns)
        self._table = table
        self._deciding = msgspec.structs.replace(read, schema=Schema(fields=(*used, POS)), files=())
        whole = (*table.fields, ROW_ID) if self._has_lineage else table.fields
        self._updating = msgspec.structs.replace(read, schema=Schema(fields=(*whole, POS)), files=())
        self._matched = PositionSet()
        self.positions: dict[str, PositionSet] = {}
        self.updated = self.inserted = self.deleted = 0

    def change_file(self, planned: PlannedFile) -> None:
        """Decide about the rows of a data file, and write those that are updated."""
        decisions = self._decide(planned)
        gone = [d.positions for d in (decisions.of(n) for n, c in enumerate(self._clauses) if c.action == "delete")]
        self.deleted += sum(map(len, gone))
        updating = {n: decisions.of(n) for n, c in enumerate(self._clauses) if c.action == "update"}
        if any(len(d.positions) for d in updating.values()):
            changed = list(self._update(planned, updating))
            self.updated += sum(map(len, changed))
            gone += changed
        if positions := position_set(pa.chunked_array(gone, pa.int64())):
            self.positions[planned.file.file_path] = positions

    def insert(self) -> None:
        """Write the source rows that no target row matched, by the first clause whose condition holds."""
        if not self._merge.not_matched:
            return
        matched = self._matched.to_mask(self._source.rows.count)
        remaining = pc.indices_nonzero(pc.invert(matched)).cast(pa.int64())
        for clause in self._merge.not_matched:
            rows = self._source.rows.take(remaining)
            holds = _holds(clause, rows)
            new = rows.take(pc.indices_nonzero(holds).cast(pa.int64()))
            columns = [clause.values[f.name].evaluate(new) for f in self._table.fields]
            self._writer.write(_table(columns, self._table))
            self.inserted += new.count
            remaining = remaining.filter(pc.invert(holds))

    def _decide(self, planned: PlannedFile) -> _Decisions:
        found: list[_Decisions] = [_nothing()]
        for batch in read_file(self._io, planned, self._deciding, self._deletes):
            target = Rows.of({self._merge.target_alias: batch}, batch.num_rows)
            positions = batch.column(POS.name)
            pairs = self._source.pairs(target)
            if self._merge.not_matched:
                self._matched = self._matched.union(position_set(pairs.source))
            if self._merge.matched:
                found += self._decide_matched(target, pairs, positions)
            if self._merge.by_source:
                found += self._decide_by_source(target, pairs, positions)
        return _Decisions(
            *(pa.concat_arrays([getattr(d, name) for d in found]) for name in _Decisions.__struct_fields__)
        )

    def _decide_matched(self, target: Rows, pairs: Pairs, positions: pa.Array) -> Iterator[_Decisions]:
        if not self._merge.one_source_row:  # a row is deleted only once, however many source rows match it
            first = pc.unique(pairs.target)
            pairs = Pairs(first, pa.nulls(len(first), pa.int64()))
        for number, clause in enumerate(self._merge.matched):
            if clause.condition is None:
                holds = pa.repeat(True, len(pairs.target))
            else:
                holds = clause.condition.is_true(self._source.side_by_side(target, pairs))
            taken = pairs.filter(holds)
            yield _decisions(positions.take(taken.target), number, taken.source)
            pairs = pairs.filter(pc.invert(holds))

    def _decide_by_source(self, target: Rows, pairs: Pairs, positions: pa.Array) -> Iterator[_Decisions]:
        everyone = pa.array(range(target.count), pa.int64())
        remaining = everyone.filter(pc.invert(pc.is_in(everyone, value_set=pairs.target)))
        for number, clause in enumerate(self._merge.by_source, start=len(self._merge.matched)):
            holds = _holds(clause, target.take(remaining))
            taken = positions.take(remaining.filter(holds))
            yield _decisions(taken, number, pa.nulls(len(taken), pa.int64()))
            remaining = remaining.filter(pc.invert(holds))

    def _update(self, planned: PlannedFile, updating: dict[int, _Decisions]) -> Iterator[pa.Array]:
        """Write the new versions of rows, and yield the positions of the old ones."""
        for batch in read_file(self._io, planned, self._updating, self._deletes):
            positions = batch.column(POS.name)
            for number, decisions in updating.items():
                place = pc.index_in(positions, value_set=decisions.positions)
                taken = pc.is_valid(place)
                if not pc.any(taken).as_py():
                    continue
                rows = batch.filter(taken)
                pairs = Pairs(pa.array(range(rows.num_rows), pa.int64()), decisions.sources.take(place.drop_null()))
                yield self._write_versions(self._clauses[number], rows, pairs)

    def _write_versions(self, clause: BoundClause, old: pa.RecordBatch, pairs: Pairs) -> pa.Array:
        """Write rows as changed by a clause; if requested, without those that stay the same."""
        target = Rows.of({self._merge.target_alias: old}, old.num_rows)
        rows = self._source.side_by_side(target, pairs) if self._source.rows.count else target
        columns = {
            f.name: clause.values[f.name].evaluate(rows) if f.name in clause.values else old.column(f.name)
            for f in self._table.fields
        }
        new = _table(columns.values(), self._table)
        if self._has_lineage:
            new = new.append_column(ROW_ID.name, pa.chunked_array([old.column(ROW_ID.name)]))
        positions = old.column(POS.name)
        if self._merge.only_changed:
            differs = self._differs(clause, old, columns)
            new, positions = new.filter(differs), positions.filter(differs)
        self._writer.write(new)
        return positions

    def _differs(self, clause: BoundClause, old: pa.RecordBatch, new: dict[str, pa.Array]) -> pa.Array:
        same = pa.repeat(True, old.num_rows)
        for field in self._table.fields:
            if field.name in clause.values:
                same = pc.and_(same, same_values(old.column(field.name), new[field.name], field.type))
        return pc.invert(same)


def _holds(clause: BoundClause, rows: Rows) -> pa.Array:
    return pa.repeat(True, rows.count) if clause.condition is None else clause.condition.is_true(rows)


def _table(columns: Iterable[Any], schema: Schema) -> pa.Table:
    return pa.table(dict(zip((f.name for f in schema.fields), columns, strict=True)))


def _decisions(positions: pa.Array, clause: int, sources: pa.Array) -> _Decisions:
    return _Decisions(positions, pa.repeat(pa.scalar(clause, pa.int32()), len(positions)), sources)


def _nothing() -> _Decisions:
    return _decisions(pa.array([], pa.int64()), 0, pa.array([], pa.int64()))
