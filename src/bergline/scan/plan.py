"""The plan of a read: which files may hold matching rows."""

import msgspec

from bergline.errors import FormatError, UnsupportedError
from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, bind, columns_of
from bergline.format.manifest import DataFile, ManifestContent
from bergline.format.metadata import TableMetadata
from bergline.format.schema import Schema
from bergline.format.types import NestedField
from bergline.io.fileio import FileIO
from bergline.scan.delete_index import DeleteIndex
from bergline.scan.evolution import why_not_by_name
from bergline.scan.manifests import live_entries, load_manifest_list


class PlannedFile(msgspec.Struct, frozen=True):
    """A data file to read, the sequence number of its rows, and the delete files that apply to them."""

    file: DataFile
    sequence_number: int
    deletes: tuple[DataFile, ...] = ()


class ScanPlan(msgspec.Struct, frozen=True):
    """Everything an engine needs: files, the columns to return, the rows to keep. Fixed for good."""

    snapshot_id: int | None
    table_schema: Schema
    schema: Schema
    filter: Predicate
    files: tuple[PlannedFile, ...]
    by_id_only: str | None = None
    """Why columns must be matched by field id; None if names do as well."""
    key_columns: Schema = Schema(fields=())
    """The columns that equality deletes name, also those that were dropped since."""


def plan_scan(
    io: FileIO,
    metadata: TableMetadata,
    snapshot_id: int | None,
    *,
    table_schema: Schema,
    columns: Schema,
    row_filter: Predicate = ALWAYS_TRUE,
) -> ScanPlan:
    """The files of a snapshot that may hold rows matching the filter; a table without snapshots has none."""
    bound = bind(row_filter, table_schema)
    files: tuple[PlannedFile, ...] = ()
    if snapshot_id is not None:
        manifests = load_manifest_list(io, metadata.snapshot(snapshot_id))
        data = [m for m in manifests if m.content is ManifestContent.DATA]
        deletes = [m for m in manifests if m.content is ManifestContent.DELETES]
        index = DeleteIndex(live_entries(io, deletes, metadata), metadata)
        files = tuple(
            PlannedFile(entry.data_file, entry.sequence_number or 0, index.deletes_for(entry))
            for entry in live_entries(io, data, metadata)
            if may_match(bound, entry.data_file, table_schema)
        )
    key_columns = _key_columns(metadata, files)
    return ScanPlan(snapshot_id, table_schema, columns, bound, files, why_not_by_name(metadata), key_columns)


def _key_columns(metadata: TableMetadata, files: tuple[PlannedFile, ...]) -> Schema:
    """Every column that an equality delete names, under a name that cannot clash, as its latest schema has it."""
    ids = sorted({i for planned in files for delete in planned.deletes for i in delete.equality_ids or ()})
    fields = []
    for field_id in ids:
        schema = next((s for s in (metadata.schema, *reversed(metadata.schemas)) if field_id in s.ids), None)
        if schema is None:
            raise FormatError(f"expected a column with id {field_id} for equality deletes, found none in any schema")
        if len(schema.paths.get(field_id, ())) != 1:
            raise UnsupportedError(
                f"cannot apply equality deletes on the nested column `{schema.names_by_id[field_id]}`"
            )
        fields.append(NestedField(field_id, f"key-{field_id}", False, schema.ids[field_id].type))
    return Schema(fields=tuple(fields))


def columns_to_read(plan: ScanPlan) -> Schema:
    """The columns asked for, and after them those that only the filter looks at."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(plan.filter)}
    extra = used - {f.name for f in plan.schema.fields}
    return Schema(fields=(*plan.schema.fields, *(f for f in table.fields if f.name in extra)))
