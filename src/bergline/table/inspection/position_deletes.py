"""The metadata table of position deletes: the rows of the delete files themselves."""

from collections.abc import Iterator

import pyarrow as pa

from bergline.datafiles.delete.delete_files import read_position_deletes
from bergline.datafiles.file.arrow_schema import arrow_schema
from bergline.datafiles.file.constants import constant_array
from bergline.errors import FormatError
from bergline.format.manifest.manifest import DataFile, FileContent, ManifestContent
from bergline.format.metadata.table_metadata import ROW_LINEAGE_VERSION, TableMetadata
from bergline.format.schema.reserved import DELETE_FILE_PATH, DELETE_POS, DELETE_ROW_ID, FILE, PARTITION_ID, SPEC_ID
from bergline.format.schema.schema import Schema
from bergline.format.types.types import INT, LONG, STRING, NestedField, StructType
from bergline.scan.manifests import live_entries
from bergline.table.inspection.metadata_view import MetadataView, of_content
from bergline.table.scans.partition_union import partition_union


def position_deletes_table(view: MetadataView) -> pa.Table:
    """Every deleted position that the snapshot's delete files and deletion vectors name."""
    columns = _columns(view.metadata)
    manifests = of_content(view.manifests(), ManifestContent.DELETES)
    files = (e.data_file for e in live_entries(view.io, manifests, view.metadata))
    by_position = (f for f in files if f.content is FileContent.POSITION_DELETES)
    parts = (part for file in by_position for part in _rows(view, file, columns))
    batches = [batch for part in parts for batch in part.to_batches()]
    return pa.Table.from_batches(batches, _schema(view.metadata, columns))


def _columns(metadata: TableMetadata) -> Schema:
    """The columns that every format version has; only some writers keep a copy of the deleted row."""
    union = partition_union(metadata)
    partition = NestedField(PARTITION_ID, "partition", True, union)
    return Schema(
        fields=(
            DELETE_FILE_PATH,
            DELETE_POS,
            NestedField(DELETE_ROW_ID, "row", False, StructType(metadata.schema.fields)),
            *((partition,) if union.fields else ()),
            NestedField(SPEC_ID.id, "spec_id", True, INT),
            NestedField(FILE.id, "delete_file_path", True, STRING),
        )
    )


def _schema(metadata: TableMetadata, columns: Schema) -> pa.Schema:
    schema = arrow_schema(columns)
    if metadata.format_version < ROW_LINEAGE_VERSION:
        return schema
    return schema.append(pa.field("content_offset", pa.int64())).append(pa.field("content_size_in_bytes", pa.int64()))


def _rows(view: MetadataView, delete: DataFile, columns: Schema) -> Iterator[pa.Table]:
    schema = _schema(view.metadata, columns)
    spec = view.metadata.specs_by_id[delete.spec_id]
    for rows in read_position_deletes(view.io, delete, spec, columns):
        if rows.column("file_path").null_count or rows.column("pos").null_count:
            raise FormatError(f"expected a path and a position in every row, found null in {delete.file_path}")
        arrays = list(rows.columns)
        if len(schema) > len(arrays):
            blob = (delete.content_offset, delete.content_size_in_bytes)
            arrays += [constant_array(LONG, value, rows.num_rows) for value in blob]
        yield pa.Table.from_arrays(arrays, schema=schema)
