"""Data files written again without some of their rows (copy on write): streamed, with the deletes that apply to them.

Rows for which the filter is unknown stay, as in SQL. In format version 3 rows keep their ids, and the number of the
commit that changed them last.
"""

import uuid
from collections.abc import Iterable, Sequence

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, columns_of
from bergline.format.manifest.manifest import DataFile
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import LAST_UPDATED_SEQUENCE_NUMBER, ROW_ID
from bergline.format.schema.schema import Schema
from bergline.io.fileio import FileIO
from bergline.parquet.delete.delete_files import DeleteFiles
from bergline.parquet.read.filter import arrow_filter
from bergline.parquet.read.reader import read_file
from bergline.parquet.write.write_spec import write_spec
from bergline.parquet.write.writer import DataFileWriter
from bergline.scan.plan import PlannedFile, ScanPlan
from bergline.table.manifests.removal import matches_wholly


class Matches(msgspec.Struct, frozen=True):
    """The files that hold rows matching a filter: those of which all rows do, and those of which some do."""

    wholly: tuple[PlannedFile, ...] = ()
    partly: tuple[PlannedFile, ...] = ()


def find_matches(io: FileIO, metadata: TableMetadata, plan: ScanPlan) -> Matches:
    """Sort the files of a plan by its filter: by what is known of them where that is enough, else by their rows."""
    deletes = DeleteFiles(io)
    probe = msgspec.structs.replace(plan, schema=_filter_columns(plan))
    wholly, partly = [], []
    for planned in plan.files:
        if matches_wholly(plan.filter, planned.file, metadata):
            wholly.append(planned)
        elif next(read_file(io, planned, probe, deletes), None) is not None:
            partly.append(planned)
    return Matches(tuple(wholly), tuple(partly))


def rewrite_without(
    io: FileIO, metadata: TableMetadata, plan: ScanPlan, files: Iterable[PlannedFile]
) -> Sequence[DataFile]:
    """New data files with the rows of some planned files that do not match the plan's filter."""
    schema = with_lineage(metadata)
    all_rows = msgspec.structs.replace(plan, schema=schema, filter=ALWAYS_TRUE)
    spec = msgspec.structs.replace(write_spec(metadata), schema=schema)
    stays = _not_true(plan.filter, plan.table_schema)
    deletes = DeleteFiles(io)
    with DataFileWriter(io, spec, f"00000-0-{uuid.uuid4()}") as writer:
        for planned in files:
            for batch in read_file(io, planned, all_rows, deletes):
                writer.write(pa.Table.from_batches([batch]).filter(stays))
        return writer.finish()


def with_lineage(metadata: TableMetadata) -> Schema:
    """The table's columns and, in format version 3, those that hold the ids of rows that move."""
    schema = metadata.schema
    if metadata.format_version < ROW_LINEAGE_VERSION:
        return schema
    return Schema(fields=(*schema.fields, ROW_ID, LAST_UPDATED_SEQUENCE_NUMBER), schema_id=schema.schema_id)


def _not_true(predicate: Predicate, schema: Schema) -> pc.Expression:
    return ~pc.coalesce(arrow_filter(predicate, schema), pc.scalar(False))


def _filter_columns(plan: ScanPlan) -> Schema:
    """The top-level columns that the filter looks at, or any one."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(plan.filter)}
    fields = tuple(f for f in table.fields if f.name in used) or table.fields[:1]
    return Schema(fields=fields, schema_id=table.schema_id)
