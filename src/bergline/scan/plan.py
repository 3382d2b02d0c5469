"""The plan of a read: which files may hold matching rows."""

import msgspec

from bergline.errors import UnsupportedError
from bergline.expressions.metrics import may_match
from bergline.expressions.predicate import ALWAYS_TRUE, Predicate, bind, columns_of
from bergline.format.manifest import DataFile, ManifestContent
from bergline.format.metadata import TableMetadata
from bergline.format.schema import Schema
from bergline.io.fileio import FileIO
from bergline.scan.evolution import why_not_by_name
from bergline.scan.manifests import live_entries, load_manifest_list


class PlannedFile(msgspec.Struct, frozen=True):
    """A data file to read, and the sequence number of its rows."""

    file: DataFile
    sequence_number: int


class ScanPlan(msgspec.Struct, frozen=True):
    """Everything an engine needs: files, the columns to return, the rows to keep. Fixed for good."""

    snapshot_id: int | None
    table_schema: Schema
    schema: Schema
    filter: Predicate
    files: tuple[PlannedFile, ...]
    by_id_only: str | None = None
    """Why columns must be matched by field id; None if names do as well."""


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
        for manifest in manifests:
            if manifest.content is ManifestContent.DELETES and manifest.has_live_files:
                raise UnsupportedError(
                    f"snapshot {snapshot_id} has delete files, which bergline cannot apply yet",
                    hints=["compact the table in the engine that wrote the deletes, then read it here"],
                )
        files = tuple(
            PlannedFile(entry.data_file, entry.sequence_number or 0)
            for entry in live_entries(io, manifests, metadata)
            if may_match(bound, entry.data_file, table_schema)
        )
    return ScanPlan(snapshot_id, table_schema, columns, bound, files, why_not_by_name(metadata))


def columns_to_read(plan: ScanPlan) -> Schema:
    """The columns asked for, and after them those that only the filter looks at."""
    table = plan.table_schema
    used = {table.paths[table.names[name].id][0] for name in columns_of(plan.filter)}
    extra = used - {f.name for f in plan.schema.fields}
    return Schema(fields=(*plan.schema.fields, *(f for f in table.fields if f.name in extra)))
