"""Opening a data or delete file by its format; UnsupportedError for others, FormatError names a malformed file."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from bergline.datafiles.file.open_input import arrow_input, format_errors, open_with_stream, row_group_batches
from bergline.datafiles.formats.avro import AvroInput
from bergline.datafiles.formats.orc import OrcInput
from bergline.format.manifest.manifest import DataFile
from bergline.io.fileio import FileIO
from bergline.scan.plan import check_readable


class DataInput(Protocol):
    """An open file: its columns, and its rows in order, in groups that can be read separately."""

    @property
    def schema(self) -> pa.Schema:
        """The columns as stored, with the field ids that the file has."""
        ...

    @property
    def num_groups(self) -> int:
        """The number of groups: row groups, stripes, or one for the whole file."""
        ...

    @property
    def group_rows(self) -> Sequence[int]:
        """How many rows each group has."""
        ...

    def batches(
        self, columns: Sequence[str], groups: Sequence[int] | None = None, most_rows: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of bounded size, up to `most_rows`, with the position of their first row; of some or all groups."""
        ...


class ParquetInput:
    """An open Parquet file."""

    def __init__(self, file: pq.ParquetFile, stream: BinaryIO) -> None:
        self._file = file
        self.stream = stream
        self.schema: pa.Schema = file.schema_arrow

    @property
    def num_groups(self) -> int:
        """How many row groups there are."""
        return int(self._file.metadata.num_row_groups)

    @property
    def group_rows(self) -> Sequence[int]:
        """How many rows each row group has."""
        return [self._file.metadata.row_group(group).num_rows for group in range(self.num_groups)]

    def batches(
        self, columns: Sequence[str], groups: Sequence[int] | None = None, most_rows: int | None = None
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Batches of some row groups, or of all, with the position of their first row."""
        return row_group_batches(self._file, columns, groups, most_rows)


@contextlib.contextmanager
def open_data_file(io: FileIO, file: DataFile) -> Iterator[DataInput]:
    """Open a file for the duration of the context."""
    check_readable(file)
    path = file.file_path
    match file.file_format.upper():
        case "ORC":
            with format_errors(path, "an ORC"), io.open_input(path) as stream, arrow_input(stream) as source:
                yield OrcInput(source)
        case "AVRO":
            with format_errors(path, "an Avro"), io.open_input(path) as stream:
                yield AvroInput(stream, path)
        case _:
            with open_with_stream(io, path) as (parquet, stream):
                yield ParquetInput(parquet, stream)
