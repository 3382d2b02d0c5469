"""The rows of position delete files and deletion vectors, as they stand there."""

from collections.abc import Iterator

import pyarrow as pa

from bergline.errors import FormatError
from bergline.format.deletes import POSITION_DELETE_SCHEMA
from bergline.format.manifest import DataFile, is_deletion_vector
from bergline.format.partition import PartitionSpec
from bergline.format.schema import Schema
from bergline.io.fileio import FileIO
from bergline.parquet.arrow_schema import arrow_schema
from bergline.parquet.constants import constant_array
from bergline.parquet.delete_files import DeleteFiles
from bergline.parquet.file_columns import FileColumns, RowSource, named
from bergline.parquet.open_input import check_parquet, open_parquet, row_group_batches


def read_position_deletes(io: FileIO, delete: DataFile, spec: PartitionSpec, columns: Schema) -> Iterator[pa.Table]:
    """The rows of one delete file, in columns of the file and reserved ones about it; a vector has no `row`s."""
    wanted, source = named(columns), RowSource(delete, spec=spec)
    if is_deletion_vector(delete):
        batch = _vector_rows(io, delete)
        yield FileColumns(batch.schema, wanted, source).convert(batch, 0)
        return
    check_parquet(delete)
    with open_parquet(io, delete.file_path) as file:
        file_columns = FileColumns(file.schema_arrow, wanted, source)
        for first, batch in row_group_batches(file, file_columns.names):
            yield file_columns.convert(batch, first)


def _vector_rows(io: FileIO, delete: DataFile) -> pa.RecordBatch:
    path = delete.referenced_data_file
    if path is None:
        raise FormatError(f"expected the data file of a deletion vector, found none in {delete.file_path}")
    positions = DeleteFiles(io).positions(delete, path).to_arrow().combine_chunks()
    file_path, _ = POSITION_DELETE_SCHEMA.fields
    paths = constant_array(file_path.type, path, len(positions))
    return pa.record_batch([paths, positions], schema=arrow_schema(POSITION_DELETE_SCHEMA))
